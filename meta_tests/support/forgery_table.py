"""The table of forgeries in docs/acceptance.md: python meta_tests/support/forgery_table.py RUN [--write]

RUN is a failing run (`shared_runs.make_failing_run`). Each forgery is made of a copy of it, packed, verified and, where
nothing offline tells, judged again; the table says what came of that. Ends with 1 where the page says otherwise.
"""

import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner

from forging import FORGERIES, Forgery
from places import ROOT
from poolproof.reports.bundle.packing import package
from poolproof.reports.bundle.verification import verify
from poolproof.reports.rows.store import read_run
from poolproof.reports.rows.verdicts import Overall
from poolproof.suites.cli import main as poolproof
from poolproof.suites.rerun import REDRAW

PAGE = ROOT / "docs" / "acceptance.md"
HEAD = "| forgery | |\n|---|---|\n"


def line(title: str, caught: str, rerun: bool) -> str:
    """Write the line of a forgery, that ``verify`` caught by a sentence, a rerun, or the signature alone."""
    told = f"caught: “… {caught} …”" if caught else "a rerun tells" if rerun else "the signature alone tells"
    return f"| {title} | {told} |\n"


def expected() -> str:
    """Write the table as `FORGERIES` says that it is."""
    return HEAD + "".join(line(each.title, each.caught, each.rerun) for each in FORGERIES)


def disagrees(bundle: Path, backend: str) -> bool:
    """Judge all cases of a bundle again, and tell whether one is said to disagree."""
    ended = CliRunner().invoke(poolproof, ["rerun", str(bundle), "--backend", backend, "--sample", "10000"])
    return ended.exit_code == Overall.VIOLATES


def tried(forgery: Forgery, run: Path) -> str:
    """Make the line of a forgery by forging, verifying and, where the bundle stands, judging again."""
    with TemporaryDirectory() as scratch:
        folder, bundle = Path(shutil.copytree(run, Path(scratch) / "run")), Path(scratch) / "bundle.zip"
        forgery.forge(folder)
        package(folder, bundle)
        found = verify(bundle, draw=REDRAW)
        problems = "\n".join(problem for step in found.steps for problem in step.problems)
        if found.overall is not Overall.CONFORMS:
            return line(forgery.title, forgery.caught if forgery.caught in problems else problems.split("\n")[0], False)
        return line(forgery.title, "", disagrees(bundle, next(iter(read_run(run)["backends"]))))


def main(run: Path, writes: bool) -> int:
    text = PAGE.read_text(encoding="utf-8")
    table = HEAD + "".join(tried(forgery, run) for forgery in FORGERIES)
    there = re.search(re.escape(HEAD) + r"(\|.*\n)*", text)
    if writes and there:
        PAGE.write_text(text.replace(there[0], table), encoding="utf-8")
    return int(there is None or not (writes or there[0] == table))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), "--write" in sys.argv))
