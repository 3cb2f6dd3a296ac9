"""Made-up runs: folders as a session leaves them, of any size and with any verdicts, without judging anything."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from poolproof.reports.figures.digest import Digest
from poolproof.reports.rows.arrow import SCHEMA
from poolproof.reports.rows.environment import suite_identity
from poolproof.reports.rows.evidence import Meta, evidence_path, write_evidence, write_programs
from poolproof.reports.rows.rejudge import LATTICE
from poolproof.reports.rows.store import ROWS_PER_PART, write_run
from poolproof.reports.terminal.painting import SafeConsole
from poolproof.reports.terminal.run import show

OPERATORS = ("AdaptiveMaxPool3dBackward", "MaxPool2dWithIndicesBackward", "MaxPool3dWithArgmaxBackward")
DTYPES = ("float32", "float16")
ASPECTS = ("values", "precision", "layouts")
HOST = {"system": "Linux", "cpu": "a processor", "cores": "2", "python": "3.11.7"}

VIOLATED = {"violates": ["interval"], "waived": ["interval"]}
"""The checks that rows of a verdict violate."""


@dataclass(frozen=True)
class Recipe:
    """What a made-up run consists of.

    ``cases`` are made for each cell of every backend. ``verdicts`` maps (operator, dtype, aspect) to the verdicts of
    the cell's first cases; the others conform. ``slowdown`` and ``ulps`` multiply what is measured.
    """

    backends: Mapping[str, str] = field(default_factory=lambda: {"torch-cpu": ""})
    operators: Sequence[str] = OPERATORS
    dtypes: Sequence[str] = DTYPES
    aspects: Sequence[str] = ASPECTS
    cases: int = 4
    verdicts: Mapping[tuple[str, str, str], Sequence[str]] = field(default_factory=dict)
    seed: int = 0
    slowdown: float = 1.0
    ulps: float = 1.0
    started: float = 1.8e9
    torch: str = "2.13.0"
    waivers: Sequence[Mapping[str, Any]] = ()
    record: Mapping[str, Any] = field(default_factory=dict)


def make_run(folder: Path, recipe: Recipe = Recipe(), evidence: bool = False) -> Path:
    """Write the run; with ``evidence``, every violating row gets some."""
    rows = made_up_rows(recipe)
    write_rows(folder, rows)
    write_run(folder, made_up_record(recipe))
    if evidence:
        for row in rows.filter(pa.compute.equal(rows["verdict"], "violates")).to_pylist():
            write_lost_gradient(folder, row["case_id"], row["backend"])
    return folder


def write_rows(folder: Path, rows: pa.Table) -> None:
    """The rows in parts, as a session writes them."""
    (folder / "rows").mkdir(parents=True)
    for number, start in enumerate(range(0, max(len(rows), 1), ROWS_PER_PART)):
        part = folder / "rows" / f"gw0-{number:04d}.parquet"
        pq.write_table(rows.slice(start, ROWS_PER_PART), part, compression="zstd")


def made_up_record(recipe: Recipe) -> dict[str, Any]:
    """run.json of a finished run of the recipe."""
    cells = product(recipe.backends, recipe.operators, recipe.dtypes, recipe.aspects)
    record = {
        "id": f"{int(recipe.started):x}-{recipe.seed}-{'-'.join(recipe.backends)}",
        "plan": "smoke",
        "seed": recipe.seed,
        "arguments": ["suites"],
        "started": recipe.started,
        "finished": recipe.started + 60.0,
        "suite": suite_identity(),
        "host": HOST,
        "backends": {name: {"torch": recipe.torch, "device": "x86_64"} for name in recipe.backends},
        "mandatory": [
            {"backend": backend, "operator": operator, "dtype": dtype, "index_dtype": "int64", "aspect": aspect}
            | {"planned": recipe.cases}
            for backend, operator, dtype, aspect in cells
        ],
        "waivers": list(recipe.waivers),
        "waivers_judged_on": "2027-01-15",
        "strict_waivers": False,
    }
    return record | dict(recipe.record)


def made_up_rows(recipe: Recipe) -> pa.Table:
    """One row per case of the recipe, of the full schema."""
    cells = list(product(recipe.backends, recipe.operators, recipe.dtypes, recipe.aspects))
    rows, random = len(cells) * recipe.cases, np.random.default_rng(recipe.seed)
    number = np.tile(np.arange(recipe.cases), len(cells))
    backend, operator, dtype, aspect = np.repeat(np.array(cells, object), recipe.cases, axis=0).T
    verdict = np.full(rows, "conforms", object)
    for place, cell in enumerate(cells):
        chosen = recipe.verdicts.get(cell[1:], ())[: recipe.cases]
        verdict[place * recipe.cases : place * recipe.cases + len(chosen)] = chosen
    first_id = str(recipe.waivers[0]["id"]) if recipe.waivers else "somebody"
    backward = 64 + number % 64
    exact = backward // 2
    alike: dict[str, Any] = {"index_dtype": "int64", "route": "contiguous", "model": "acc32", "shape": "1x1x12x16"}
    alike |= {"worker": "gw0", "checks_judged": ["refusal", "interval", "written", "repeat"], "ulp_nonfinite": 0}
    alike |= {"k_cells": [150, 42], "k_error": [0.0, 0.4 * recipe.ulps], "k_bound": [0.0, 1.5]}
    columns: dict[str, Any] = {
        **{name: [value] * rows for name, value in alike.items()},
        "case_id": [_case_id(*key, recipe.seed) for key in zip(operator, dtype, aspect, number, strict=True)],
        "case": [_case(*call, recipe.seed) for call in zip(operator, dtype, number, strict=True)],
        "block": np.char.add(aspect.astype(str), "-0"),
        "aspect": aspect,
        "backend": backend,
        "product": [recipe.backends[name] for name in backend],
        "operator": operator,
        "dtype": dtype,
        "elements": backward,
        "verdict": verdict,
        "reason": [_reason(kind) for kind in verdict],
        "checks_violated": [VIOLATED.get(kind, []) for kind in verdict],
        "findings": [_findings(kind) for kind in verdict],
        "waivers": [[first_id] if kind == "waived" else None for kind in verdict],
        "n": backward,
        "n_single_valued": backward,
        "n_reject": np.where(verdict == "violates", 1, 0),
        "n_bitexact": exact,
        "max_ulp": recipe.ulps * random.uniform(0.4, 0.5, rows),
        "ulp_0": exact,
        "ulp_le05": backward - exact,
        "bias_ulp": random.uniform(-0.01, 0.01, rows),
        "n_inexact": backward - exact,
        "margin_min": random.uniform(0.2, 0.9, rows) / recipe.ulps,
        "call_seconds": recipe.slowdown * 1e-4 * np.exp(random.normal(0.0, 0.1, rows)),
        "seconds": recipe.slowdown * 2e-3 * np.exp(random.normal(0.0, 0.1, rows)),
        "judged_at": recipe.started + np.linspace(0.0, 60.0, rows),
    }
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type)
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def shown(digest: Digest, width: int = 200, **given: Any) -> str:
    """What a terminal shows of a run."""
    file = StringIO()
    show(digest, SafeConsole(file=file, width=width), **given)
    return file.getvalue()


def write_lost_gradient(folder: Path, case_id: str, backend: str) -> Path:
    """Evidence of a pool of 12 x 16 cells, windows of 3 x 3 that move by 2, in which one gradient was lost."""
    random = np.random.default_rng(1)
    first = np.array([(row, column) for row in range(0, 10, 2) for column in range(0, 14, 2)])
    target = first + random.integers(0, 3, first.shape)
    indices = target[:, 0] * 16 + target[:, 1]
    gradient = random.integers(-9, 10, len(first)).astype(float)
    gradient[17] = 7.0
    exact = np.bincount(indices, gradient, 12 * 16).reshape(1, 1, 12, 16)
    got = exact.copy()
    got[0, 0, *target[17]] -= 7.0
    arrays = {
        "got": got,
        "low": exact,
        "high": exact,
        "flags": np.full(exact.shape, LATTICE, np.uint8),
        "lattice": np.zeros(exact.shape, np.int32),
        "exact": exact,
        "gradient": gradient[None],
        "indices": indices[None],
        "window_first": first,
        "window_last": first + 2,
    }
    path = evidence_path(folder, case_id, backend)
    write_evidence(path, arrays, Meta(tensor="grad_input", spatial_rank=2, element=[0, 0, *map(int, target[17])]))
    write_programs(folder)
    return path


def _case(operator: str, dtype: str, number: int, seed: int) -> str:
    call = {"operator": operator, "shape": [1, 1, 12, 16], "dtype": dtype, "kernel_size": [3, 3], "stride": [2, 2]}
    return json.dumps(call | {"seed": int(seed) * 1000 + int(number)}, separators=(",", ":"))


def _case_id(operator: str, dtype: str, aspect: str, number: int, seed: int) -> str:
    return blake2b(f"{operator} {dtype} {aspect} {number} {seed}".encode(), digest_size=6).hexdigest()


def _reason(verdict: str) -> str:
    reasons = {
        "violates": "grad_input[0, 0, 5, 7]: got 0, expected 7; 1 of 192 cells are wrong; as if a gradient were lost",
        "crashed": "the call ended by signal SIGSEGV",
        "not run": "no device is free",
    }
    return reasons.get(verdict, reasons["violates"] if verdict == "waived" else "")


def _findings(verdict: str) -> str:
    if verdict not in ("violates", "waived"):
        return ""
    finding = {"check": "interval", "message": _reason(verdict), "wrong": 1, "judged": 192, "element": [0, 0, 5, 7]}
    return json.dumps([finding | {"expected": "7", "got": "0", "windows": [[0, 0, 2, 3]]}])
