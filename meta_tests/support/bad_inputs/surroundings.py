"""Environment variables: those that we read, with values that mean nothing, and those of surroundings at worst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bad_inputs import HONEST, Ending, Given, small_session
from bad_inputs.materials import RUN, copies, odd_things, together
from bad_inputs.options import CASE

_REFUSED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "POOLPROOF_EMULATOR_DEFECTS": ("emulator-a2", ("no-such-defect", "no,such")),
    "POOLPROOF_EMULATOR_SANITIZER": ("emulator-a2", ("beauty",)),
    "POOLPROOF_NPU": ("emulator-a2", ("x", "-1", "99", "1.5")),
    "POOLPROOF_WORKER": ("emulator-a2", ("x", "gw0")),
    "CXX": ("emulator-a2", ("/bin/false",)),
    "XDG_CACHE_HOME": ("emulator-a2", ("a-file", "a-loop")),
    "HOME": ("emulator-a2", ("a-file",)),
}
"""Variables that we read: a backend that reads them, and values that it cannot use."""

_SUMMARIES = ("nowhere/summary.md", "a-folder", "a-loop", "a-file/summary.md", "a-pipe", "x" * 300)
"""Where GitHub's job summary cannot be put."""

_HARMLESS: Mapping[str, tuple[str | None, ...]] = {
    "COLUMNS": ("1", "0", "-5", "x", "100000"),
    "LINES": ("0", "x"),
    "TERM": ("dumb", "", "no-such-terminal", None),
    "NO_COLOR": ("1",),
    "FORCE_COLOR": ("1",),
    "LANG": ("C", "POSIX", "xx_YY.ISO-8859-5", ""),
    "LC_ALL": ("C", "no_SUCH.locale"),
    "PYTHONIOENCODING": ("ascii", "latin-1", "ascii:replace"),
    "PYTHONUTF8": ("0",),
    "HOME": ("/dev/null/nobody", "", None),
    "USER": (None, ""),
    "TZ": ("Nowhere/Atlantis", "", "UTC+99"),
    "CUDA_VISIBLE_DEVICES": ("x",),
    "OMP_NUM_THREADS": ("x", "-1"),
    "GITHUB_ACTIONS": ("true", "false", "maybe"),
    "GITHUB_STEP_SUMMARY": ("", None),
    "GITLAB_CI": ("true",),
    "CI": ("", "false"),
    "POOLPROOF_EMULATOR_DEFECTS": ("no-such-defect",),
}
"""Variables of the surroundings that say nothing about what is asked, and that must not get in its way."""


def listed() -> Iterator[Given]:
    for number, (name, value) in enumerate((name, value) for name, values in _HARMLESS.items() for value in values):
        environment = {name: value}
        if number % 2:
            arguments = small_session("--ci=auto")
            yield Given(
                f"variable: {name}={value!r}", "pytest", arguments, (), Ending.HARMLESS, environment=environment
            )
        else:
            yield _shown(f"variable: {name}={value!r}, shown", environment)
    yield Given(
        "variable: POOLPROOF_MEMORY_BUDGET='x'",
        "poolproof",
        ("replay", CASE, "--backend", HONEST),
        ending=Ending.HARMLESS,
        environment={"POOLPROOF_MEMORY_BUDGET": "x"},
    )
    lay = together(odd_things, copies(RUN))
    for name, value in (("TMPDIR", "missing"), ("TMPDIR", "a-file"), ("TMPDIR", "")):
        yield Given(f"variable: {name}={value}", "pytest", small_session(), (), Ending.HARMLESS, "", lay, {name: value})
    for target in _SUMMARIES:
        yield Given(
            f"variable: GITHUB_STEP_SUMMARY={target:.40}",
            "pytest",
            small_session("--ci=github"),
            (f"cannot write {target}"[:60],),
            Ending.UNPUBLISHED,
            lay=lay,
            environment={"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": target},
        )
    for name, (backend, values) in _REFUSED.items():
        for value in values:
            arguments = small_session("--dtype=float32", backend=backend)
            names = (name, value or name, backend)
            yield Given(
                f"variable: {name}={value!r}", "pytest", arguments, names, lay=odd_things, environment={name: value}
            )


def _shown(name: str, environment: Mapping[str, str | None]) -> Given:
    """The run that violates, shown: its status stands."""
    return Given(name, "poolproof", ("show", RUN), (), Ending.SHOWN, lay=copies(RUN), environment=environment)
