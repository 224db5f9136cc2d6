"""The server under load: clients on this machine upload texts, evaluate prompts and remove texts.

usage: python -m peers.lm.load RACECARS MODEL [--clients 8] [--seconds 60]

No request may fail, and the server's memory must not grow: its size at the end is compared with
that after a fifth of the time.
"""

import argparse
import random
import struct
import threading
import time
from pathlib import Path

from peers.lm.service import Service, serve

WORDS = ["terrible", "great"]


def client(service: Service, number: int, until: float, done: list[float]) -> None:
    dice = random.Random(number)
    hidden = service.model()["hidden"]
    while time.monotonic() < until:
        texts = [
            {"before": " ".join(dice.choices(["a", "fine", "film", "not", "so"], k=12))}
            for _ in range(4)
        ]
        batch = service.upload(
            texts=[{**text, "after": " It was"} for text in texts], words=WORDS, labels=[0, 1, 0, 1]
        )
        for _ in range(5):
            start = time.monotonic()
            numbers = [dice.gauss(0, 0.1) for _ in range(2 * 3 * hidden)]
            body = struct.pack(f"<{len(numbers)}f", *numbers)
            path = f"/v1/batches/{batch}/evaluate?prompts=2"
            answer = service.request("POST", path, body, "application/octet-stream")
            assert all(result["loss"] > 0 for result in answer["results"]), answer
            done.append(time.monotonic() - start)
        service.remove(batch)


def megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("racecars")
    parser.add_argument("model")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    done: list[float] = []
    failures: list[Exception] = []
    with serve(given.racecars, given.model) as service:
        until = time.monotonic() + given.seconds

        def run(number: int) -> None:
            try:
                client(service, number, until, done)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(i,)) for i in range(given.clients)]
        for thread in threads:
            thread.start()
        time.sleep(given.seconds / 5)
        early = megabytes(service.pid)
        for thread in threads:
            thread.join()
        late = megabytes(service.pid)
    done.sort()
    print(f"{given.clients} clients, {given.seconds:.0f} s: {len(done)} evaluations of 2 prompts")
    print(f"median {done[len(done) // 2]:.3f} s, longest {done[-1]:.3f} s")
    print(f"failures {len(failures)}; memory {early:.0f} MB early, {late:.0f} MB at the end")
    assert not failures, failures[0]
    assert late < 1.1 * early, "memory grows"


if __name__ == "__main__":
    main()
