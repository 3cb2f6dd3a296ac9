"""Bad inputs drawn by a seed: whether any of them hangs, gives a traceback, is accepted, or accuses somebody.

    python studies/bad_inputs.py [--number 500] [--seed 0]

breaks good command lines, cases, case lists, waivers, bundles, run folders, names of backends and SQL, each so that it
is surely bad, and prints by kind how many ended otherwise than they should: within 30 s, in a sentence, with an exit
status that is no success. Ends with 1 if one did. meta_tests/suites/test_bad_inputs.py spells out mistakes that people
make; here nobody chooses.
"""

from __future__ import annotations

import json
import string
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "meta_tests" / "support"))

from bad_inputs import Ending, Given, lines, small_session, trying, waivers
from bad_inputs.materials import BUNDLE, FAILING_CASE, HISTORY, RUN, copies, cut, damaged, texts, written
from bad_inputs.options import BASE

_TAKE_ANY_TEXT = ("--reason", "--owner", "-o", "--report")
_ALPHABETS = (string.ascii_letters, string.punctuation, "\x1b\n\t\u202e\udcff名é ", "9-.e")
_ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"


def garbage(draw: Random) -> str:
    """Draw a text that names nothing, of whatever an argument may hold, up to far too much of it."""
    return "~" + "".join(draw.choices(draw.choice(_ALPHABETS), k=draw.choice((1, 5, 40, 5_000))))


def option(draw: Random) -> Given:
    words, name = draw.choice([(words, name) for words, options in BASE.items() for name in options])
    if name in _TAKE_ANY_TEXT or (words, name) == ("history add", "folder"):
        return option(draw)
    options = {**BASE[words], name: garbage(draw)}
    output = ("-o", options.pop("-o")) if "-o" in options else ()
    given = (f"{name}={value}" if name.startswith("--") else value for name, value in options.items())
    return Given("option", "poolproof", (*words.split(), *output, *given), lay=copies(RUN, BUNDLE, HISTORY))


def broken_case(draw: Random) -> str:
    good = dict(draw.choice(lines.GOOD[:2]))
    how = draw.choice(("cut", "unknown", "wrong", "missing"))
    if how == "cut":
        return json.dumps(good)[: draw.randrange(1, 60)]
    if how == "missing":
        del good["operator"]
    else:
        name = garbage(draw) if how == "unknown" else draw.choice(sorted(good))
        good[name] = draw.choice((None, 1e300, {"a": []}, [[]], -(10**30), "~"))
    return json.dumps(good)


def case(draw: Random) -> Given:
    return Given("case", "pytest", small_session(f"--case={broken_case(draw)}"))


def case_list(draw: Random) -> Given:
    name, rows = draw.choice(("list.json", "list.csv", "list.jsonl")), [broken_case(draw).encode() for _ in range(3)]
    content = draw.choice((b"\n".join(rows), b"[" + b",".join(rows), draw.randbytes(200), rows[0].replace(b":", b"\0")))
    arguments = ("export", "--format=json", "-o", "out.jsonl", f"--case-list={name}")
    return Given("case list", "poolproof", arguments, lay=texts({name: content}))


def waiver(draw: Random) -> Given:
    name, wrong = draw.choice(("id", "reason", "owner", "expires", "scope")), ("[1]", "{ a = 1 }", "5", '"', "nan", "")
    entries = {**waivers.GOOD, name: draw.choice(wrong)}
    return Given("waiver", "pytest", small_session("--waivers=w.toml"), lay=texts({"w.toml": waivers.table(entries)}))


def bundle(draw: Random) -> Given:
    how, share, more = draw.choice(("cut", "byte", "more", "member")), draw.random(), draw.randbytes(9)

    def lay(here: Path, made: Path) -> None:
        content = (made / BUNDLE).read_bytes()
        place = int(share * content.find(b"PK\x01\x02"))  # the list behind it has bytes that say nothing of contents
        changed = {"cut": content[:place], "more": content + more, "member": content}
        changed["byte"] = content[:place] + bytes([content[place] ^ (1 + more[0] % 255)]) + content[place + 1 :]
        (here / BUNDLE).write_bytes(changed[how])
        if how == "member":
            with ZipFile(here / BUNDLE, "a") as archive:
                archive.writestr(("evidence/x.npz", "../x", "a.txt")[int(share * 3)], more)

    return Given("bundle", "poolproof", ("verify", BUNDLE), lay=lay)


def run_folder(draw: Random) -> Given:
    damage = draw.choice((written(draw.randbytes(300)), cut(0.99 * draw.random())))
    command = draw.choice((("show", RUN), ("package", RUN, "-o", "new.zip"), ("compare", RUN, RUN)))
    return Given("run folder", "poolproof", command, lay=damaged(draw.choice(("run.json", "rows/*.parquet")), damage))


def backend(draw: Random) -> Given:
    form = draw.choice(("{}", "os:{}", "{}:x", "ascendc:{}", "torch:{}"))
    return Given("backend", "pytest", small_session(f"--backend={form.format(garbage(draw))}"))


def sql(draw: Random) -> Given:
    forms = ("SELECT {}", "COPY {}", "SELECT * FROM read_text('/etc/host{}')", "COPY runs TO '/tmp/{}.csv'", _ENDLESS)
    asked = draw.choice(forms).replace("{}", garbage(draw))
    return Given("SQL", "poolproof", ("history", "query", HISTORY, "--timeout=3", "--", asked), lay=copies(HISTORY))


KINDS = (option, case, case_list, waiver, bundle, run_folder, backend, sql)


def objection(given: Given, made: Path) -> str:
    """Say what is wrong with how a command ends, that of a bundle by its own status: it does not stand."""
    endings = [Ending.REFUSED, Ending.USAGE, Ending.INCOMPLETE, *[Ending.SHOWN] * (given.name == "bundle")]
    with TemporaryDirectory() as folder:
        given.lay(here := Path(folder), made)
        before = trying.contents(here)
        try:
            ended = trying.ended(given, here)
        except subprocess.TimeoutExpired:
            return f"was not over after {trying.SECONDS:g} s"
        what = ended.returncode, ended.stdout + ended.stderr, before, here
        found = ["; ".join(trying.objections(replace(given, ending=each), *what)) for each in endings]
        return min(found, key=len) and f"{min(found, key=len)}\n{what[1][-1500:]}"


@click.command()
@click.option("--number", default=500, show_default=True, help="How many inputs are tried, of all kinds in turn.")
@click.option("--seed", default=0, show_default=True)
def main(number: int, seed: int) -> None:
    trying.SECONDS = 30.0
    draw, tried, wrong = Random(seed), Counter[str](), Counter[str]()
    with TemporaryDirectory() as folder:
        trying.make(made := Path(folder))
        for index in range(number):
            given = KINDS[index % len(KINDS)](draw)
            words = [each.replace(FAILING_CASE, trying.failing_case(made)) for each in given.arguments]
            tried[given.name] += 1
            if found := objection(replace(given, arguments=tuple(words)), made):
                wrong[given.name] += 1
                print(f"{given.name} {index}: {' '.join(ascii(word)[:200] for word in words)}\n{found}\n", flush=True)
    for kind, count in tried.items():
        print(f"{kind:12} {count:5} tried, {wrong[kind]:5} ended otherwise than they should")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
