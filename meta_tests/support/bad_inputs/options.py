"""Bad values of every option and argument: by its type where that says what is bad, else by its meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta

import click

from bad_inputs import HONEST, Ending, Given, session, small_session
from bad_inputs.materials import BUNDLE, FAILING_CASE, HISTORY, RUN, copies, odd_things, together
from poolproof.backends.emulator.defects import defects
from poolproof.reports import recorder
from poolproof.suites import plugin
from poolproof.suites.cli import main

CASE = '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,4,4],"kernel_size":[2]}'

_LONG = "x" * 300
_DAY = str(date.today() + timedelta(days=30))

_INPUTS = ("missing", "a-file", "a-folder", "a-device", "a-loop", "a-pipe", _LONG, "")
"""Paths of what cannot be read as what it should be."""

_OUTPUTS = ("a-file/out", "a-device/out", "a-loop", _LONG)
"""Paths that cannot be written. All lie in the folder of the input: the test may be run by somebody who may do all."""

_BACKENDS = ("abacus", "", ":", "nowhere:Backend", "scatter_backends:", "scatter_backends:Nothing", "os:path")

BASE: Mapping[str, Mapping[str, str]] = {
    "backends": {},
    "list": {"--backend": HONEST},
    "replay": {"case": CASE, "--backend": HONEST},
    "probe": {"--backend": HONEST, "--operator": "MaxPool2dWithIndicesBackward", "--dtype": "float32"},
    "plugins": {},
    "export": {
        "--format": "json",
        "-o": "list.jsonl",
        "--backend": HONEST,
        "--cases": "1",
        "--operator": "MaxPool2dWithIndices",
        "--dtype": "float32",
        "--aspect": "values",
    },
    "show": {"run": RUN},
    "waive": {"run": RUN, "case_id": FAILING_CASE, "--reason": "known", "--owner": "us", "--expires": _DAY},
    "package": {"run": RUN, "-o": "new.zip"},
    "verify": {"bundle": BUNDLE},
    "merge": {"runs": RUN, "-o": "whole"},
    "compare": {"before": RUN, "after": RUN},
    "history add": {"folder": HISTORY, "runs": RUN},
    "history list": {"folder": HISTORY},
    "history query": {"folder": HISTORY, "sql": "SELECT 1"},
    "dashboard": {"folder": HISTORY, "-o": "site"},
    "rerun": {"bundle": BUNDLE, "--sample": "1", "--seed": "1"},
    "score": {"--cases": "1", "--defect": next(iter(defects())), "--report": "score"},
}
"""What each command is given that is right; one of the values is then made wrong."""

_MEANT: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("list", "--backend"): _BACKENDS,
    ("replay", "--backend"): _BACKENDS,
    ("probe", "--backend"): _BACKENDS,
    ("rerun", "--backend"): _BACKENDS,
    ("replay", "case"): ("{", "[]", "null", "", "7"),
    ("replay", "--timeout"): ("x", "0", "-1", "nan", "inf", "1e400"),
    ("replay", "--evidence"): _OUTPUTS,
    ("replay", "--aclnn-library"): (),
    ("replay", "--pythonpath"): (),
    ("replay", "--repeat"): ("x", "0", "-1", "1.5"),
    ("probe", "--operator"): ("MaxPool9d", ""),
    ("probe", "--dtype"): ("float8", ""),
    ("export", "--format"): ("nonsense", ""),
    ("export", "-o"): ("a-folder", "a-device", "a-pipe", *_OUTPUTS),
    ("export", "--backend"): _BACKENDS,
    ("export", "--cases"): ("x", "0", "-1"),
    ("export", "--seed"): ("x", "1e3"),
    ("export", "--operator"): ("MaxPool9d", ""),
    ("export", "--case"): ("{", "[]", "null", ""),
    ("export", "--case-list"): _INPUTS,
    ("history add", "folder"): ("a-file", *_OUTPUTS, ""),
    ("history list", "folder"): tuple(value for value in _INPUTS if value != "a-folder"),
    ("waive", "case_id"): ("000000000000", "", "*"),
    ("waive", "--reason"): ("", " "),
    ("waive", "--owner"): ("", "\t"),
    ("waive", "--expires"): ("soon", "2027-13-01", "2999-01-01", "", "2001-01-01"),
    ("waive", "--issue"): (),
    ("waive", "--backend"): ("abacus",),
    ("waive", "--scope"): ("beauty", "checks_violated", ""),
    ("waive", "-o"): ("a-file", *_OUTPUTS, "a-folder", "a-pipe", "a-device"),
    ("package", "-o"): ("a-folder", "a-device", "a-pipe", *_OUTPUTS),
    ("package", "--sign"): _INPUTS,
    ("verify", "--fingerprint"): ("00", "", "fingerprint"),
    ("verify", "--signer"): _INPUTS,
    ("verify", "--attestation"): (),
    ("merge", "-o"): ("a-file", *_OUTPUTS),
    ("compare", "--markdown"): ("a-folder", *_OUTPUTS),
    ("compare", "--page"): ("a-folder", *_OUTPUTS),
    ("history query", "sql"): (
        "SELEC",
        "",
        "SELECT * FROM nowhere",
        "SELECT runs.beauty FROM runs",
        "COPY runs TO 'a-file/x'",
    ),
    ("dashboard", "-o"): ("a-file", *_OUTPUTS),
    ("rerun", "--sample"): ("0", "-1", "x", "1.5"),
    ("rerun", "--aclnn-library"): (),
    ("rerun", "--seed"): ("x", "1.5"),
    ("rerun", "--timeout"): ("x", "0", "-1", "nan", "inf"),
    ("score", "--cases"): ("x", "0", "-1"),
    ("score", "--seed"): ("x",),
    ("score", "--defect"): ("no-such-defect", ""),
    ("score", "--product"): ("A9", ""),
    ("score", "-n"): ("x", "0", "-1"),
    ("score", "--report"): ("a-file", *_OUTPUTS),
    ("score", "--timeout"): ("x", "0", "-1", "nan", "inf"),
    ("score", "--shrink"): ("x", "-1", "nan", "inf"),
    ("score", "--fail-under"): ("x", "-1", "nan", "101"),
}
"""What is wrong for an option by what it means, where its type does not say it."""

_HANDED_ON = frozenset({"run"})
"""Commands whose options are those of the session, which is tried with them."""


def commands(group: click.Group = main, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        words = f"{above} {name}".strip()
        if isinstance(command, click.Group):
            yield from commands(command, words)
        else:
            yield words, command


def every_option() -> set[str]:
    """What `Given.about` has to say at least once: every option of the session, every parameter of every command."""
    ours = {f"poolproof {words} {_spelled(each)}" for words, command in commands() for each in command.params}
    return ours | {f"pytest {name}" for name in _SessionOptions().names}


class _SessionOptions:
    """Stands for pytest's parser, and writes down which options our plugins add."""

    def __init__(self) -> None:
        self.names: list[str] = []
        for module in (plugin, recorder):
            module.pytest_addoption(self)  # type: ignore[arg-type]

    def getgroup(self, *_: object) -> _SessionOptions:
        return self

    def addoption(self, name: str, **_: object) -> None:
        self.names.append(name)


