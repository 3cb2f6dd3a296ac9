"""Evidence files: what goes in comes out, what is wrong is named, and judging again follows the stored intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from poolproof.reports.rows.evidence import EvidenceError, Meta, evidence_path, read_evidence, write_evidence
from poolproof.reports.rows.rejudge import LATTICE, NAN, NEGATIVE_INFINITY, POSITIVE_INFINITY, ZERO, rejected


def arrays() -> dict[str, Any]:
    one = np.ones((1, 2, 2))
    return {"got": one, "low": one - 1, "high": one, "flags": np.zeros(one.shape, np.uint8)}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = evidence_path(tmp_path, "0123456789ab", "my.module:Backend")
    write_evidence(path, arrays(), Meta(tensor="grad_input"))
    assert path.name == "my.module_Backend-0123456789ab.npz"
    evidence = read_evidence(path)
    assert evidence.meta == {"tensor": "grad_input"}
    assert not evidence.rejected.any()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("got", "low", "high", "flags", "lattice", "admissible"),
    [
        (1.0, 1.0, 1.0, 0, 0, True),
        (1.5, 1.0, 1.25, 0, 0, False),
        (1.5, 1.0, 2.0, LATTICE, 0, False),
        (1.5, 1.0, 2.0, LATTICE, -1, True),
        (1.5, 1.0, 2.0, 0, 0, True),
        (np.inf, 1.0, 2.0, 0, 0, False),
        (np.inf, 1.0, 2.0, POSITIVE_INFINITY, 0, True),
        (-np.inf, 1.0, 2.0, POSITIVE_INFINITY, 0, False),
        (-np.inf, 1.0, 2.0, NEGATIVE_INFINITY, 0, True),
        (np.nan, -np.inf, np.inf, 0, 0, False),
        (np.nan, 1.0, 0.0, NAN, 0, True),
        (0.5, 1.0, 0.0, NAN, 0, False),
        (0.0, 1.0, 2.0, ZERO, 0, True),
        (-0.0, 0.0, 0.0, LATTICE, 5, True),
        (65504.0, 0.0, 65504.0, LATTICE, 20, True),
    ],
)
def test_judging_again(got: float, low: float, high: float, flags: int, lattice: int, admissible: bool) -> None:
    stored = {name: np.array([value]) for name, value in (("got", got), ("low", low), ("high", high))}
    stored |= {"flags": np.array([flags], np.uint8), "lattice": np.array([lattice], np.int32)}
    assert rejected(stored, limit=65504.0).tolist() == [not admissible]


def test_wrong_arrays_and_damaged_files_are_named(tmp_path: Path) -> None:
    complete = arrays()
    for wrong, complaint in (
        (complete | {"low": np.zeros(3)}, "'low' must have the shape of 'got'"),
        (complete | {"colour": np.zeros(3)}, "no array 'colour'"),
        (complete | {"gradient": np.zeros(3)}, "'gradient' must come with 'indices'"),
        ({name: complete[name] for name in complete if name != "high"}, "'high' is missing"),
    ):
        with pytest.raises(EvidenceError, match=complaint):
            write_evidence(tmp_path / "a.npz", wrong, Meta())
    assert not list(tmp_path.rglob("*.npz"))
    for content in (b"", b"PK\x03\x04", b"something else"):
        (tmp_path / "x.npz").write_bytes(content)
        with pytest.raises(EvidenceError, match="is not evidence of a case"):
            read_evidence(tmp_path / "x.npz")
