"""Whether the emulator's phases answer as the operator library's host code was observed to, and otherwise with defects.

The record is of phase one; besides it one call for each thing that only phase two, or a device, would tell.
"""

import json
from collections import Counter
from ctypes import c_uint64, c_void_p
from dataclasses import asdict

from contract_calls import MASK, MP2, MP3, observed_rows
from emulated_calls import prepared, views_of
from emulator_driver import PreparedCall, fresh
from observed_statuses import score
from poolproof.backends.emulator import library
from poolproof.backends.emulator.defects import defects


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


WINDOWS = {"kernelSize": [2], "stride": [2], "padding": [0], "dilation": [1]}


def test_results_stay_untouched_on_failure_and_a_wrong_indices_shape_is_only_mentioned() -> None:
    with fresh(library(), "A2") as emulator:
        size, executor, call = c_uint64(42), c_void_p(43), prepared(emulator)
        assert emulator.phase_one(MP3, [*call.arguments[:-1], None], size, executor) == 161001
        assert (size.value, executor.value) == (42, 43)
        assert emulator.phase_one(MP3, [None] * 9, None, executor) == 161001
        views = views_of([1, 1, 2, 1], [1, 1, 4, 2], [1, 1, 2, 2], "NCHW", MP2)
        with PreparedCall(emulator, MP2, views, WINDOWS) as call:
            status, _, executor = call.plan()
            assert status == 0
            assert "indices have shape [1, 1, 2, 2]" in emulator.message()
            emulator.call("aclDestroyAclOpExecutor", executor)


def test_a_mask_that_is_too_short_is_found_by_the_device() -> None:
    """It is one byte long, where a mask of 4 planes of 16 windows of 4 cells has more than 64."""
    with fresh(library(), "A2") as emulator:
        views = views_of([1, 4, 4, 4], [1, 4, 8, 8], [1, 1, 1, 1], "NCHW", MASK)
        outcome = emulator.run(MASK, views, WINDOWS)
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