def _spelled(parameter: click.Parameter) -> str:
    return parameter.opts[0]


def listed() -> Iterator[Given]:
    for words, command in commands():
        if words in _HANDED_ON:
            continue
        for parameter in command.params:
            yield from _of_parameter(words, parameter)
        yield _command(
            words, {"--no-such-option": "x"}, "--no-such-option", "no such option", names=("--no-such-option",)
        )
    yield Given("no such command", "poolproof", ("judge",), names=("judge",))
    yield Given("no such command of a history", "poolproof", ("history", "drop"), names=("drop",))
    handed_on = ("run", "-p", "no:cacheprovider", "--cases=x")
    yield Given("run: 'x'", "poolproof", handed_on, ("--cases",), Ending.USAGE, "poolproof run options")
    yield from _session_options()


def _of_parameter(words: str, parameter: click.Parameter) -> Iterator[Given]:
    name = _spelled(parameter)
    if isinstance(parameter, click.Option) and parameter.is_flag:
        yield _command(words, {f"{name}=yes": None}, name, "a value for a flag", names=(name,))
        return
    if parameter.required:
        yield _command(words, {name: None}, name, "left out")
    elif isinstance(parameter, click.Option):
        yield _command(words, {name: ...}, name, "without a value", names=(name,))
    for value in _MEANT[words, name] if (words, name) in _MEANT else _by_type(parameter):
        yield _command(words, {name: value}, name, value, (*_named(name, value), parameter.human_readable_name))


def _named(option: str, value: str) -> tuple[str, ...]:
    """What a sentence may call an option, or what it was given."""
    name = option.lstrip("-")
    missing_first = "attestation" if option == "--signer" else ""
    return tuple(
        filter(
            None,
            (
                name.replace("_", " "),
                name.upper(),
                value,
                *(word.strip("'") for word in value.split()[-1:]),
                missing_first,
            ),
        )
    )


def _by_type(parameter: click.Parameter) -> tuple[str, ...]:
    match parameter.type:
        case click.Choice():
            return "nonsense", ""
        case click.Path():
            return _INPUTS
        case _:
            raise AssertionError(f"say in _MEANT what is bad for {parameter.name}")


