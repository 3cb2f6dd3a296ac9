"""Judge a stored result again by the recorded admissible values: python rejudge.py FILE.npz

It needs only numpy, so that either party of a dispute can read and run it. A value is admissible if it is in [low,
high] and, with the LATTICE flag, a multiple of 2**lattice. The other flags also admit infinities, NaN and zero. It
exits with 1 if elements are not admissible, with 2 if the case violates something else, with 3 if there is nothing to
judge.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

POSITIVE_INFINITY, NEGATIVE_INFINITY, NAN, ZERO, LATTICE = 1, 2, 4, 8, 16

_WORDS = {POSITIVE_INFINITY: "inf", NEGATIVE_INFINITY: "-inf", NAN: "nan", ZERO: "0"}


def rejected(arrays: Mapping[str, Any], limit: float = np.inf) -> np.ndarray:
    """Return the mask of inadmissible elements of ``got``; ``limit`` is a magnitude exempt from the lattice."""
    got, flags = arrays["got"], arrays["flags"]
    admissible = (arrays["low"] <= got) & (got <= arrays["high"]) & _on_lattice(arrays, limit)
    admissible |= (flags & POSITIVE_INFINITY > 0) & (got == np.inf)
    admissible |= (flags & NEGATIVE_INFINITY > 0) & (got == -np.inf)
    admissible |= (flags & NAN > 0) & np.isnan(got)
    admissible |= (flags & ZERO > 0) & (got == 0.0)
    return ~admissible


def _on_lattice(arrays: Mapping[str, Any], limit: float) -> np.ndarray:
    got = arrays["got"]
    free = (arrays["flags"] & LATTICE == 0) | ~np.isfinite(got) | (np.abs(got) == limit)
    if "lattice" not in arrays:
        return np.ones_like(free)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.ldexp(got, np.where(free, 0, -arrays["lattice"]))
    return free | (steps == np.rint(steps))


def read(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays and metadata of a file of evidence; exit with a message if it is invalid."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        return arrays, json.loads(str(arrays.pop("meta")))
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        give_up(f"{path} is no file of evidence: {error}")


def give_up(text: str) -> NoReturn:
    print(text, file=sys.stderr)
    sys.exit(3)


def main(path: str) -> int:
    arrays, meta = read(path)
    if report(arrays, meta):
        return 1
    if broken := ", ".join(meta.get("checks", ())):
        print(f"the case violates {broken}, of which these elements say nothing: call.py makes the call again")
    return 2 if broken else 0


def report(arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> bool:
    """Print the inadmissible elements of ``got``; return whether there are any."""
    wrong = rejected(arrays, float(meta.get("limit", "inf")))
    print(f"{int(wrong.sum())} of {wrong.size} elements are not admissible")
    for element in np.argwhere(wrong)[:20]:
        at = tuple(map(int, element))
        print(f"  {list(at)}: got {number(arrays['got'][at])}, expected {expected(arrays, at)}")
    return bool(wrong.any())


def number(value: Any) -> str:
    """Return the shortest decimal that reads back as the same float64, without a trailing .0."""
    return repr(float(value)).removesuffix(".0")


def expected(arrays: Mapping[str, Any], at: tuple[int, ...]) -> str:
    """Return the admissible values of one element as text."""
    low, high, flags = float(arrays["low"][at]), float(arrays["high"][at]), int(arrays["flags"][at])
    words = [word for flag, word in _WORDS.items() if flags & flag]
    if low == high:
        return " or ".join(dict.fromkeys([number(low), *words]))
    if low > high:
        return " or ".join(words) or "nothing"
    steps = f" in steps of 2**{int(arrays['lattice'][at])}" if flags & LATTICE else ""
    return " or ".join([f"[{number(low)}, {number(high)}]{steps}", *words])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else give_up("usage: rejudge.py FILE.npz"))
