"""Whether the emulator's ABI and phases behave as the real ones are documented and were observed to."""

import ctypes
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from ctypes import byref, c_void_p
from dataclasses import asdict

import numpy as np
import pytest

from contract_calls import MASK, observed_rows
from emulated_calls import prepared
from emulator_driver import Emulator, dense, fresh
from observed_statuses import score
from places import SUPPORT
from poolproof.backends.aclnn.prototypes import DEVICE_TO_HOST, HOST_TO_DEVICE
from poolproof.backends.emulator import library
from poolproof.backends.emulator.defects import defects


@pytest.fixture(scope="module")
def a2() -> Iterator[Emulator]:
    with fresh(library(), "A2", DISABLE_L2_CACHE="1") as emulator:
        yield emulator


def test_memory_misuse(a2: Emulator) -> None:
    block, freed = a2.malloc(64), a2.malloc(64)
    a2.call("aclrtFree", freed)
    host = ctypes.create_string_buffer(128)
    assert a2.aclrtMalloc(byref(c_void_p()), 0, 0) == 100000
    assert a2.aclrtMalloc(byref(c_void_p()), 64, 999) == 100000
    assert a2.aclrtFree(None) == 100000
    assert a2.aclrtFree(freed) == 207002
    assert "freed before" in a2.message()
    assert a2.aclrtFree(host) == 207002
    assert a2.aclrtMemcpy(None, 0, None, 0, 99) == 0, "nothing is looked at when there is nothing to copy"
    assert a2.aclrtMemcpy(block, 64, None, 64, HOST_TO_DEVICE) == 100000
    assert a2.aclrtMemcpy(block, 32, host, 64, HOST_TO_DEVICE) == 100000
    assert a2.aclrtMemcpy(block, 64, host, 64, 99) == 100000
    assert a2.aclrtMemcpy(block, 128, host, 65, HOST_TO_DEVICE) == 107000, "past the end of the block"
    assert a2.aclrtMemcpy(host, 64, freed, 64, DEVICE_TO_HOST) == 107000
    assert "was freed" in a2.message()
    assert a2.aclrtMemcpy(host, 64, host, 64, HOST_TO_DEVICE) == 107000
    seen = np.zeros(16, np.float32)
    a2.download(seen, block)
    assert np.isnan(seen).all(), "new memory is dirty"
    a2.call("aclrtFree", block)


CURRENT = {"A2": "Ascend910B1", "A3": "Ascend910_9382", "950": "Ascend950PR_9591"}
OLDER = {"910": "Ascend910A", "310P": "Ascend310P3", "310B": "Ascend310B1"}


@pytest.mark.parametrize(("product", "soc"), (CURRENT | OLDER).items())
def test_products(product: str, soc: str) -> None:
    with fresh(library(), product) as emulator:
        assert emulator.aclrtGetSocName().decode() == soc
        assert prepared(emulator).launch().phase_one == (0 if product in CURRENT else 161002)


@pytest.mark.parametrize(
    ("setting", "value", "complaint"),
    [
        ("PRODUCT", "A4", "none of A2"),
        ("DEVICES", "x", "positive whole number"),
        ("VERSION", "9.0", "no version such as 9.0.0"),
        ("DEFECTS", "nonsense", "unknown defect nonsense"),
    ],
)
def test_wrong_settings_abort_with_a_reason(setting: str, value: str, complaint: str) -> None:
    script = "import sys; from emulator_driver import Emulator; Emulator(sys.argv[1]).read_settings()"
    variables = {**os.environ, "PYTHONPATH": str(SUPPORT), f"POOLPROOF_EMULATOR_{setting}": value}
    command = [sys.executable, "-c", script, str(library())]
    done = subprocess.run(command, env=variables, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    assert complaint in done.stderr


def test_phase_two_consumes_the_executor(a2: Emulator) -> None:
    before = {kind: a2.living(kind) for kind in ("tensors", "int_arrays", "executors", "device_blocks")}
    free, call = a2.free_memory(), prepared(a2)
    for _ in range(3):
        assert call.launch().ok
    _, _, unused = call.plan()
    assert a2.living("executors") == before["executors"] + 1
    a2.call("aclDestroyAclOpExecutor", unused)
    call.destroy()
    assert {kind: a2.living(kind) for kind in before} == before
    assert a2.free_memory() == free


def test_recorded_statuses() -> None:
    rows, counts = observed_rows(), Counter[str]()
    for product in {row["product"] for row in rows}:
        with fresh(library(), product, DISABLE_L2_CACHE="1") as emulator:
            for row in rows:
                if row["product"] == product:
                    counts.update(score(emulator, row, row["api"]))
    dead = sum(count for name, count in counts.items() if name.startswith("the library crashed"))
    assert dead == 38
    assert counts["status agrees"] == len(rows), counts
    assert (counts["tiling key agrees"], counts["tiling refusal agrees"]) == (378, 43)
    assert not counts["results written on failure, or not on success"]


def test_a_mask_that_is_too_short_is_found_by_the_device() -> None:
    """It is one byte long, where a mask of 4 planes of 16 windows of 4 cells has more than 64."""
    with fresh(library(), "A2") as emulator:
        plane, pooled, mask = np.zeros((1, 4, 8, 8), "f4"), np.zeros((1, 4, 4, 4), "f4"), np.zeros((1, 1, 1, 1), "i1")
        given = {"gradOutput": pooled, "self": plane, "indices": mask, "gradInput": plane}
        windows = {"kernelSize": [2], "stride": [2], "padding": [0], "dilation": [1]}
        outcome = emulator.run(MASK, {name: dense(array) for name, array in given.items()}, windows)
        assert (outcome.phase_one, outcome.phase_two, outcome.synchronisation) == (0, 0, 507053)


def test_the_table_of_defects() -> None:
    """What python reads is what the library was compiled from."""
    with fresh(library(), "A2") as emulator:
        table = json.loads(emulator.poolproof_emulator_defects())
    read = [asdict(each) | {"class": each.group, "products": " ".join(each.products)} for each in defects().values()]
    assert table == [{name: row[name] for name in table[0]} for row in read]
    assert len(read) >= 70
    assert all(all(row.values()) for row in table)
    assert {row["severity"] for row in table} == {"critical", "high", "medium", "low"}
    assert {row["difficulty"] for row in table} == {1, 2, 3, 4, 5}
    assert all(set(defect.products) <= {"A2", "A3", "950"} for defect in defects().values())
