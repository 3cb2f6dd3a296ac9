"""Forgeries of a run: what somebody would change who packs the bundle himself, with all that follows made to agree.

A forger has the run's folder and the suite: rows, run.json and evidence are edited, and `package` makes tables, pages,
verdict and hashes anew. `FORGERIES` are the edits by their titles; docs/explanation/forgeries.md has what catches each.
"""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from places import ROOT
from poolproof.references.summary import ULP_CLASSES
from poolproof.reports.bundle.packing import SUMS
from poolproof.reports.rows.arrow import SCHEMA
from poolproof.reports.rows.checks import CHECK_IDS, REFUSAL
from poolproof.reports.rows.evidence import evidence_path, shrunk_path
from poolproof.reports.rows.store import read_rows, read_run, write_run
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.checks import expected_checks
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.selection import Selection

Rows = list[dict[str, Any]]
Forge = Callable[[Path], None]
"""Edits a run's folder."""


def rewrite(folder: Path, edit: Callable[[Rows], Rows]) -> None:
    """All rows of a run, edited, as one part."""
    rows = edit(read_rows(folder).to_pylist())
    for part in (folder / "rows").glob("*.parquet"):
        part.unlink()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / "rows" / "main-0000.parquet")


def change_bundle(bundle: Path, name: str, edit: Callable[[bytes], bytes] | None, hashed: bool = True) -> None:
    """Edit a file of a bundle, or remove it; ``hashed`` makes its sums agree again, as a careful forger would."""
    with ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    before = files.pop(name, b"")
    if edit:
        files[name] = edit(before)
    if hashed:
        named = sorted(set(files) - {SUMS})
        files[SUMS] = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in named).encode()
    with ZipFile(bundle, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def _rows(edit: Callable[[Rows], Rows]) -> Forge:
    return lambda folder: rewrite(folder, edit)


def _record(edit: Callable[[dict[str, Any]], object]) -> Forge:
    def forge(folder: Path) -> None:
        record = read_run(folder)
        edit(record)
        write_run(folder, record)

    return forge


_FAILING = ("violates", "crashed")
_ERRORS = ("max_abs_err", "mean_abs_err", "max_ulp", "mere", "mare")
_HEALED = {"checks_violated": [], "findings": "", "reason": "", "waivers": None, "shrunk": None, "n_reject": 0}
_HEALED |= {"verdict": "conforms", "checks_judged": sorted(CHECK_IDS)}
"""What a conforming row says of itself."""


def _changed(*verdicts: str, **entries: object) -> Forge:
    """Some entries of all rows with one of the verdicts."""
    return _rows(lambda rows: [row | entries if row["verdict"] in verdicts else row for row in rows])


def _cell(column: str, value: object, verdict: str = "conforms") -> Forge:
    """An entry of the first row with a verdict; of what is there already where ``value`` is a function."""

    def edit(rows: Rows) -> Rows:
        row = next(row for row in rows if row["verdict"] == verdict)
        row[column] = value(row[column]) if callable(value) else value
        return rows

    return _rows(edit)


def _kept(keeps: Callable[[dict[str, Any]], object]) -> Forge:
    return _rows(lambda rows: [row for row in rows if keeps(row)])


def _doubled_for_failures(rows: Rows) -> Rows:
    good = [row for row in rows if row["verdict"] == "conforms"]
    kept = [row for row in rows if row["verdict"] not in _FAILING]
    return kept + good[: len(rows) - len(kept)]


def _other_cases_for_failures(rows: Rows) -> Rows:
    """Each failing row becomes a copy of a passing one, under the failing one's case id."""
    good = [row for row in rows if row["verdict"] == "conforms"]
    return [dict(good[0], case_id=row["case_id"]) if row["verdict"] == "violates" else row for row in rows]


def _healed(row: dict[str, Any]) -> dict[str, Any]:
    """A failing row as one that conforms exactly: with the checks that judge its case, and the measures that it has."""
    if row["verdict"] not in _FAILING:
        return row
    cells, checks = row["elements"], CASE_ASPECTS[row["aspect"]].checks
    exact = dict.fromkeys(("n", "n_single_valued", "n_bitexact", "ulp_0"), cells) | dict.fromkeys(_ERRORS, 0.0)
    exact |= dict.fromkeys((*ULP_CLASSES[1:], "ulp_nonfinite", "n_inexact"), 0)
    judged = [REFUSAL, *expected_checks(Case.from_json(row["case"]), checks)]
    told = {"checks_judged": judged, "repeat_n": 1, "output_digest": row["output_digest"] or "0" * 16}
    return row | _HEALED | exact | told | {"model": row["model"] or "acc32", "bias_ulp": None}


def _healed_with_evidence(folder: Path) -> None:
    """The whole story retold: rows, and no evidence against them."""
    rewrite(folder, lambda rows: list(map(_healed, rows)))
    for path in folder.glob("evidence/**/*.npz"):
        path.unlink()


def _another_waiver(record: dict[str, Any]) -> None:
    scope = {"backend": next(iter(record["backends"]))}
    given = {"id": "agreed", "reason": "as agreed", "owner": "both", "expires": "2099-01-01", "scope": scope}
    record["waivers"].append(given)


def _budgeted(folder: Path) -> None:
    """A budget that is said to have been used up before the cases that fail."""
    rewrite(folder, lambda rows: [row for row in rows if row["verdict"] != "violates"])
    _set("budget", {"seconds": 60.0, "took": 59.0, "until": 1.0})(folder)


def _selection(name: str, edit: Callable[[Any], object]) -> Forge:
    return _record(lambda record: record["selection"].update({name: edit(record["selection"][name])}))


def _wholly_unsupported(record: dict[str, Any]) -> None:
    backend = next(iter(record["selection"]["backends"].values()))
    for subject in backend["subjects"]:
        if subject[0] == record["selection"]["operators"][0]:
            subject[3] = "not there"


def _set(name: str, value: object) -> Forge:
    return _record(lambda record: record.update({name: value}))


def _fewer_subjects(record: dict[str, Any]) -> None:
    for backend in record["selection"]["backends"].values():
        backend["subjects"] = [each for each in backend["subjects"] if "2d" in each[0]]
    record["plan_cases"] = Selection.from_record(record["selection"]).plan_cases()


def _product_invented(record: dict[str, Any]) -> None:
    for backend in record["selection"]["backends"].values():
        backend["product"] = "A2"


def _widened(record: dict[str, Any]) -> None:
    next(waiver for waiver in record["waivers"] if waiver["id"] != "known")["scope"] = {"backend": "reports*"}


def _revived(record: dict[str, Any]) -> None:
    next(waiver for waiver in record["waivers"] if waiver["id"] == "known")["expires"] = "2026-01-31"
    record["waivers_judged_on"] = "2026-01-31"


def _environments(edit: Callable[[dict[str, str]], dict[str, str]]) -> Forge:
    return _record(lambda r: r.update(backends={name: edit(each) for name, each in r["backends"].items()}))


def _library(edit: Callable[[str, str], str]) -> Forge:
    """The first library of each backend, of a hash and a place, told otherwise."""

    def told(environment: dict[str, str]) -> dict[str, str]:
        name = next(name for name in environment if name.startswith("library "))
        return environment | {name: edit(*environment[name].split(", ", 1))}

    return _environments(told)


def _evidence(**edits: Callable[[Any], Any]) -> Forge:
    """Arrays of all evidence, edited."""

    def forge(folder: Path) -> None:
        for path in sorted(folder.glob("evidence/*.npz")):
            with np.load(path) as stored:
                arrays = dict(stored)
            for name, edit in edits.items():
                arrays[name] = edit(arrays)
            np.savez_compressed(path, **arrays)

    return forge


def _farther(arrays: dict[str, Any]) -> Any:
    """Another output, of which as many cells are rejected."""
    got, low, high = arrays["got"], arrays["low"], arrays["high"]
    return np.where((low <= got) & (got <= high), got, 2 * high - low + abs(got) + 1)


def _evidence_of_another(folder: Path) -> None:
    path = next(folder.glob("evidence/*.npz"))
    row = next(row for row in read_rows(folder).to_pylist() if row["verdict"] == "conforms" and row["n"])
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays |= {"low": arrays["got"], "high": arrays["got"], "flags": np.full_like(arrays["flags"], 15)}
    np.savez_compressed(evidence_path(folder, row["case_id"], row["backend"]), **arrays)


def _another_column(folder: Path) -> None:
    part = next((folder / "rows").glob("*.parquet"))
    rows = pq.read_table(part)
    pq.write_table(rows.append_column("remark", pa.array(["fine"] * rows.num_rows)), part)


def _hidden_from_filters(folder: Path) -> None:
    """Healed rows in a part of their own, whose footer says that all its blocks are empty: filters pass over it."""
    failed = {row["case_id"] for row in read_rows(folder).to_pylist() if row["verdict"] in _FAILING}
    _healed_with_evidence(folder)
    healed = [row for row in read_rows(folder).to_pylist() if row["case_id"] in failed]
    rewrite(folder, lambda rows: [row for row in rows if row["case_id"] not in failed])
    part = folder / "rows" / "more-0000.parquet"
    pq.write_table(pa.Table.from_pylist(healed, SCHEMA), part)
    content, blocks = part.read_bytes(), sorted(row["block"].encode() for row in healed)
    footer, least, most = int.from_bytes(content[-8:-4], "little"), blocks[0], blocks[-1]
    body, said = content[: -8 - footer], content[-8 - footer : -8]
    told = b"\x28%c%b\x18%c%b" % (len(most), most, len(least), least)  # max_value and min_value, as Thrift writes them
    assert said.count(told) == 1
    said = said.replace(told, b"\x28\0\x18\0")
    part.write_bytes(body + said + len(said).to_bytes(4, "little") + content[-4:])


def _of_another_name(record: dict[str, Any]) -> None:
    """A plan as large as the run, under a name that reads like that of a larger one."""
    record["plan"] = record["selection"]["plan"] = "acceptance\u200b"
    record["plan_cases"] = sum(group["planned"] for group in record["mandatory"])


def _in_the_future(folder: Path) -> None:
    decade = 10 * 365 * 86_400.0
    rewrite(folder, lambda rows: [row | {"judged_at": row["judged_at"] and row["judged_at"] + decade} for row in rows])
    _record(lambda record: record.update({name: record[name] + decade for name in ("started", "finished")}))(folder)


def _of_other_letters(record: dict[str, Any]) -> None:
    waiver = next(waiver for waiver in record["waivers"] if waiver["id"] != "known")
    waiver |= {"id": waiver["id"].upper(), "scope": {"backend": "reports*"}}


def _account(**changes: object) -> Forge:
    """What all evidence says of itself, changed."""
    return _evidence(meta=lambda arrays: np.array(json.dumps(json.loads(str(arrays["meta"])) | changes)))


def _shrunk_to_what_conforms(folder: Path) -> None:
    """A smaller case beside a failure, which is said to fail, and whose output is what it has to be."""
    failed = next(row for row in read_rows(folder).to_pylist() if "interval" in (row["checks_violated"] or ()))
    path = evidence_path(folder, failed["case_id"], failed["backend"])
    with np.load(path) as stored:
        arrays = dict(stored)
    shrunk = shrunk_path(folder, failed["case_id"], failed["backend"])
    shrunk.parent.mkdir(exist_ok=True)
    np.savez_compressed(shrunk, **arrays | {"got": arrays["exact"]})
    told = {"shrunk": failed["case"], "shrunk_reason": failed["reason"]}
    rewrite(folder, lambda rows: [row | told if row["case_id"] == failed["case_id"] else row for row in rows])


FORGERIES: dict[str, Forge] = {
    "every failure's row made to conform, evidence kept": _changed(*_FAILING, **_HEALED),
    "only the verdict of every failure changed": _changed(*_FAILING, verdict="conforms"),
    "verdict and violated checks changed, findings kept": _changed(*_FAILING, verdict="conforms", checks_violated=[]),
    "failures marked as waived by a waiver that is not there": _changed(
        "violates", verdict="waived", waivers=["agreed"]
    ),
    "failures marked as documented refusals": _changed("violates", verdict="refused as documented"),
    "violations cleaned, every case replaced by {}": _rows(
        lambda rows: [row | _HEALED | {"case": "{}"} for row in rows]
    ),
    "failing rows dropped": _kept(lambda row: row["verdict"] not in _FAILING),
    "failing rows replaced by passing ones a second time": _rows(_doubled_for_failures),
    "failing rows replaced by copies of a passing one": _rows(_other_cases_for_failures),
    "every row dropped": _rows(lambda rows: rows[:1]),
    "rows of one aspect dropped": _kept(lambda row: row["aspect"] != "layouts"),
    "rows of unsupported cases dropped": _kept(lambda row: row["block"]),
    "no check recorded for a passing case": _changed("conforms", checks_judged=[]),
    "a case id changed": _cell("case_id", "0123456789ab"),
    "the case of a row changed": _cell("case", '{"operator":"MaxPool2dWithIndices"}'),
    "the operator of a row changed": _cell("operator", "AdaptiveMaxPool3d"),
    "the dtype of a row changed": _cell("dtype", "float16"),
    "the aspect of a row changed": _cell("aspect", "values2"),
    "the block of a row changed": _cell("block", "another"),
    "the backend of a row changed": _cell("backend", "another"),
    "the product of a row changed": _cell("product", "A2"),
    "the shape of a row changed": _cell("shape", "1x1"),
    "the seed of a row changed": _cell("seed", 7),
    "the layouts of a row changed": _cell("layouts", "self:sliced"),
    "a verdict that does not exist": _cell("verdict", "fine"),
    "findings that cannot be read": _cell("findings", "[", "violates"),
    "another reason than was found": _cell("reason", "a small thing", "violates"),
    "a check struck off those that judged": _cell(
        "checks_judged", lambda checks: [each for each in checks if each != "memory_untouched"]
    ),
    "a check that does not exist": _cell("checks_judged", ["all"]),
    "a rejected element that is not counted": _cell("n_reject", 0, "violates"),
    "evidence with intervals that admit the output": _evidence(
        low=lambda arrays: arrays["got"], high=lambda arrays: arrays["got"]
    ),
    "evidence removed": lambda folder: next(folder.glob("evidence/*.npz")).unlink(),
    "fewer mandatory groups": _record(lambda r: r.update(mandatory=r["mandatory"][:1])),
    "a smaller plan recorded": _selection("cases", lambda cases: cases - 1),
    "fewer operators recorded": _selection("operators", lambda names: names[:1]),
    "an operator recorded as not supported": _record(_wholly_unsupported),
    "the seed of the run changed": _selection("seed", lambda _: 5),
    "a part of the plan presented as the whole": _record(
        lambda r: r.update(plan_cases=sum(group["planned"] for group in r["mandatory"]))
    ),
    "options that left cases out replaced by others": _selection("options", lambda _: []),
    "a selection invented": _set("narrowed", {"selected": 1, "planned": 2, "tests": []}),
    "a budget invented, used up before what fails": _budgeted,
    "a waiver invented": _record(_another_waiver),
    "waivers redated": _record(lambda r: [waiver.update(expires="2020-01-01") for waiver in r["waivers"]]),
    "the day of judging moved past the waivers": _set("waivers_judged_on", "2099-01-01"),
    "a run marked as unfinished": _set("finished", None),
    "another host": _record(lambda record: record["host"].update(cpu="another")),
    "another environment of the judged library": _environments(lambda each: dict.fromkeys(each, '"another"')),
    "better errors in the statistics": _rows(
        lambda rows: [row | {"max_ulp": 0.0} if row["max_ulp"] else row for row in rows]
    ),
    "more exact cells than there are": _cell("n_bitexact", 1 << 40),
    "a time below 0": _cell("seconds", -1.0),
    "a case judged before the run": _cell("judged_at", 1.0),
    "a case that took longer than the run": _cell("seconds", 1e7),
    "a smoke plan presented as an acceptance plan": _set("plan", "acceptance"),
    "another seed recorded": _set("seed", 77),
    "other options recorded than were given": _record(
        lambda r: r["arguments"].extend(["--operator", "MaxPool3dWithArgmax"])
    ),
    "a strict run recorded as lenient": _record(lambda r: r["arguments"].append("--strict-waivers")),
    "operators left out of what there is": _record(_fewer_subjects),
    "a product invented": _record(_product_invented),
    "another way of adding": _cell("model", "native+ftz"),
    "failures rewritten as documented refusals": _changed(
        *_FAILING, **_HEALED | {"verdict": "refused as documented", "reason": "windows without a cell"}
    ),
    "a waiver of the suite widened": _record(_widened),
    "waivers revived by another day": _record(_revived),
    "a library without its hash": _library(lambda _, place: f"sha256:unknown, {place}"),
    "a library in another place": _library(lambda hashed, _: f"{hashed}, /usr/lib/other.so"),
    "another version of torch": _environments(lambda each: each | {"torch": "1.0"}),
    "intervals of the evidence widened": _evidence(high=lambda arrays: arrays["high"] + 1e-9),
    "exact sums of the evidence changed": _evidence(exact=lambda arrays: arrays["exact"] + 1.0),
    "inputs of the evidence changed": _evidence(gradient=lambda arrays: arrays["gradient"] * 2.0),
    "another output in the evidence": _evidence(got=_farther),
    "other data recorded for a failure": _cell("data", ["ties"], "violates"),
    "evidence beside a row that violates nothing": _evidence_of_another,
    "a column that no row has": _another_column,
    "a part without rows": lambda folder: pq.write_table(SCHEMA.empty_table(), folder / "rows" / "more-0000.parquet"),
    "everything forged: rows healed, evidence removed": _healed_with_evidence,
    "rows healed in a part with a footer that calls its blocks empty": _hidden_from_filters,
    "a plan of a name that reads like another's": _record(_of_another_name),
    "digests of passing cases changed": _changed("conforms", output_digest="0" * 16),
    "no digest of a passing case": _changed("conforms", output_digest=None),
    "standards marked as passed": _changed("conforms", standards_passed=["mixed_tolerance"]),
    "more repetitions than were made": _changed("conforms", repeat_n=9),
    "a check of another aspect recorded": _cell("checks_judged", lambda checks: [*checks, "round_trip"]),
    "no measures of a passing case": _changed("conforms", n=None),
    "other data recorded for a passing case": _changed("conforms", data=["ties"]),
    "another route": _changed("conforms", route="another"),
    "smaller errors in the mean": _rows(lambda rows: [row | {"mean_abs_err": 0.0} for row in rows]),
    "no time taken": _rows(lambda rows: [row | {"seconds": 0.0} for row in rows]),
    "a run of the future": _in_the_future,
    "a waiver of the suite widened, its id in other letters": _record(_of_other_letters),
    "evidence of another backend": _account(backend="torch-cpu"),
    "evidence of other checks": _account(checks=["modes"]),
    "a smaller case that conforms": _shrunk_to_what_conforms,
    "another chip": _environments(lambda each: each | {"device": "another"}),
}

CAUGHT = dict(
    re.findall(
        r"^\| (.+) \| (caught: .*|a rerun tells|a rerun says so|only the signature tells) \|$",
        (ROOT / "docs" / "explanation" / "forgeries.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)
"""What catches each, as the page has it: words that ``poolproof verify`` says, a rerun, or a signature alone.

A rerun "says so" where it agrees, and names what is other in the bundle.
"""

UNTRACED = [title for title, caught in CAUGHT.items() if not caught.startswith("caught")]
