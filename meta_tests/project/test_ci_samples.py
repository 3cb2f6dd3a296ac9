"""The shell steps of the samples for CI, as they stand, from an empty history on: on the emulated NPU, not on cards.

What the machine of a reader has is stood in for: CANN's set_env.sh, device files, and an installation from a clone. So
are `pytest` and `poolproof`, by small clients of a thread that has them forked.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Client, Listener
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import forked
from forked import PROGRAMS, Command
from places import ROOT
from poolproof.backends.emulator.defects import VARIABLE
from poolproof.reports.history.entries import read_entries
from sessions import surroundings

yaml = pytest.importorskip("yaml")
pytest.importorskip("duckdb")

SAMPLES = ROOT / "docs" / "ci"
NARROWED = "--operator AdaptiveMaxPool2dBackward --dtype float32 --aspect values --cases 3 --no-shrink --diagnose 0"
DEFECT = {VARIABLE: "write_past_output"}

_PYTHON = """#!/bin/bash
# Stands in for python -m venv FOLDER: what is installed here already.
[ "$1 $2" = "-m venv" ] || exit 9
mkdir -p "$3/bin"
cp "$PROGRAMS/pytest" "$PROGRAMS/poolproof" "$3/bin/"
printf '#!/bin/bash\\n[ "$1" = install ] && printf "%%s" "$2" > "$INSTALLED"\\n' > "$3/bin/pip"
chmod +x "$3/bin/"*
"""
_LS = "#!/bin/bash\nprintf '%s\\n' null $CARDS davinci_manager\n"
ONE_CARD, TWO_CARDS = {"CARDS": "davinci0"}, {"CARDS": "davinci0 davinci1"}


_CLIENT = """#!{python} -IS
import os, sys
from multiprocessing.connection import Client
connection = Client({address!r})
connection.send(({program!r}, sys.argv[1:], os.getcwd(), dict(os.environ)))
status, output, errors = connection.recv()
sys.stdout.buffer.write(output.encode())
sys.stderr.buffer.write(errors.encode())
sys.stdout.flush()
sys.exit(status)
"""


@contextmanager
def shell_commands(folder: Path) -> Iterator[None]:
    """Programs in ``folder`` that may be copied, and end as the forks of `forked.run` do, while this lasts."""
    with Listener(family="AF_UNIX") as listener:
        for program in PROGRAMS:
            path = folder / program
            path.write_text(_CLIENT.format(python=sys.executable, address=listener.address, program=program))
            path.chmod(0o755)
        thread = Thread(target=_answer, args=[listener])
        thread.start()
        try:
            yield
        finally:
            with Client(listener.address) as last:
                last.send(None)
            thread.join()


def _answer(listener: Listener) -> None:
    """Answer one program after the other, until there is nothing to answer."""
    while True:
        with listener.accept() as connection:
            asked = connection.recv()
            if asked is None:
                return
            program, arguments, here, environment = asked
            ended = forked.run(Command(program, arguments, Path(here), environment))
            connection.send((ended.returncode, ended.stdout, ended.stderr))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The variables of a machine with two cards, of which ``AT`` is where steps run."""
    programs, installed, home = tmp_path / "programs", tmp_path / "to-install", tmp_path / "checkout"
    for folder in (programs, installed, home):
        folder.mkdir()
    for name, text in (("python", _PYTHON), ("ls", _LS)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (tmp_path / "set_env.sh").write_text("export SOURCED=yes\n")
    told = {"HISTORY": tmp_path / "history", "POOLPROOF": ROOT, "CANN": tmp_path, "INSTALLED": tmp_path / "installed"}
    own = {name: str(path) for name, path in told.items()}
    own |= {"PATH": os.pathsep.join((str(programs), os.environ["PATH"])), "PROGRAMS": str(installed), "AT": str(home)}
    with shell_commands(installed):
        yield surroundings() | own | {"BACKEND": "emulator-a2", "PYTEST_ADDOPTS": NARROWED, **TWO_CARDS}


def run_step(script: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """As the services do it: bash that stops at the first error."""
    command = ["bash", "-e", "-c", script]
    own, at = dict(environment), environment["AT"]
    return subprocess.run(command, env=own, cwd=at, capture_output=True, text=True, timeout=300)


def installed_extras(environment: Mapping[str, str]) -> set[str]:
    """What the sample installed of this clone."""
    found = re.fullmatch(rf"{re.escape(str(ROOT))}(?:\[([\w,]+)\])?", Path(environment["INSTALLED"]).read_text())
    assert found
    return set((found[1] or "").split(",")) - {""}


def run_shards(jobs: Mapping[str, Any], environment: dict[str, str]) -> dict[str, dict[str, int]]:
    """What `run_job` gives of each shard; what they hand on stays where it is, and so does what the verdict does."""
    shards = jobs["npu"]["strategy"]["matrix"]["shard"]
    return {shard: run_job(jobs["npu"], "pull_request", environment, shard) for shard in shards}


def run_job(job: Mapping[str, Any], event: str, environment: dict[str, str], shard: str = "") -> dict[str, int]:
    """Exit statuses, by name, of the steps of a GitHub job that ``event`` lets run; later steps see added paths."""
    statuses = {}
    environment = environment | {"GITHUB_EVENT_NAME": event, "GITHUB_ACTIONS": "true"}
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_PATH"):
        environment[name] = str(Path(environment["AT"]) / f"{name}-{event}")
        Path(environment[name]).touch()
    for step in job["steps"]:
        if "run" in step and _is_due(step.get("if", "success()"), event, failed=any(statuses.values())):
            added = Path(environment["GITHUB_PATH"]).read_text().splitlines()
            path = os.pathsep.join([*added, environment["PATH"]])
            script = step["run"].replace("${{ matrix.shard }}", shard)
            assert "${{" not in script
            ended = run_step(script, environment | {"PATH": path})
            statuses[step["name"]] = ended.returncode
            sys.stdout.write(f"{step['name']}: {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return statuses


def _is_due(condition: str, event: str, failed: bool) -> bool:
    """The condition of a step, of the few forms that the sample has."""
    known = {"always()": True, "success()": not failed}
    known |= {f"github.event_name == '{event}'": True, f"github.event_name != '{event}'": False}
    return all(known.get(part, "!=" in part) for part in condition.split(" && "))


@pytest.mark.thorough
def test_the_github_sample(machine: dict[str, str]) -> None:
    """What shards do hangs on no event but the schedule's: those of the first pull request are the push's as well."""
    at = Path(machine["AT"])
    jobs = yaml.safe_load((SAMPLES / "npu-github.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["verdict"]["needs"] == "npu"
    assert run_shards(jobs, machine) == {key: {"Install": 0, "Judge": 0} for key in ("1/2", "2/2")}
    compared = {"Install": 0, "Merge": 0, "Compare with the newest run of the history": 0, "Bundle": 0}
    assert run_job(jobs["verdict"], "pull_request", machine) == compared
    assert installed_extras(machine) <= extras()
    kept = run_job(jobs["verdict"], "push", machine | _clean(at, "shards"))
    assert kept == {"Install": 0, "Merge": 0, "Keep the run, and draw the dashboard": 0, "Bundle": 0}
    assert len(read_entries(Path(machine["HISTORY"])).paths) == 1
    assert (at / "dashboard" / "index.html").exists()
    worse = machine | _clean(at) | ONE_CARD | DEFECT
    assert run_shards(jobs, worse) == {key: {"Install": 0, "Judge": 1} for key in ("1/2", "2/2")}
    verdict = run_job(jobs["verdict"], "pull_request", worse)
    assert verdict == compared | {"Merge": 1, "Compare with the newest run of the history": 1}
    assert "Newly failing" in (at / "comparison.md").read_text(encoding="utf-8")
    assert "Newly failing" in (at / "GITHUB_STEP_SUMMARY-pull_request").read_text(encoding="utf-8")


@pytest.mark.thorough
def test_the_gitlab_sample(machine: dict[str, str]) -> None:
    jobs = yaml.safe_load((SAMPLES / "npu-gitlab.yml").read_text(encoding="utf-8"))
    shards, job = jobs["shards"], jobs["conformance"]
    at, environment = Path(machine["AT"]), machine | {"GITLAB_CI": "true"}
    for variables, status in (({}, 0), (ONE_CARD | DEFECT, 1)):
        _clean(at)
        for index in range(1, shards["parallel"] + 1):
            node = {"CI_NODE_INDEX": str(index), "CI_NODE_TOTAL": str(shards["parallel"])}
            assert run_step("\n".join(shards["script"]), environment | variables | node).returncode == status
        assert run_step("\n".join(job["script"]), environment | variables).returncode == status
        assert run_step("\n".join(job["after_script"]), environment | variables).returncode == 0
        kept = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["codequality"]]
        assert all(any(at.glob(path)) for path in [*kept, shards["artifacts"]["reports"]["junit"]])
    assert installed_extras(machine) <= extras()


def instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, what it is given) of a container file."""
    whole = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in whole.splitlines()) if word]


def test_the_container_file(machine: dict[str, str]) -> None:
    """Its steps, where what it copies is there and no user is made, and what a session is given and ends with."""
    steps = instructions((SAMPLES / "npu.containerfile").read_text(encoding="utf-8"))
    at, programs = Path(machine["AT"]), Path(machine["PATH"].partition(os.pathsep)[0])
    given = {"GROUP": "1000", "ID": "1000", "POOLPROOF": str(at / "opt")}
    (at / "opt").mkdir()
    (at / "opt" / "clone").symlink_to(ROOT)
    (programs / "python3").write_text(_PYTHON)
    Path(machine["PROGRAMS"], "pytest").write_text(
        f"#!{sys.executable}\nimport sys, pytest\nsys.exit(pytest.console_main())\n"
    )
    for name in ("groupadd", "useradd", "install"):
        (programs / name).write_text(f'#!/bin/bash\necho {name} "$@" >> "{at}/asked"\n')
    for name in ("python3", "groupadd", "useradd", "install"):
        (programs / name).chmod(0o755)
    for script in (rest for word, rest in steps if word == "RUN"):
        ended = run_step(script, machine | given)
        assert ended.returncode == 0, ended.stderr
    installed = Path(machine["INSTALLED"]).read_text().removeprefix(f"{at}/opt/clone[").removesuffix("]")
    assert {*installed.split(",")} <= extras()
    assert "--gid 1000 judge" in (at / "asked").read_text()
    assert [rest for word, rest in steps if word == "USER"] == ["0", "${ID}:${GROUP}"]
    entry = json.loads(dict(steps)["ENTRYPOINT"])
    asked = [*entry, "--backend", "no-such"]
    ended = subprocess.run(asked, env=machine | given, cwd=at, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, "unknown backend 'no-such'" in ended.stdout + ended.stderr) == (3, True), ended
    assert json.loads(dict(steps)["CMD"]) == ["--backend", "aclnn"]


def _clean(at: Path, handed_on: str = "") -> dict[str, str]:
    """The checkout as a job finds it: of folders of a run it has but what is ``handed_on``."""
    subprocess.run(["rm", "-rf", *(str(path) for path in at.iterdir() if path.name != handed_on)], check=True)
    return {}


def extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])


def impossible_installs(text: str) -> list[str]:
    """What `pip install` is told to install, in any page or sample, that does not exist."""
    found = [what for _, what in re.findall(r"pip install\s+(?:-e\s+)?([\"']?)([^\s\"'`]+)\1", text)]
    parts = [(what, *what.rstrip("]").partition("[")[::2]) for what in found]
    return [
        what
        for what, name, rest in parts
        if name not in (".", "$POOLPROOF", "argcomplete", "tox") or not {*rest.split(",")} - {""} <= extras()
    ]


def test_no_way_to_install_is_named_that_does_not_exist() -> None:
    """This project is in no index: it is installed from a clone."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *SAMPLES.iterdir()]
    assert {page.name: said for page in pages if (said := impossible_installs(page.read_text(encoding="utf-8")))} == {}
    wrong = (
        "needs `pip install 'poolproof[attest]'`, pip install poolproof or pip install .[nothing] but pip install tox"
    )
    assert impossible_installs(wrong) == ["poolproof[attest]", "poolproof", ".[nothing]"]
