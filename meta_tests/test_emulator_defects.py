"""Whether seeded defects show, where values alone do not show them.

What a defect does to values is the business of the suite, which is scored by how many defects it finds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from emulated_calls import API_2D, API_3D, API_ADAPTIVE_2D, poison, prepared, views_of
from emulator_driver import Emulator, fresh
from poolproof.backends.emulator import library


def test_the_table_of_defects() -> None:
    with fresh(library(), "A2") as emulator:
        table = json.loads(emulator.poolproof_emulator_defects())
    assert len({row["id"] for row in table}) == len(table) >= 20
    assert all(set(row) == {"id", "class", "clause", "trigger", "severity"} and all(row.values()) for row in table)


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


@pytest.mark.parametrize(("defect", "planes", "width"), [("crash_on_planes", 13, 4), ("hang_on_width", 1, 29)])
def test_defects_that_end_a_process(defect: str, planes: int, width: int) -> None:
    script = f"""
import numpy
from poolproof.backends.emulator import library
from emulator_driver import Emulator, dense
emulator = Emulator(library())
views = {{name: dense(numpy.zeros([{planes}, 1, 4, {width}], dtype)) for name, dtype in
         (("gradOutput", "f4"), ("self", "f4"), ("indices", "i4"), ("gradInput", "f4"))}}
emulator.run({API_3D!r}, views, dict(kernelSize=[1], stride=[1], padding=[0], dilation=[1]))
"""
    environment = {**os.environ, "POOLPROOF_EMULATOR_DEFECTS": defect}
    process = subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.DEVNULL)
    if defect == "crash_on_planes":
        assert process.wait() != 0
        return
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(3)
    process.kill()
    process.wait()
