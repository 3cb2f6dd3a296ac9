"""Names of backends, with a device behind a colon and without."""

from pathlib import Path

import pytest
from rich.status import Status

from poolproof.backends.base import BackendUnavailable, UnknownBackend
from poolproof.backends.registry import canonical, check_name, create, names
from poolproof.reports.terminal.painting import console
from poolproof.suites import commands
from poolproof.suites.plan.plans import Survey
from sessions import poolproof


def test_a_device_is_an_argument() -> None:
    for typed, known_as in (
        ("torch:cpu", "torch-cpu"),
        ("torch:npu", "torch-npu"),
        ("torch-compile:cpu", "torch-compile"),
        ("torch-compile:cuda", "torch-compile:cuda"),
        ("torch-cpu", "torch-cpu"),
        ("my.module:Mine", "my.module:Mine"),
    ):
        check_name(typed)
        assert canonical(typed) == known_as
    assert create("torch:cpu").interface == create("torch-cpu").interface == "torch-cpu"
    assert {"torch-cpu", "torch-cuda", "torch-npu", "torch-autograd", "torch-compile"} <= set(names())


def test_a_device_that_torch_is_not_asked_on_is_told() -> None:
    for device in ("tpu", "", "cuda:1"):
        with pytest.raises(UnknownBackend, match="torch runs on cpu, cuda, npu, such as torch:cuda"):
            check_name(f"torch:{device}")
    ended = poolproof("list", "--backend", "torch:tpu")
    assert (ended.exit_code, "backend 'torch:tpu': torch runs on" in ended.output) == (3, True)


def test_the_list_of_backends_says_in_short_what_each_is_and_whole_what_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    long = {"library liba.so": f"sha256:{'ab' * 32}, /liba.so", "wheel a": "1.0, RECORD", "abilities of X": "none"}

    here = Survey({"torch": "[2.13.0]"} | long, [], None)
    found = {"jax": BackendUnavailable("pip install 'poolproof[jax]'"), "torch-cpu": here}
    loading: list[str] = []
    monkeypatch.setattr(commands, "names", lambda: [*found])
    monkeypatch.setattr(commands, "AT_A_TIME", 2)
    monkeypatch.setattr(commands, "surveys", lambda _: iter(found.items()))
    monkeypatch.setattr(Status, "update", lambda _, text: loading.append(text))
    _, _, first, second, *_ = poolproof("backends").output.splitlines()[1:]
    assert loading == ["loading jax, torch-cpu", "loading torch-cpu"]
    assert first.split() == ["jax", "no", "pip", "install", "'poolproof[jax]'"]
    name, used, *said, library = second.split()
    assert (name, used, said, len(library)) == ("torch-cpu", "yes", ["torch", "[2.13.0],", "library"], 12)
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr(commands, "_console", console(soft_wrap=True))
    found["jax"] = BackendUnavailable("a reason " * 20)
    lines = poolproof("backends").output.splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["jax", "torch-cpu"] and max(map(len, lines)) <= 50
    monkeypatch.setattr(commands, "survey", lambda _: here)
    assert poolproof("backends", "torch-cpu").output.splitlines() == [f"{k}: {v}" for k, v in here.environment.items()]


def test_a_list_is_as_wide_as_the_variable_columns_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in (("", 140), ("64", 64), ("wide", 140)):
        monkeypatch.setenv("COLUMNS", columns)
        assert console().width == width


def test_the_cache_is_listed_and_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept, other = tmp_path / "poolproof" / "emulator" / "a1", tmp_path / "poolproof" / "notes"
    kept.mkdir(parents=True)
    other.mkdir()
    (kept / "library.so").write_bytes(bytes(3 << 20))
    assert f"3.0 MiB 1 build of the emulated NPU: {kept.parent}\n" in poolproof("cache").output
    assert f"0.0 MiB 0 builds of the emulated NPU: {kept.parent}\n" in poolproof("cache", "--clear").output
    assert (kept.parent.exists(), other.exists()) == (False, True), "only what poolproof has made is removed"
