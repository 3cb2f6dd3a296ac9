"""Whether seeded defects show, where values alone do not show them.

What a defect does to values is the business of the suite, which is scored by how many defects it finds.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import pytest

from emulated_calls import API_2D, API_3D, API_ADAPTIVE_2D, poison, prepared, views_of
from emulator_driver import Emulator, fresh
from places import SUPPORT
from poolproof.backends.emulator import library
from poolproof.backends.emulator.defects import VARIABLE, defects


def test_the_table_of_defects() -> None:
    """What python reads is what the library was compiled from."""
    with fresh(library(), "A2") as emulator:
        table = json.loads(emulator.poolproof_emulator_defects())
    read = [
        asdict(defect) | {"class": defect.group, "products": " ".join(defect.products)} for defect in defects().values()
    ]
    assert table == [{name: row[name] for name in table[0]} for row in read]
    assert len(read) >= 70
    assert all(all(row.values()) for row in table)
    assert {row["severity"] for row in table} == {"critical", "high", "medium", "low"}
    assert {row["difficulty"] for row in table} == {1, 2, 3, 4, 5}
    assert all(set(defect.products) <= {"A2", "A3", "950"} for defect in defects().values())


@pytest.fixture
def defective(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    with fresh(library(), "A2", POOLPROOF_EMULATOR_DEFECTS=request.param) as emulator:
        yield emulator


@pytest.mark.parametrize("defective", ["leak_per_call"], indirect=True)
def test_a_seeded_leak(defective: Emulator) -> None:
    call = prepared(defective)
    free = defective.free_memory()
    assert call.launch().ok
    assert defective.free_memory() < free


@pytest.mark.parametrize("defective", ["stale_cached_address"], indirect=True)
def test_a_seeded_stale_address(defective: Emulator) -> None:
    call, other = prepared(defective), prepared(defective)
    poison(other)
    assert call.launch().ok
    assert other.launch().ok
    assert (other.views["gradInput"].storage.view(np.uint8) == 0x7F).all()


@pytest.mark.parametrize("defective", ["empty_refused"], indirect=True)
def test_a_seeded_refusal(defective: Emulator) -> None:
    views = views_of([0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 1, 1], "NCHW", API_2D)
    assert defective.run(API_ADAPTIVE_2D, views).phase_one == 161002


@pytest.mark.parametrize("defective", ["write_past_output"], indirect=True)
def test_a_seeded_overrun(defective: Emulator) -> None:
    views = views_of([1, 1, 1, 1], [1, 1, 3, 3], [1, 1, 1, 1], "NCHW", API_2D)
    views["gradInput"].storage = np.full(32, 7, np.float32)
    assert defective.run(API_ADAPTIVE_2D, views).ok
    assert views["gradInput"].storage[:10].tolist() == [0.0] * 10


@pytest.mark.parametrize(
    ("defect", "planes", "dtype"), [("crash_on_uneven_cores", 49, "f4"), ("hang_on_idle_core", 1, "f2")]
)
def test_defects_that_end_a_process(defect: str, planes: int, dtype: str) -> None:
    """One plane more than an A2 has cores; a dilated half precision call, which adds in a scratch area."""
    script = f"""
import numpy
from poolproof.backends.emulator import library
from emulator_driver import Emulator, dense
emulator = Emulator(library())
views = {{name: dense(numpy.zeros(shape, dtype)) for name, shape, dtype in
         (("gradOutput", [{planes}, 1, 2, 2], {dtype!r}), ("self", [{planes}, 1, 4, 4], {dtype!r}),
          ("indices", [{planes}, 1, 2, 2], "i4"), ("gradInput", [{planes}, 1, 4, 4], {dtype!r}))}}
emulator.run({API_3D!r}, views, dict(kernelSize=[1, 2, 2], stride=[1], padding=[0], dilation=[2]))
"""
    environment = {**os.environ, VARIABLE: defect, "PYTHONPATH": str(SUPPORT)}
    process = subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.DEVNULL)
    if defect == "crash_on_uneven_cores":
        assert process.wait() == -signal.SIGSEGV
        return
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(3)
    process.kill()
    process.wait()