def _command(words: str, wrong: Mapping[str, object], name: str, how: str, names: tuple[str, ...] = ()) -> Given:
    """A command that is given what is right, but for the ``wrong`` values: None is left out, ... has no value."""
    arguments = [*words.split()]
    for option, value in {**BASE[words], **wrong}.items():
        if value is None and option.endswith("=yes"):
            arguments.append(option)
        elif value is ... and option.startswith("-"):
            arguments = [*arguments]
        elif value is not None:
            arguments += [option, str(value)] if option.startswith("-") else [str(value)]
    arguments += [option for option, value in wrong.items() if value is ...]
    about = f"poolproof {words} {name}"
    lay = together(copies(RUN, BUNDLE, HISTORY), odd_things)
    return Given(f"{words} {name}: {how[:40]!r}", "poolproof", tuple(arguments), names, about=about, lay=lay)


_SESSION: Mapping[str, Mapping[str, Ending]] = {
    "--backend": dict.fromkeys(_BACKENDS, Ending.REFUSED),
    "--plan": {"nonsense": Ending.USAGE, "": Ending.USAGE},
    "--cases": {
        "x": Ending.USAGE,
        "1.5": Ending.USAGE,
        "0": Ending.REFUSED,
        "-1": Ending.REFUSED,
        "1000000000000": Ending.REFUSED,
        "1" + "0" * 40: Ending.REFUSED,
    },
    "--shard": dict.fromkeys(("x", "3/2", "0/2", "1/0", ""), Ending.REFUSED),
    "--ray": dict.fromkeys(("nowhere", ""), Ending.REFUSED),
    "--ray-resource": {"": Ending.HARMLESS},
    "--ray-workers": {"x": Ending.USAGE, "0": Ending.REFUSED, "-1": Ending.REFUSED},
    "--seed": {"x": Ending.USAGE, "1e3": Ending.USAGE, "": Ending.USAGE},
    "--report": dict.fromkeys(("a-file", "full", "a-device", *_OUTPUTS), Ending.REFUSED),
    "--resume": {},
    "--case": dict.fromkeys(("{", "[]", "", "null"), Ending.REFUSED),
    "--case-list": dict.fromkeys(_INPUTS, Ending.REFUSED),
    "--operator": dict.fromkeys(("MaxPool9d", "", "aclnn"), Ending.REFUSED),
    "--dtype": {"float8": Ending.USAGE, "": Ending.USAGE},
    "--aspect": {"beauty": Ending.USAGE, "": Ending.USAGE},
    "--waivers": dict.fromkeys(("missing", "a-file", "a-folder", "", "a-loop", "a-device", _LONG), Ending.REFUSED),
    "--case-timeout": {"x": Ending.USAGE, **dict.fromkeys(("0", "-1", "nan", "inf", "-inf", "1e400"), Ending.REFUSED)},
    "--diagnose": {"x": Ending.USAGE, **dict.fromkeys(("-1", "nan", "inf", "-inf", "1e400"), Ending.REFUSED)},
    "--budget": dict.fromkeys(("x", "10", "", "0s", "-1m", "1e3s", "inf", "200h", "9" * 400 + "h"), Ending.REFUSED),
    "--minutes": {
        "x": Ending.USAGE,
        **dict.fromkeys(("0", "-1", "nan", "inf", "-inf", "1e400", "10081"), Ending.REFUSED),
    },
    "--memory-budget": dict.fromkeys(("x", "8", "", "-1GiB", "0B", "infGiB", "9" * 400 + "TiB"), Ending.REFUSED),
    "--aclnn-library": {},
    "--probe": {},
    "--no-shrink": {},
    "--strict-waivers": {},
    "--ci": {"jenkins": Ending.USAGE, "": Ending.USAGE},
}
"""What is wrong for each option of the session, and who refuses it."""


def _session_options() -> Iterator[Given]:
    for name, values in _SESSION.items():
        about = f"pytest {name}"
        for value, ending in values.items():
            arguments = small_session(f"{name}={value}")
            yield Given(
                f"pytest {name}: {value[:40]!r}", "pytest", arguments, _named(name, value), ending, about, odd_things
            )
    for name in ("--resume", "--probe", "--no-shrink", "--strict-waivers"):
        arguments = small_session(f"{name}=yes")
        yield Given(f"pytest {name}: a value", "pytest", arguments, (name,), Ending.USAGE, f"pytest {name}")
    for name in ("--backend", "--report", "--cases"):
        yield Given(f"pytest {name}: no value", "pytest", session(name), (name,), Ending.USAGE, f"pytest {name}")
    yield Given("pytest --resume: nothing there", "pytest", small_session("--resume"), ("nothing to resume",))
