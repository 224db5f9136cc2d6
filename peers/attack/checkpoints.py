"""Attacks on the checkpoints of the Python package: changed and missing bytes."""

from __future__ import annotations

import warnings
from typing import Any

from peers.attack.harness import Lab


def _objective(x: Any) -> float:
    if x[0] > 3:
        raise ArithmeticError("too far")
    return float(((x - 1) ** 2).sum())


def damage(lab: Lab, tries: int) -> None:
    """A checkpoint is damaged; the run is the same, or there is one clear error."""
    import racecars

    # Failed evaluations are part of it.
    warnings.simplefilter("ignore", RuntimeWarning)

    path = lab.folder / "run.ckpt"

    def run() -> Any:
        return racecars.minimize(_objective, [(-5, 5)] * 4, maxfev=60, rng=1, checkpoint=str(path))

    def shown(res: Any) -> Any:
        return res.fun, tuple(res.x), res.nfev, len(res.errors), str(res.errors)

    expected = shown(run())
    whole = path.read_bytes()
    for number in range(tries):
        lab.tally.tries += 1
        data = bytearray(whole)
        at = lab.random.randrange(len(data))
        if number % 3 == 0:
            del data[at:]
        else:
            data[at] ^= 1 << lab.random.randrange(8)
        path.write_bytes(bytes(data))
        try:
            found = shown(run())
        except Exception as error:
            if str(path) not in str(error) or type(error).__name__ in ("KeyError", "TypeError"):
                lab.tally.note_wrong(f"byte {at}: {type(error).__name__}: {error}"[:200])
            continue
        except BaseException as error:
            lab.tally.panics += 1
            lab.tally.notes.append(f"panic: byte {at}: {type(error).__name__}: {error}"[:200])
            continue
        if found != expected:
            lab.tally.note_wrong(f"byte {at}: {found} in place of {expected}"[:300])
