"""Environment variables: those that we read, with values that mean nothing, and those of surroundings at worst."""

from collections.abc import Iterator, Mapping
from functools import partial

from bad_inputs import HONEST, Ending, Given, small_session
from bad_inputs.materials import RUN, copies, odd_things, together
from bad_inputs.options import CASE

_REFUSED = {
    "POOLPROOF_EMULATOR_DEFECTS": ("no-such-defect", "no,such"),
    "POOLPROOF_EMULATOR_SANITIZER": ("beauty",),
    "POOLPROOF_NPU": ("x", "-1", "99", "1.5"),
    "POOLPROOF_WORKER": ("x", "gw0"),
    "CXX": ("/bin/false",),
    "XDG_CACHE_HOME": ("a-file", "a-loop"),
    "HOME": ("a-file",),
}
"""Variables that the emulator or its build reads, and values that it cannot use."""

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
    lay = together(odd_things, copies(RUN))
    given = partial(Given, program="pytest", lay=lay)
    for number, (name, value) in enumerate((name, value) for name, values in _HARMLESS.items() for value in values):
        what, variable = f"variable: {name}={value!r}", {name: value}
        if number % 2:
            yield given(what, arguments=small_session("--ci=auto"), ending=Ending.HARMLESS, environment=variable)
        else:
            yield Given(f"{what}, shown", "poolproof", ("show", RUN), (), Ending.SHOWN, lay=lay, environment=variable)
    asked, variable = ("replay", CASE, "--backend", HONEST), {"POOLPROOF_MEMORY_BUDGET": "x"}
    yield Given("variable: memory budget", "poolproof", asked, ending=Ending.HARMLESS, environment=variable)
    for folder in ("missing", "a-file", ""):
        what, variable = f"variable: TMPDIR={folder}", {"TMPDIR": folder}
        yield given(what, arguments=small_session(), ending=Ending.HARMLESS, environment=variable)
    for target in _SUMMARIES:
        what, told = f"variable: GITHUB_STEP_SUMMARY={target:.40}", (f"cannot write {target}"[:60],)
        variable = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": target}
        asked = small_session("--ci=github")
        yield given(what, arguments=asked, names=told, ending=Ending.UNPUBLISHED, environment=variable)
    for name, refused in _REFUSED.items():
        for value in refused:
            arguments, told = small_session("--dtype=float32", backend="emulator-a2"), (name, value, "emulator-a2")
            yield given(f"variable: {name}={value!r}", arguments=arguments, names=told, environment={name: value})
