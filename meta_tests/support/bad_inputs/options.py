"""Bad values of every option and argument: by its type where that says what is bad, else by its meaning."""

import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from types import SimpleNamespace

import click

from bad_inputs import HONEST, Ending, Given, session, small_session
from bad_inputs.materials import BUNDLE, FAILING_CASE, HISTORY, RUN, copies, odd_things, together
from poolproof.backends.emulator.defects import defects
from poolproof.reports.terminal.command_line import Late
from poolproof.suites import plugin
from poolproof.suites.cli import main

CASE = '{"operator":"MaxPool2dWithIndicesBackward","shape":[1,4,4],"kernel_size":[2]}'

_LONG = "x" * 300
_DAY = str(date.today() + timedelta(days=30))

_INPUTS = ("missing", "a-file", "a-folder", "a-device", "a-loop", "a-pipe", _LONG, "")
"""Paths of what cannot be read as what it should be."""

_NO_FOLDERS = tuple(value for value in _INPUTS if value != "a-folder")

_OUTPUTS = ("a-file/out", "a-device/out", "a-loop", _LONG)
"""Paths that cannot be written. All lie in the folder of the input: the test may be run by somebody who may do all."""

_NO_MODULES = ("nowhere:Backend", "scatter_backends:", "scatter_backends:Nothing", "os:path", "os:\udcff")
_BACKENDS = ("abacus", "", ":", *_NO_MODULES)

_SUBJECT = {"--backend": HONEST, "--operator": "MaxPool2dWithIndices", "--dtype": "float32"}
_ONE_CASE = {**_SUBJECT, "--aspect": "values", "--cases": "1"}

