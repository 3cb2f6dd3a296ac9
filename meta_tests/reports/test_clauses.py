"""Clauses of the contract in the reports: counted, mandatory, and told apart by whose description a library follows."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow as pa

from poolproof.reports.bundle.packing import package
from poolproof.reports.figures.clauses import LEGAL, clause_table, follows
from poolproof.reports.figures.digest import read_digest
from poolproof.reports.figures.tables import records
from poolproof.reports.history.entries import add, query, read_entries
from poolproof.reports.pages.run import write_run_page
from poolproof.reports.rows.arrow import to_table
from poolproof.reports.rows.store import read_rows, write_run
from poolproof.reports.rows.verdicts import Overall
from poolproof.suites.verify.plan_rows import row_problems
from reports_made_up import Recipe, made_up_record, made_up_rows, shown, write_rows
from sessions import run_session

OPERATOR = "AdaptiveMaxPool3dBackward"
GROUP = {"backend": "npu", "operator": OPERATOR, "dtype": "", "index_dtype": "", "aspect": "contract"}
CALLS = [
    ("null.self", "self is given.", "conforms", "code and page"),
    ("null.self", "self is given. It comes before: indices is given.", "conforms", "code"),
    ("rank", "self has four or five axes.", "conforms", "page"),
    ("rank", "self has four or five axes.", "conforms", "code"),
    ("rank", "self has four or five axes.", "conforms", "page"),
    ("dtype", "self is FLOAT.", "violates", "neither"),
    ("dtype", "self is FLOAT.", "crashed", None),
    ("", "Legal: smallest.", "conforms", "code and page"),
]


def contract_row(number: int, clause: str, statement: str, verdict: str, answer: str | None) -> dict[str, Any]:
    violated = ["status"] if verdict == "violates" else []
    asked = {"case_id": f"{number:012x}", "case": '{"api":"aclnnX"}', "product": "A2"} | GROUP
    judged = {"checks_judged": ["status"], "checks_violated": violated, "reason": ""}
    return asked | judged | {"clause": clause, "statement": statement, "verdict": verdict, "follows": answer}


def make_contract_run(folder: Path, calls: Sequence[tuple[str, str, str, str | None]] = CALLS) -> Path:
    """A run of which a half is about values, and the other about a contract of four clauses."""
    values = Recipe(backends={"npu": "A2"})
    planned = Counter(clause for clause, *_ in CALLS)
    mandatory = [GROUP | {"clause": clause, "planned": count} for clause, count in planned.items()]
    rows = [contract_row(number, *call) for number, call in enumerate(calls)]
    write_rows(folder, pa.concat_tables([made_up_rows(values), to_table(rows)]))
    write_run(folder, made_up_record(values) | {"mandatory": mandatory})
    return folder


def test_calls_are_counted_per_clause(tmp_path: Path) -> None:
    run = make_contract_run(tmp_path / "run")
    table = clause_table(run)
    lines = {line["clause"]: line for line in records(table)}
    told = {clause: (line["judged"], line["violates"], follows(line)) for clause, line in lines.items()}
    assert told == {"null.self": (2, 0, "code"), "rank": (3, 0, "code 1, page 2"), "dtype": (2, 2, ""), "": (1, 0, "")}
    assert lines["null.self"]["statement"] == "self is given."
    assert lines[""]["statement"] == LEGAL
    empty = clause_table(make_contract_run(tmp_path / "empty", ()))
    assert (len(empty), list(empty.columns)) == (0, list(table.columns))
    page = write_run_page(read_digest(run), tmp_path / "index.html").read_text(encoding="utf-8")
    assert "null.<wbr>self</th>" in page
    assert "<details open><summary>Every clause" in page
    package(run, tmp_path / "bundle.zip")
    with ZipFile(tmp_path / "bundle.zip") as archive:
        assert len(archive.read("tables/clauses.csv").decode().splitlines()) == 1 + len(read_digest(run).clauses)


def test_a_history_holds_one_cell_for_all_clauses_and_the_terminal_lists_those_to_be_read(tmp_path: Path) -> None:
    run = make_contract_run(tmp_path / "run")
    add(tmp_path / "history", run)
    sql = "SELECT planned, judged, missing FROM cells WHERE aspect = 'contract'"
    assert query(read_entries(tmp_path / "history"), sql).values.tolist() == [[8, 8, 0]]
    lines = [" ".join(line.split()) for line in shown(read_digest(run)).splitlines()]
    assert (
        "npu A2: 3 clauses of 1 operator in 8 calls, 2 violated; where code and page of the library disagree, it "
        "follows the code in 2 calls and the page in 2"
    ) in lines
    listed = lines[lines.index("Clauses that are violated or answered as the page says") + 1 :][:3]
    subject = f"npu {OPERATOR}"
    assert listed[0] == f"✗2 {subject} dtype self is FLOAT."
    assert listed[1] == f"code 1, page 2 {subject} rank self has four or five axes."
    assert "self is given." not in listed[2]


def test_a_clause_that_was_not_asked_is_a_gap(tmp_path: Path) -> None:
    digest = read_digest(make_contract_run(tmp_path, [call for call in CALLS if call[0] == "null.self"]))
    assert digest.conclusion.overall is Overall.INCOMPLETE
    assert dict(zip(digest.gaps["clause"], digest.gaps["missing"], strict=True)) == {"rank": 3, "dtype": 2, "": 1}
    write_run_page(digest, tmp_path / "index.html")
    assert f"npu {OPERATOR} contract rank" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_call_that_breaks_two_pairs_of_clauses_contradicts_neither(tmp_path: Path) -> None:
    asked = ["--operator", "MaxPool2dWithIndices", "--aspect", "contract", "-k", "contract-pairs"]
    folder = run_session(tmp_path, "emulator-950", asked=asked).folder
    keys = Counter((row["case_id"], row["statement"]) for row in read_rows(folder).to_pylist())
    assert len(keys) > len({case for case, _ in keys})
    assert row_problems(read_digest(folder), is_known=True) == ([], [])


def test_a_run_of_the_contract_alone_says_of_which_product(tmp_path: Path) -> None:
    ended = run_session(tmp_path, "emulator-a2", asked=["--operator", OPERATOR, "--aspect", "contract"])
    assert ended.status == Overall.CONFORMS, ended.output
    assert "emulator-a2 A2: " in ended.output
    assert "torch-3d" not in ended.output + ended.page
