"""What a run says of how far it is, and of how long the rest will take."""

import json
import os
import re
import time
from pathlib import Path

import pytest

from poolproof.reports import progress
from poolproof.reports.progress import Progress, Waiting


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def after(planned: dict[str, int], tests: list[tuple[str, int, float]], **named: float) -> tuple[Progress, Clock]:
    """A run of one worker that has ended these tests: aspect, cases and seconds of each."""
    clock = Clock()
    run = Progress(planned, clock=clock, **named)
    for aspect, cases, seconds in tests:
        clock.now += seconds
        run.add({aspect: cases}, 0, seconds, "gw0")
    return run, clock


def test_nothing_is_estimated_before_it_means_something() -> None:
    run, clock = after({"values": 1000}, [("values", 10, 60.0)])
    assert run.line() == "10 of 1,000 cases, 0 failed, 0 a second"
    clock.now += 1.0
    run.add({"values": 10}, 1, 1.0, "gw0")
    assert run.seconds_left() is None
    run, _ = after({"values": 210}, [("values", 10, 60.0), ("values", 100, 10.0)])
    assert run.seconds_left() == pytest.approx(10.0), "loading the backend is no price of a case"


def test_dear_aspects_are_priced_before_they_begin() -> None:
    """100 cases at a tenth of a second are done; 10 of models, each of which usually costs as much as 50, are not."""
    run, _ = after({"values": 110, "models": 10}, [("values", 10, 9.0), ("values", 100, 10.0)])
    assert run.seconds_left() == pytest.approx(10 * 50 * 0.1)
    run.add({"models": 5}, 0, 5.0, "gw0")
    assert run.seconds_left() == pytest.approx(5.0)


def test_workers_share_what_is_left() -> None:
    run, clock = after({"values": 420}, [("values", 10, 2.0), ("values", 100, 10.0)])
    run.add({"values": 10}, 0, 2.0, "gw1")
    assert run.seconds_left() == pytest.approx(15.0)
    assert run.line() == "120 of 420 cases, 0 failed, 10 a second, about 15 s left"
    assert run.line() is None
    clock.now += progress.SECONDS
    assert run.line() is None, "the second takes as long as the first"
    clock.now += progress.SECONDS
    assert run.line() is not None


def test_a_budget_ends_a_run_in_any_case() -> None:
    run, clock = after({"values": 1000}, [("values", 1, 1.0)], until=30.0)
    assert run.seconds_left() == 30.0 - clock.now
    run.add({"values": 500}, 0, 5.0, "gw0")
    assert run.seconds_left() == pytest.approx(4.99)


def test_lines_come_every_ten_minutes_however_long_a_run_lasts() -> None:
    run, clock = after({"values": 100_000}, [("values", 10, 3600.0)])
    assert run.line() is not None
    clock.now += progress.MOST_SECONDS
    assert run.line() is not None


def test_nothing_is_promised_when_the_time_of_a_budget_is_over() -> None:
    run, _ = after({"values": 1000}, [("values", 1, 1.0), ("values", 10, 40.0)], until=30.0)
    assert "left" not in run.line()


def test_a_case_that_does_not_end_is_named_meanwhile_and_one_that_ends_is_not(tmp_path: Path) -> None:
    flights = {name: tmp_path / f"in-flight-{name}.json" for name in ("gw0", "gw1")}
    for name, path in flights.items():
        path.write_text(json.dumps({"backend": "mine", "aspect": "values", "case": {"worker": name}}) + "   ")
    began = time.time() - 1000.0
    os.utime(flights["gw0"], (began, began))
    read, write = os.pipe()
    waiting = Waiting(tmp_path, write)
    first = os.read(read, 4096).decode()
    waiting.close()
    os.close(write)
    assert re.fullmatch(r"\n16 min \d+ s without an end: mine, aspect values, case {.*}\n", first)
    assert '"worker":"gw0"' in first
    assert os.read(read, 4096) == b"", "a case is named again after twice the time, and no case that has just begun"
    os.close(read)
