"""Work in threads gives what work in one gives, in the order of the chunks, and keeps few of them."""

import os
import threading
import time
from functools import partial

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


def test_results_come_in_the_order_of_the_chunks() -> None:
    def work(chunk: int) -> tuple[int, str]:
        time.sleep(0.02 if chunk % PROCESSORS == 0 else 0.0)
        return chunk, threading.current_thread().name

    chunks, threads = zip(*threaded_map(work, iter(range(20)), cells=1), strict=True)
    assert chunks == tuple(range(20))
    assert 1 < len({*threads}) <= PROCESSORS and threading.current_thread().name not in threads


def test_what_work_raises_of_any_chunk_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        threaded_map(lambda chunk: 6 // (17 - chunk), range(20), cells=1)


def test_the_judgement_of_many_planes_is_that_of_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)

    def judged() -> Summary:
        return summarise([partial(PlaneChunk, *chunk) for chunk in chunks], 50, FLOAT32, ACC32)

    chunks = []
    for _ in range(40):
        cells, terms = random.integers(0, 50, 120), random.normal(size=120).astype(np.float32).astype(np.float64)
        cells[60:] += 50
        sums = np.zeros(100)
        np.add.at(sums, cells, terms)
        chunks.append((cells, terms, sums.astype(np.float32).astype(np.float64)))
    chunks[17][2][31] += 1.0
    several = judged()
    assert several.tally.cells == 40 * 2 * 50 and several.tally.rejected == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert judged() == several
