"""Matrix products at the shapes of a call: ours next to NumPy's (OpenBLAS), on one thread.

usage: OPENBLAS_NUM_THREADS=1 python -m peers.lm.products [--rounds 2]

Prints billions of operations per second of processor time (Linux), the best and the mean of the
rounds, which alternate. Ours is `operations_per_second`, a test of racecars-lm-kernels.
"""

import argparse
import os
import subprocess
import time

import numpy as np
from numpy.typing import NDArray

TEST = "linear::tests::operations_per_second"
OURS = ["cargo", "test", "--release", "--quiet", "-p", "racecars-lm-kernels", "--lib", TEST, "--"]
SHAPES = [(640, 1536), (1024, 640), (640, 4096), (2048, 640)] * 6
ROWS = [32, 64, 96, 512]


def ours() -> dict[int, float]:
    command = [*OURS, "--ignored", "--nocapture"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in printed.splitlines() if line.startswith("rows ")]
    return {int(line[1].rstrip(":")): float(line[2]) for line in lines}


def theirs(weights: list[NDArray[np.float32]]) -> dict[int, float]:
    rates = {}
    for rows in ROWS:
        x = {inputs: np.full((rows, inputs), 0.5, np.float32) for inputs, _ in SHAPES}
        operations, start = 0.0, time.thread_time()
        for _ in range(max(2048 // rows, 6)):
            for (inputs, outputs), weight in zip(SHAPES, weights):
                x[inputs] @ weight
                operations += 2.0 * rows * inputs * outputs
        rates[rows] = operations / (time.thread_time() - start) / 1e9
    return rates


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    rounds = parser.parse_args().rounds
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        raise SystemExit("OPENBLAS_NUM_THREADS must be 1: other threads' time would not count")
    weights = [np.ones(shape, np.float32) for shape in SHAPES]
    found = [(ours(), theirs(weights)) for _ in range(rounds)]
    print("| rows | ours | NumPy |\n| ---: | ---: | ---: |")
    for rows in ROWS:
        cells = []
        for who in (0, 1):
            rates = [both[who][rows] for both in found]
            cells.append(f"{max(rates):.0f} ({sum(rates) / rounds:.0f})")
        print(f"| {rows} | {cells[0]} | {cells[1]} |")


if __name__ == "__main__":
    main()
