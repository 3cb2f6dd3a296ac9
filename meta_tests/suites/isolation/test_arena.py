"""Regions of the arena: each to itself, aligned, given back when nobody looks at them any more."""

import gc
import os
import random
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.memory import ALIGNMENT, SMALL
from poolproof.suites.isolation.arena import Arena, shared_arena
from poolproof.suites.judging.case_question import CaseQuestion
from poolproof.suites.plan.aspects import ASPECTS
from poolproof.suites.run.runner import Runner

SIZES = (1, 63, 64, 65, 1000, 4097, 1 << 16, (1 << 16) + 1, 1 << 20, 5_000_001)
BEYOND = (0, 0, 0, 1, 5000)


def held_bytes(arena: Arena) -> int:
    return os.fstat(arena.descriptor).st_blocks * 512


def test_regions_never_overlap_and_fences_have_their_pages_to_themselves() -> None:
    arena, lots = Arena(1 << 31), random.Random(0)
    held: list[tuple[NDArray[np.uint8], int]] = []
    for number in range(3000):
        if held and lots.random() < 0.48:
            array, byte = held.pop(lots.randrange(len(held)))
            assert (array == byte).all(), "somebody else wrote here"
            continue
        size, beyond = lots.choice(SIZES), lots.choice(BEYOND)
        array = arena.allocate(size, beyond)
        at, fence = arena.place(array)
        assert fence >= beyond
        assert at % (16 if beyond else ALIGNMENT) == 0
        array[:] = number % 251
        held.append((array, number % 251))
        spans = sorted((place, place + len(other) + more) for other, _ in held for place, more in [arena.place(other)])
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert all((array == byte).all() for array, byte in held)


@pytest.mark.thorough
def test_what_the_garbage_collector_frees_while_memory_is_taken_is_given_to_one_alone() -> None:
    arena, lots, thresholds = Arena(1 << 30), random.Random(0), gc.get_threshold()
    held: list[tuple[list[object], int, int]] = []
    try:
        for _ in range(20_000):
            gc.set_threshold(lots.randrange(3, 40))
            array = arena.allocate(lots.choice((1, 5000, 20_000)))
            at = arena.place(array)[0]
            assert all(at >= end or at + len(array) <= start for _, start, end in held)
            cycle: list[object] = [array]
            cycle.append(cycle)  # so that the collector alone frees it
            held.append((cycle, at, at + len(array)))
            del array, cycle
            if len(held) > 20:
                held.pop(lots.randrange(len(held)))
    finally:
        gc.set_threshold(*thresholds)


def test_freed_memory_is_used_again_and_large_regions_go_back_to_the_system() -> None:
    arena = Arena(1 << 30)
    places = set()
    for size in (100, 100_000, 1 << 24):
        for _ in range(3):
            array = arena.allocate(size)
            array[:] = 1
            places.add(arena.place(array)[0])
            del array
    assert places == {0}
    assert held_bytes(arena) < 1 << 25
    large = arena.allocate(1 << 28)
    large[:] = 1
    assert held_bytes(arena) >= 1 << 28
    del large
    assert arena.reclaim() == 0
    assert held_bytes(arena) < 1 << 25


@pytest.mark.usefixtures("forked_sandboxes")
@pytest.mark.parametrize("fault", ["honest", "lost"])
def test_no_tensor_outlives_its_case(tmp_path: Path, fault: str) -> None:
    """Not where a case fails, is repeated and leaves evidence either: what is left is the memory of small tensors."""
    case = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 2, 150, 150), kernel_size=(2,), seed=5)
    assert case.memory_bytes() > SMALL
    rows: list[Row] = []
    gc.collect()
    others = shared_arena().reclaim()  # of tests before, in the same process
    with closing(Runner(tmp_path, "main", lambda row: row, rows.append, 20.0, shrinks=False)) as runner:
        for aspect in ("values", "state"):
            runner.judge_one(CaseQuestion(case, ASPECTS[aspect], "block"), f"scatter_backends:{fault}")
        gc.collect()
        assert shared_arena().reclaim() <= others + 1
    assert {row["verdict"] for row in rows} == {Verdict.CONFORMS if fault == "honest" else Verdict.VIOLATES}


def test_what_does_not_fit_is_a_memory_error() -> None:
    arena = Arena(1 << 20)
    with pytest.raises(MemoryError, match="2,097,152 bytes in a row are not free in the 1,048,576"):
        arena.allocate(1 << 21)
