"""Work in threads gives what work in one gives, in the order of the chunks, and keeps few of them."""

import os
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from poolproof.references.accumulation import ACC32
from poolproof.references.formats import FLOAT32
from poolproof.references.summary import PlaneChunk, Summary, summarise
from poolproof.references.threads import threaded_map

PROCESSORS = 3


@pytest.fixture(autouse=True)
def several_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(PROCESSORS)))


def test_results_come_in_the_order_of_the_chunks_and_few_are_made_ahead() -> None:
    made: list[int] = []

    def chunks() -> Iterator[int]:
        for chunk in range(20):
            made.append(chunk)
            yield chunk

    def work(chunk: int) -> tuple[int, str]:
        time.sleep(0.02 if chunk % PROCESSORS == 0 else 0.0)
        return chunk, threading.current_thread().name

    threads = set()
    for number, (chunk, thread) in enumerate(threaded_map(work, chunks(), cells=1)):
        assert chunk == number and len(made) <= max(8, number + PROCESSORS + 2)
        threads.add(thread)
    assert len(made) == 20 and 1 < len(threads) <= PROCESSORS and "MainThread" not in threads


@pytest.mark.parametrize(("chunks", "cells"), [(7, 1), (20, 1 << 20)])
def test_few_chunks_and_large_ones_stay_where_they_are_asked_for(chunks: int, cells: int) -> None:
    found = set(threaded_map(lambda _: threading.current_thread().name, range(chunks), cells))
    assert found == {threading.current_thread().name}


def test_what_work_raises_comes_where_its_result_is_due() -> None:
    results = threaded_map(lambda chunk: 6 // (3 - chunk), range(9), cells=1)
    assert [next(results), next(results), next(results)] == [2, 3, 6]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_the_judgement_of_many_planes_is_that_of_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)

    def judged() -> Summary:
        return summarise(iter(chunks), 50, FLOAT32, ACC32)

    chunks = []
    for _ in range(40):
        cells, terms = random.integers(0, 50, 120), random.normal(size=120).astype(np.float32).astype(np.float64)
        sums = np.zeros((2, 50))
        np.add.at(sums, (np.repeat([0, 1], 60), cells), terms)
        chunks.append(PlaneChunk(cells, terms, sums.astype(np.float32).astype(np.float64).ravel()))
    chunks[17].outputs[31] += 1.0
    several = judged()
    assert several.tally.cells == 40 * 2 * 50 and several.tally.rejected == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert judged() == several
