"""Compiled functions: what they take, that nothing is compiled early, and every state that the disk may be in."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from poolproof.references.kernels import compiled as module
from poolproof.references.kernels.compiled import VARIABLE, Flags, Floats, compiled, helper


class Step(NamedTuple):
    width: float
    times: int


@helper
def doubled(value: float) -> float:
    return 2.0 * value


@compiled
def steps(start: Floats, step: Step, taken: Flags) -> float:
    """Where a walk ends."""
    for i in range(start.size):
        if taken[i]:
            start[i] += doubled(step.width) * step.times
    return start.sum()


def walk() -> float:
    return steps(np.ones(3), Step(0.5, 4), np.array([True, False, True]))


PROGRAM = """
import sys
from poolproof.references.kernels.compiled import Compiled
import test_compiled
assert not {"numba", "llvmlite"} & set(sys.modules), "compiled before anything was called"
assert test_compiled.walk() == 11.0
print(test_compiled.steps.dispatcher.stats.cache_hits)
"""


def start(home: Path) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name not in (VARIABLE, "NUMBA_CACHE_DIR")}
    environment |= {"XDG_CACHE_HOME": str(home), "PYTHONPATH": str(Path(__file__).parent)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, **pipes)  # type: ignore[call-overload]


def end(process: subprocess.Popen[str]) -> bool:
    """Whether the code came from disk."""
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return "Array" in said


def test_the_same_source_runs_compiled_and_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert walk() == steps.py_func(np.ones(3), Step(0.5, 4), np.array([True, False, True])) == 11.0
    for others in (np.ones(3, np.float32), np.ones(6)[::2]):
        with pytest.raises(TypeError):
            steps(others, Step(0.5, 4), np.ones(3, bool))
    again = compiled(steps.py_func)
    monkeypatch.setenv(VARIABLE, "1")
    assert again(np.ones(3), Step(0.5, 4), np.array([True, False, True])) == 11.0
    assert again(np.array([1e308]), Step(1e308, 4), np.ones(1, bool)) == np.inf, "and no warning"
    assert "dispatcher" not in again.__dict__


def test_of_processes_that_want_it_at_once_one_compiles_and_later_ones_find_it_unless_damaged(tmp_path: Path) -> None:
    together = [start(tmp_path), start(tmp_path)]
    assert sorted(end(process) for process in together) == [False, True]
    assert end(start(tmp_path))
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    for path in kept:
        path.write_bytes(path.read_bytes()[:40])
    assert not end(start(tmp_path))


def test_an_interrupt_while_it_runs_is_raised_behind_it() -> None:
    """As soon as the compiled code is left Python calls the handler, and before, numba makes the results."""
    program = """if True:
        import signal
        import numpy as np
        from poolproof.references.accumulation import ACC32
        from poolproof.references.criterion import admissible, scatter_sums
        from poolproof.references.formats import FLOAT32
        from poolproof.references.summary import PlaneChunk, summarise

        size = 1_000_000
        cells, ones = np.arange(size), np.ones(size)
        sums = scatter_sums(cells, ones, size)
        for call in (
            lambda: summarise([lambda: PlaneChunk(cells, ones, ones)], size, FLOAT32, ACC32),
            lambda: scatter_sums(cells, ones, size),
            lambda: admissible(sums, FLOAT32, ACC32).accepts(ones),
        ):
            call()  # which may compile
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.002)
                call()
            except KeyboardInterrupt:
                print("interrupted")
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["interrupted"] * 3), done.stderr
    with pytest.raises(TypeError, match="returns_a_step returns what numba makes"):

        @compiled
        def returns_a_step(width: float) -> Step:
            return Step(width, 1)


def test_without_a_place_to_write_code_is_compiled_in_memory(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    assert not end(start(in_the_way))


def test_an_upgrade_does_not_find_what_was_compiled_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba would: it looks at the file of the function that is called, not at the one where a helper of it changed."""
    for source in Path(module.__file__).parent.glob("*.py"):
        shutil.copy(source, tmp_path)
    monkeypatch.setattr(module, "__file__", str(tmp_path / "compiled.py"))
    before = module._fingerprint()
    assert module._fingerprint() == before
    with (tmp_path / "compiled.py").open("a") as file:
        file.write("# changed\n")
    assert module._fingerprint() != before
