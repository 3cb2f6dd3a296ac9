"""Programs that tests start import the helpers in this folder, as the tests themselves do."""

import atexit
import gc
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import gettempdir

import pytest

import forked
import shared_runs
from places import SUPPORT
from poolproof.backends.emulator.build import SINGLE_NAME
from poolproof.backends.host.server import mapped_libraries
from poolproof.references.kernels import criterion, forward, numbers, sums
from poolproof.references.kernels.compiled import Compiled, compile_all, in_numpy
from poolproof.reports.bundle import packing
from poolproof.reports.bundle.packing import derived_files
from poolproof.reports.figures.digest import Digest
from poolproof.reports.rows.store import content_hash
from poolproof.suites.isolation import landlock, supervision
from poolproof.suites.verify import verification
from shared_runs import made_once, make_diagnosed_run, make_failing_run

Derive = Callable[[Digest, Path], dict[str, Path]]


def derived_once(factory: pytest.TempPathFactory) -> Derive:
    """In place of `derived_files`: those of a record with the same content are made once, and nobody writes to them."""
    made: dict[str, dict[str, Path]] = {}

    def derived(digest: Digest, scratch: Path) -> dict[str, Path]:
        content = content_hash(digest.folder)
        if content not in made:
            made[content] = derived_files(digest, factory.mktemp("derived"))
        return made[content]

    return derived


def pytest_configure() -> None:
    """Let backends write where tests look for what they did, and commands print as wide as to any other pipe."""
    os.environ[landlock.WRITABLE_VARIABLE] = gettempdir()
    os.environ.pop("COLUMNS", None)  # workers of pytest-xdist have it


def pytest_collection_finish() -> None:
    """What was imported and collected stays: looking through it for garbage again and again took a twentieth of all."""
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # at its end an interpreter collects what it can: bindings report the rest as leaks


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))


@pytest.fixture(autouse=True, scope="module")
def _no_emulator_in_this_process() -> Iterator[None]:
    """The emulator reads its product and its defect once, and every copy loaded later would call into the first one."""
    yield
    assert not [path for path in mapped_libraries() if path.endswith(SINGLE_NAME)], "a test loaded the emulator itself"


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> shared_runs.RunOf:
    """Makes a run of `shared_runs` once, or finds it; to be read."""
    return partial(shared_runs.run_of, factory=tmp_path_factory)


@pytest.fixture(scope="session")
def failing_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a real ``run`` that conforms, violates, crashes and waives, and its ``bundle.zip``; to be read."""
    pytest.importorskip("torch")
    return made_once(tmp_path_factory, "failing", make_failing_run)


@pytest.fixture(scope="session")
def diagnosed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a real ``run`` of a defect that further cases have told the condition of; to be read."""
    return made_once(tmp_path_factory, "diagnosed", make_diagnosed_run)


@pytest.fixture
def run(failing_run: Path, tmp_path: Path) -> Path:
    """A copy of that run, to be changed."""
    return Path(shutil.copytree(failing_run / "run", tmp_path / "run"))


@pytest.fixture
def bundle(failing_run: Path, tmp_path: Path) -> Path:
    """A copy of its bundle, to be changed."""
    return Path(shutil.copy(failing_run / "bundle.zip", tmp_path / "bundle.zip"))


@pytest.fixture(scope="session")
def _derived_once(tmp_path_factory: pytest.TempPathFactory) -> Derive:
    return derived_once(tmp_path_factory)


@pytest.fixture
def deriving_once(_derived_once: Derive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of the same record are made once in all such tests, by who packs and by who verifies."""
    for module in (packing, verification):
        monkeypatch.setattr(module, "derived_files", _derived_once)


@pytest.fixture
def forked_sandboxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sandboxes are forks of this process, without a guardian: most of a small one is the start of its interpreter."""
    compile_all()
    monkeypatch.setattr(supervision, "launched", forked.launched)


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels run as they are written."""
    for module in (numbers, sums, criterion, forward):
        for function in vars(module).values():
            if isinstance(function, Compiled):
                monkeypatch.setitem(function.__dict__, "_run", in_numpy(function.py_func))
