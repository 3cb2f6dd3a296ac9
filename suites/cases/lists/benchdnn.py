"""Files of benchdnn's pool driver: a row is one problem, a descriptor under one choice of each knob before it.

A descriptor is ``mb2ic3_ih8oh4kh3sh2ph1``; what it leaves out follows as in the driver. Knobs with several values
give one problem for each combination, and ``--batch`` reads a file beside this one. Source: ``pool_aux.cpp``,
``cfg.cpp`` (data are integers in a range) and the driver's page of uxlfoundation/oneDNN at 3f27bec9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from poolproof.suites.cases.case import Case
from poolproof.suites.cases.entry import Entry, OwnStandard
from poolproof.suites.cases.lists.base import ListFormat
from poolproof.suites.cases.lists.fields import RowError, dtype_named, legal_case, pool_named, same_padding, seed_of
from poolproof.suites.cases.recipes.spreads import Spread

_DESCRIPTOR = re.compile(r"(?:(?:mb|ic|[iokspd][dhw])\d+_?)+(?:n.*)?")
Axis = tuple[int, int, int, int, int, int]
"""Length, windows, kernel size, stride, padding, dilation."""

_DEFAULTS = {"dir": "FWD_D", "dt": "f32", "alg": "max", "tag": "abx", "mb": "0", "attr": ""}
_PLAIN, _CHANNELS_LAST = ("abx", "abcd", "abcde", "nchw", "ncdhw"), ("axb", "acdb", "acdeb", "nhwc", "ndhwc")
_MOST = {"float64": 2048.0, "float32": 2048.0, "float16": 32.0, "bfloat16": 32.0}
"""The greatest integer among the data of a dtype."""


class Benchdnn(ListFormat):
    name = "benchdnn"
    looks = "problems of its pool driver"

    def recognises(self, text: str) -> bool:
        problems = [word for word in _words(text) if not word.startswith("--")]
        return all(map(_DESCRIPTOR.fullmatch, problems)) and bool(problems or "--batch=" in text)

    def entries(self, text: str, label: str) -> Iterator[Entry]:
        return self.entries_at(Path(label), text)

    def entries_at(self, path: Path, text: str) -> Iterator[Entry]:
        for number, problem in enumerate(_problems(text, path, {}), 1):
            yield self.entry(problem, path.name, number)

    def name_of(self, row: Any, number: int) -> str:  # noqa: ARG002
        changed = [f"--{knob}={value}" for knob, value in row.items() if value != _DEFAULTS.get(knob)]
        return " ".join([*changed[:-1], row["problem"]])

    def read(self, row: Any, name: str) -> tuple[Case, OwnStandard]:
        dtype = _dtype(row)
        (batch, channels), axes = _geometry(row["problem"])
        api, data = pool_named(len(axes), "BWD" in row["dir"]), str(Spread("whole", (-_MOST[dtype], _MOST[dtype])))
        lengths, outputs, *windows = map(list, zip(*axes, strict=True))
        record: dict[str, Any] = dict(zip(("kernel_size", "stride", "padding", "dilation"), windows, strict=True))
        record |= {"ceil_mode": _rounds_up(axes), "values": data, "seed": seed_of(name), "dtype": dtype}
        record |= {"operator": api.name, "shape": [int(row["mb"]) or batch, channels, *lengths]}
        record |= {"gradient": data} if api.is_backward else {}
        if row["tag"] in _CHANNELS_LAST:
            record["layouts"] = dict.fromkeys(api.strided, "channels_last")
        case = legal_case(record)
        if list(case.pooled_shape[2:]) != outputs:
            raise RowError(f"no legal call: these windows number {list(case.pooled_shape[2:])}, not {outputs}")
        return case, OwnStandard()


def _dtype(row: Mapping[str, str]) -> str:
    """Return the dtype of the data, if the knobs choose a pool of ours; `RowError` names the first that does not."""
    if not row["alg"].endswith("max"):
        raise RowError(f"alg: poolproof tests max pooling, not {row['alg']}")
    if row["attr"]:
        raise RowError(f"attr: poolproof tests pools without attributes such as {row['attr']}")
    if row["tag"] not in _PLAIN + _CHANNELS_LAST:
        raise RowError(f"tag: {row['tag']} is none of {', '.join(_PLAIN + _CHANNELS_LAST)}")
    dtype, *others = {dtype_named("dt", each) for each in row["dt"].split(":")}
    if others:
        raise RowError(f"dt: poolproof tests pools of one dtype, not {row['dt']}")
    return dtype


def _rounds_up(axes: Sequence[Axis]) -> bool:
    """Tell whether ceil_mode gives so many windows; `RowError` where only padding at one end does."""
    for ceil_mode in (False, True):
        if all(
            windows == (length - (size - 1) * dilation - 1 + 2 * before + ceil_mode * (stride - 1)) // stride + 1
            for length, windows, size, stride, before, dilation in axes
        ):
            return ceil_mode
    ends = [(axis[1] - 1) * axis[3] + (axis[2] - 1) * axis[5] + 1 - axis[0] - axis[4] for axis in axes]
    same_padding([axis[4] for axis in axes], ends)
    return False


def _words(text: str) -> list[str]:
    """Split a file without its comments; a backslash at the end of a line continues a word."""
    return re.sub(r"\s*\\\n\s*", "", re.sub(r"(?<!\S)#.*", "", text)).split()


def _problems(text: str, path: Path, knobs: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield each descriptor under each combination of values; the knobs of a file go on behind it."""
    for word in _words(text):
        knob, _, value = word.removeprefix("--").partition("=")
        if word == "--reset":
            knobs.clear()
        elif knob == "batch" and word != knob:
            beside = path.parent / Path(value).name
            if beside == path or not beside.is_file():
                raise ValueError(f"--batch={value}: there is no such file beside it")
            yield from _problems(beside.read_text(encoding="utf-8"), beside, knobs)
        elif word.startswith("--"):
            knobs["attr" if knob.startswith("attr-") else knob] = value
        elif not _DESCRIPTOR.fullmatch(word):
            raise ValueError(f"{word} is no problem of the pool driver")
        elif re.search(knobs.get("match", ""), word):
            chosen = [knobs.get(knob, usual).split(",") for knob, usual in _DEFAULTS.items()]
            yield from (dict(zip(_DEFAULTS, values, strict=True)) | {"problem": word} for values in product(*chosen))


def _geometry(problem: str) -> tuple[tuple[int, int], list[Axis]]:
    """Return (N, C) and the axes, completed as the driver does."""
    given = {name: int(digits) for name, digits in re.findall(r"([a-z]{2})(\d+)", problem.partition("n")[0])}
    first = next((letter for letter in "dhw" if f"i{letter}" in given), "")
    if not first:
        raise RowError("problem: it has no length")
    axes: list[Axis] = []
    for letter in "dhw"["dhw".index(first) :]:
        if f"i{letter}" not in given:  # a square, or a cube
            axes.append(axes[-1])
            continue
        length, windows, size, stride, padding, gap = (given.get(kind + letter) for kind in "iokspd")
        if not length or not size:
            raise RowError(f"i{letter}, k{letter}: a problem needs both")
        stride, dilation = stride or 1, (gap or 0) + 1
        reach = (size - 1) * dilation + 1
        if not windows:
            padding = padding or 0
            windows = (length - reach + 2 * padding) // stride + 1
        elif padding is None:
            padding = int(((windows - 1) * stride - length + reach) / 2)
        axes.append((length, windows, size, stride, padding, dilation))
    return (given.get("mb", 2), given.get("ic", 0)), axes