BASE: Mapping[str, Mapping[str, str]] = {
    "backends": {},
    "list": {"--backend": HONEST},
    "replay": {"case": CASE, "--backend": HONEST},
    "probe": {"--backend": HONEST, "--operator": "MaxPool2dWithIndicesBackward", "--dtype": "float32"},
    "plugins": {},
    "export": {"--format": "json", "-o": "list.jsonl", **_ONE_CASE},
    "coverage": _ONE_CASE,
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

_COUNTS, _SECONDS = ("x", "0", "-1", "1.5"), ("x", "0", "-1", "nan", "inf")

_MEANT: Mapping[str, tuple[str, ...]] = {
    "--aclnn-library": (),
    "--attestation": (),
    "--backend": _BACKENDS,
    "waive --backend": ("abacus",),
    "case": ("{", "[]", "null", "", "7"),
    "--case": ("{", "[]", "null", ""),
    "--case-list": _INPUTS,
    "--cases": ("x", "0", "-1"),
    "coverage --complete": ("a-folder", "a-device", "a-pipe", *_OUTPUTS),
    "given": _INPUTS,
    "case_id": ("000000000000", "", "*", "\udcff"),
    "--defect": ("no-such-defect", ""),
    "--dtype": ("float8", ""),
    "--evidence": _OUTPUTS,
    "--expires": ("soon", "2027-13-01", "2999-01-01", "", "2001-01-01"),
    "--fail-under": ("x", "-1", "nan", "101"),
    "--fingerprint": ("00", "", "fingerprint"),
    "history add folder": ("a-file", *_OUTPUTS, ""),
    "history list folder": _NO_FOLDERS,
    "export --format": ("nonsense", ""),
    "--issue": (),
    "--markdown": ("a-folder", *_OUTPUTS),
    "-n": ("x", "0", "-1", "9999999"),
    "-o": ("a-file", *_OUTPUTS),
    "export -o": ("a-folder", "a-device", "a-pipe", *_OUTPUTS),
    "package -o": ("a-folder", "a-device", "a-pipe", *_OUTPUTS),
    "waive -o": ("a-file", *_OUTPUTS, "a-folder", "a-pipe", "a-device"),
    "--missing": ("x", "-1", "1.5"),
    "--operator": ("MaxPool9d", "", "x" * 100_000),
    "--owner": ("", "\t"),
    "--page": ("a-folder", *_OUTPUTS),
    "--product": ("A9", ""),
    "--pythonpath": (),
    "--reason": ("", " "),
    "--repeat": _COUNTS,
    "--report": ("a-file", *_OUTPUTS, ""),
    "--require": ("nonsense", "", "plan=", "conforms-in"),
    "--sample": _COUNTS,
    "--scope": ("beauty", "checks_violated", ""),
    "--seed": ("x", "1.5"),
    "--shrink": ("x", "-1", "nan", "inf"),
    "--sign": _INPUTS,
    "--signer": _INPUTS,
    "--model": ("torch", ""),
    "--sources": _NO_FOLDERS,
    "sql": ("SELEC", "", "SELECT * FROM nowhere", "SELECT runs.beauty FROM runs", "COPY runs TO 'a-file/x'"),
    "--timeout": _SECONDS,
    "replay --timeout": (*_SECONDS, "1e400"),
}
"""What is wrong for an option, of one command or of all, by what it means, where its type does not say it."""


def commands(group: click.Group = main, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        command = command.load() if isinstance(command, Late) else command
        words = f"{above} {name}".strip()
        if isinstance(command, click.Group):
            yield from commands(command, words)
        else:
            yield words, command


def every_option() -> set[str]:
    """What `Given.about` has to say at least once: every option of the session, every parameter of every command."""
    names: list[str] = []
    parser = SimpleNamespace(addoption=lambda name, **_: names.append(name))
    parser.getgroup = lambda *_: parser
    plugin.pytest_addoption(parser)  # type: ignore[arg-type]
    ours = {f"poolproof {words} {each.opts[0]}" for words, command in commands() for each in command.params}
    return ours | {f"pytest {name}" for name in names}


def listed() -> Iterator[Given]:
    for words, command in commands():
        if words != "run":  # whose options are those of the session, which is tried with them
            for parameter in command.params:
                yield from _of_parameter(words, parameter)
            unknown = "--no-such-option"
            yield _command(words, {unknown: "x"}, unknown, "no such option", (unknown,))
    yield Given("no such command", "poolproof", ("judge",), names=("judge",))
    yield Given("no such command of a history", "poolproof", ("history", "drop"), names=("drop",))
    for given, said in (("--cases=x", "--cases"), ("--case-lists", "is --case-list"), ("--minutes", "--help")):
        handed_on = ("run", "-p", "no:cacheprovider", given)
        yield Given(f"run: {given}", "poolproof", handed_on, (said,), Ending.USAGE, "poolproof run options")
    for name, (by_pytest, by_us) in _SESSION.items():
        for value in (*by_pytest, *by_us):
            arguments, ending = small_session(f"{name}={value}"), Ending.USAGE if value in by_pytest else Ending.REFUSED
            what, about = f"pytest {name}: {value[:40]!r}", f"pytest {name}"
            yield Given(what, "pytest", arguments, _named(name, value), ending, about, odd_things)
    arguments = small_session("--ray-resource=")
    yield Given("no resource", "pytest", arguments, (), Ending.HARMLESS, "pytest --ray-resource", odd_things)
    for name in ("--resume", "--probe", "--no-shrink", "--strict-waivers", "--keep-going"):
        arguments = small_session(f"{name}=yes")
        yield Given(f"pytest {name}: a value", "pytest", arguments, (name,), Ending.USAGE, f"pytest {name}")
    for name in ("--backend", "--report", "--cases"):
        yield Given(f"pytest {name}: no value", "pytest", session(name), (name,), Ending.USAGE, f"pytest {name}")
    yield Given("pytest --resume: nothing there", "pytest", small_session("--resume"), ("nothing to resume",))
    yield Given("score --resume: nothing there", "poolproof", ("score", "--resume"), ("nothing to resume",))
    yield Given("pytest -n: too many", "pytest", small_session("-n", "9999999"), ("-n 9999999",))
    arguments = small_session("--report=full")
    yield Given("pytest --report: in use", "pytest", arguments, ("full is not empty",), lay=odd_things)


def _of_parameter(words: str, parameter: click.Parameter) -> Iterator[Given]:
    name = parameter.opts[0]
    if isinstance(parameter, click.Option) and parameter.is_flag:
        yield _command(words, {f"{name}=yes": None}, name, "a value for a flag", (name,))
        return
    if parameter.required:
        yield _command(words, {name: None}, name, "left out")
    elif isinstance(parameter, click.Option):
        yield _command(words, {name: ...}, name, "without a value", (name,))
    values = _MEANT.get(f"{words} {name}", _MEANT.get(name))
    if values is None:
        values = ("nonsense", "") if isinstance(parameter.type, click.Choice) else _INPUTS
        assert isinstance(parameter.type, click.Choice | click.Path), f"say in _MEANT what is bad for {name}"
    for value in values:
        yield _command(words, {name: value}, name, value, (*_named(name, value), parameter.human_readable_name))


def _named(option: str, value: str) -> tuple[str, ...]:
    """What a sentence may call an option, or what it was given."""
    name, last = option.lstrip("-"), "".join(value.split()[-1:]).strip("'")
    first = "attestation" if option == "--signer" else ""  # what is missing before it
    return tuple(filter(None, (re.sub("[-_]", " ", name), name, name.upper(), ascii(value)[1:-1], value, last, first)))


def _command(words: str, wrong: Mapping[str, object], name: str, how: str, names: tuple[str, ...] = ()) -> Given:
    """A command that is given what is right, but for the ``wrong`` values: None is left out, ... has no value."""
    arguments = [*words.split()]
    for option, value in {**BASE[words], **wrong}.items():
        if value is None and option.endswith("=yes"):
            arguments.append(option)
        elif value not in (None, ...):
            arguments += [option, str(value)] if option.startswith("-") else [str(value)]
    arguments += [option for option, value in wrong.items() if value is ...]
    about, lay = f"poolproof {words} {name}", together(copies(RUN, BUNDLE, HISTORY), odd_things)
    return Given(f"{words} {name}: {how[:40]!r}", "poolproof", tuple(arguments), names, about=about, lay=lay)


_SESSION: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "--backend": ((), _BACKENDS),
    "--plan": (("nonsense", ""), ()),
    "--cases": (("x", "1.5"), ("0", "-1", "1000000000000", "1" + "0" * 40)),
    "--shard": ((), ("x", "3/2", "0/2", "1/0", "")),
    "--ray": ((), ("nowhere", "")),
    "--ray-workers": (("x",), ("0", "-1")),
    "--seed": (("x", "1e3", ""), ()),
    "--report": (("", "\udcff"), ("a-file", "a-device", *_OUTPUTS)),
    "--case": ((), ("{", "[]", "", "null")),
    "--case-list": ((), _INPUTS),
    "--operator": ((), ("MaxPool9d", "", "aclnn")),
    "--dtype": (("float8", ""), ()),
    "--aspect": (("beauty", ""), ()),
    "--waivers": ((), ("missing", "a-file", "a-folder", "", "a-loop", "a-device", _LONG)),
    "--model": (("torch", ""), ()),
    "--sources": (_NO_FOLDERS, ()),
    "--case-timeout": (("x",), ("0", "-1", "nan", "inf", "-inf", "1e400")),
    "--diagnose": (("x",), ("-1", "nan", "inf", "-inf", "1e400")),
    "--budget": ((), ("x", "10", "", "0s", "-1m", "1e3s", "inf", "200h", "+", "1m++", "9" * 400 + "h")),
    "--memory-budget": ((), ("x", "8", "", "-1GiB", "0B", "infGiB", "9" * 400 + "TiB")),
    "--ci": (("jenkins", ""), ()),
}
"""What is wrong for each option of the session: what pytest's parser refuses, and what we do."""
