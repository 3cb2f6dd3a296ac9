"""Forgeries of a run: what somebody would change who packs the bundle himself, with all that follows made to agree.

A forger has the run's folder and the suite: rows, run.json and evidence are edited, and `package` makes tables, pages,
verdict and hashes anew. `FORGERIES` says of each what is done and what catches it: a word of the sentence that
``poolproof verify`` says, or `SIGNATURE` where a careful forger leaves no trace but the signature that no longer fits.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from poolproof.reports.bundle.packing import SUMS
from poolproof.reports.rows.arrow import SCHEMA
from poolproof.reports.rows.checks import CHECK_IDS
from poolproof.reports.rows.evidence import evidence_path
from poolproof.reports.rows.store import read_rows, read_run, write_run
from poolproof.suites.plan.selection import Selection, mandatory

SIGNATURE = ""
"""In place of a sentence: only a signature tells."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Forgery:
    """``forge`` edits a run's folder; ``caught`` is part of the sentence that tells, ``rerun`` whether a rerun does."""

    title: str
    forge: Callable[[Path], None]
    caught: str
    rerun: bool = False


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


def _rows(edit: Callable[[Rows], Rows]) -> Callable[[Path], None]:
    return lambda folder: rewrite(folder, edit)


def _record(edit: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def forge(folder: Path) -> None:
        record = read_run(folder)
        edit(record)
        write_run(folder, record)

    return forge


_FAILING = ("violates", "crashed")
_HEALED = {"checks_violated": [], "findings": "", "reason": "", "waivers": None, "shrunk": None, "n_reject": 0}
_HEALED |= {"verdict": "conforms", "checks_judged": sorted(CHECK_IDS)}
"""What a conforming row says of itself."""


def _changed(*verdicts: str, **entries: object) -> Callable[[Path], None]:
    """Some entries of all rows with one of the verdicts."""
    return _rows(lambda rows: [row | entries if row["verdict"] in verdicts else row for row in rows])


def _cell(column: str, value: object, verdict: str = "conforms") -> Callable[[Path], None]:
    """An entry of the first row with a verdict; of what is there already where ``value`` is a function."""

    def edit(rows: Rows) -> Rows:
        row = next(row for row in rows if row["verdict"] == verdict)
        row[column] = value(row[column]) if callable(value) else value
        return rows

    return _rows(edit)


def _one_less(checks: list[str]) -> list[str]:
    return [check for check in checks if check != "memory_untouched"]


def _kept(keeps: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    return _rows(lambda rows: [row for row in rows if keeps(row)])


def _doubled_for_failures(rows: Rows) -> Rows:
    good = [row for row in rows if row["verdict"] == "conforms"]
    kept = [row for row in rows if row["verdict"] not in _FAILING]
    return kept + good[: len(rows) - len(kept)]


def _other_cases_for_failures(rows: Rows) -> Rows:
    """Each failing row becomes a copy of a passing one, under the failing one's case id."""
    good = [row for row in rows if row["verdict"] == "conforms"]
    return [dict(good[0], case_id=row["case_id"]) if row["verdict"] == "violates" else row for row in rows]


def _healed_with_evidence(folder: Path) -> None:
    """The whole story retold: rows, and no evidence against them."""
    _changed(*_FAILING, **_HEALED)(folder)
    for path in folder.glob("evidence/**/*.npz"):
        path.unlink()


def _another_waiver(record: dict[str, Any]) -> None:
    scope = {"backend": next(iter(record["backends"]))}
    given = {"id": "agreed", "reason": "as agreed", "owner": "both", "expires": "2099-01-01", "scope": scope}
    record["waivers"].append(given)


def _whole(record: dict[str, Any]) -> None:
    record["plan_cases"] = sum(group["planned"] for group in record["mandatory"])


def _budgeted(record: dict[str, Any]) -> None:
    """A budget that was enough for the first case of a block, with what the run then owes."""
    blocks = Selection.from_record(record["selection"]).blocks()
    parts = {block.id: [block.min_cases, block.count] for block in blocks if block.count > block.min_cases}
    record["budget"] = {"seconds": 60.0, "took": 59.0, "until": record["started"] + 60.0, "asked": parts}
    record["mandatory"] = mandatory(record)


def _selection(name: str, edit: Callable[[Any], object]) -> Callable[[Path], None]:
    return _record(lambda record: record["selection"].update({name: edit(record["selection"][name])}))


def _wholly_unsupported(record: dict[str, Any]) -> None:
    backend = next(iter(record["selection"]["backends"].values()))
    for subject in backend["subjects"]:
        if subject[0] == record["selection"]["operators"][0]:
            subject[3] = "not there"


def _renamed(record: dict[str, Any]) -> None:
    for environment in record["backends"].values():
        environment |= dict.fromkeys(environment, '"another"')


def _set(name: str, value: object) -> Callable[[Path], None]:
    return _record(lambda record: record.update({name: value}))


def _better(folder: Path) -> None:
    def edit(rows: Rows) -> Rows:
        next(row for row in rows if row["max_ulp"])["max_ulp"] = 0.0
        return rows

    rewrite(folder, edit)


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


def _libraries_of(record: dict[str, Any]) -> Iterator[tuple[dict[str, str], str]]:
    for environment in record["backends"].values():
        yield from ((environment, name) for name in list(environment) if name.startswith("library "))


def _unhashed(record: dict[str, Any]) -> None:
    environment, name = next(_libraries_of(record))
    environment[name] = "sha256:unknown, " + environment[name].partition(", ")[2]


def _moved(record: dict[str, Any]) -> None:
    environment, name = next(_libraries_of(record))
    environment[name] = environment[name].partition(", ")[0] + ", /usr/lib/other.so"


def _environment(name: str, value: str) -> Callable[[Path], None]:
    return _record(lambda record: [environment.update({name: value}) for environment in record["backends"].values()])


def _evidence(**edits: Callable[[Any], Any]) -> Callable[[Path], None]:
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


def _empty_part(folder: Path) -> None:
    pq.write_table(SCHEMA.empty_table(), folder / "rows" / "more-0000.parquet")


FORGERIES = (
    Forgery("every failure's row made to conform, evidence kept", _changed(*_FAILING, **_HEALED), "rejected"),
    Forgery("the verdict alone of every failure changed", _changed(*_FAILING, verdict="conforms"), "say it deviates"),
    Forgery(
        "verdict and violated checks changed, findings kept",
        _changed(*_FAILING, verdict="conforms", checks_violated=[]),
        "other checks than",
    ),
    Forgery(
        "failures said to be waived by a waiver that is not there",
        _changed("violates", verdict="waived", waivers=["agreed"]),
        "no waiver covers it",
    ),
    Forgery(
        "failures said to be documented refusals",
        _changed("violates", verdict="refused as documented"),
        "say it deviates",
    ),
    Forgery(
        "violations cleaned, every case replaced by {}",
        _rows(lambda rows: [row | _HEALED | {"case": "{}"} for row in rows]),
        "says case",
    ),
    Forgery("failing rows dropped", _kept(lambda row: row["verdict"] not in _FAILING), "was planned and has no row"),
    Forgery("failing rows replaced by passing ones a second time", _rows(_doubled_for_failures), "more than were"),
    Forgery("failing rows replaced by copies of a passing one", _rows(_other_cases_for_failures), "says case"),
    Forgery("every row dropped", _rows(lambda rows: rows[:1]), "was planned and has no row"),
    Forgery("rows of one aspect dropped", _kept(lambda row: row["aspect"] != "layouts"), "no row"),
    Forgery("what is not supported dropped", _kept(lambda row: row["block"]), "was planned"),
    Forgery("no check judged what conforms", _changed("conforms", checks_judged=[]), "no check judged it"),
    Forgery("a case id changed", _cell("case_id", "0123456789ab"), "was planned and has no row"),
    Forgery("the case of a row changed", _cell("case", '{"operator":"MaxPool2dWithIndices"}'), "says case"),
    Forgery("the operator of a row changed", _cell("operator", "AdaptiveMaxPool3d"), "was planned"),
    Forgery("the dtype of a row changed", _cell("dtype", "float16"), "was planned"),
    Forgery("the aspect of a row changed", _cell("aspect", "values2"), "says aspect"),
    Forgery("the block of a row changed", _cell("block", "another"), "was planned"),
    Forgery("the backend of a row changed", _cell("backend", "another"), "was planned"),
    Forgery("the product of a row changed", _cell("product", "A2"), "says product"),
    Forgery("the shape of a row changed", _cell("shape", "1x1"), "says shape"),
    Forgery("the seed of a row changed", _cell("seed", 7), "says seed"),
    Forgery("the layouts of a row changed", _cell("layouts", "self:sliced"), "says layouts"),
    Forgery("a verdict that does not exist", _cell("verdict", "fine"), "and there is none"),
    Forgery("findings that cannot be read", _cell("findings", "[", "violates"), "cannot be read"),
    Forgery("another reason than was found", _cell("reason", "a small thing", "violates"), "another reason"),
    Forgery("a check struck off those that judged", _cell("checks_judged", _one_less), "which is expected"),
    Forgery("a check that does not exist", _cell("checks_judged", ["all"]), "and there is none"),
    Forgery("a rejected element that is not counted", _cell("n_reject", 0, "violates"), "rejected cell"),
    Forgery(
        "evidence whose intervals admit what came out",
        _evidence(low=lambda arrays: arrays["got"], high=lambda arrays: arrays["got"]),
        "rejected cell",
    ),
    Forgery("evidence removed", lambda folder: next(folder.glob("evidence/*.npz")).unlink(), SIGNATURE),
    Forgery(
        "fewer mandatory groups", _record(lambda r: r.update(mandatory=r["mandatory"][:1])), "other mandatory groups"
    ),
    Forgery("a smaller plan recorded", _selection("cases", lambda cases: cases - 1), "has other mandatory groups"),
    Forgery("fewer operators recorded", _selection("operators", lambda names: names[:1]), "other mandatory groups"),
    Forgery("an operator recorded as not supported", _record(_wholly_unsupported), "has other mandatory groups"),
    Forgery("the seed of the run changed", _selection("seed", lambda _: 5), "was planned"),
    Forgery("a part of the plan told as the whole", _record(_whole), "the whole plan has"),
    Forgery("options that left less told as others", _selection("options", lambda _: []), "names other options"),
    Forgery("a selection invented", _set("narrowed", {"selected": 1, "planned": 2, "tests": []}), "other mandatory"),
    Forgery("a budget invented, too small for what was judged", _record(_budgeted), "more than were planned"),
    Forgery("a waiver invented", _record(_another_waiver), "but not waived"),
    Forgery(
        "waivers redated",
        _record(lambda r: [waiver.update(expires="2020-01-01") for waiver in r["waivers"]]),
        "no waiver covers it",
    ),
    Forgery(
        "the day of judging moved past the waivers", _set("waivers_judged_on", "2099-01-01"), "waivers were judged on"
    ),
    Forgery("a run said to be unfinished", _set("finished", None), SIGNATURE),
    Forgery("another host", _record(lambda record: record["host"].update(cpu="another")), SIGNATURE),
    Forgery("another environment of the judged library", _record(_renamed), "without a hash"),
    Forgery("better errors in the statistics", _better, "errs by more than 0 ulp at most"),
    Forgery("more exact cells than there are", _cell("n_bitexact", 1 << 40), "between 0 and its n"),
    Forgery("a time below 0", _cell("seconds", -1.0), "no number from 0"),
    Forgery("a case judged before the run", _cell("judged_at", 1.0), "outside the time of the run"),
    Forgery("a case that took longer than the run", _cell("seconds", 1e7), "judged for 10,000,00"),
    Forgery("a smoke plan told as an acceptance", _set("plan", "acceptance"), "says plan 'acceptance'"),
    Forgery("another seed told", _set("seed", 77), "says seed 77"),
    Forgery(
        "other options told than were asked",
        _record(lambda r: r["arguments"].extend(["--operator", "MaxPool3dWithArgmax"])),
        "was started with --operator",
    ),
    Forgery("a strict run told as lenient", _record(lambda r: r["arguments"].append("--strict-waivers")), "be strict"),
    Forgery("operators left out of what there is", _record(_fewer_subjects), "pairs of operator and dtypes"),
    Forgery("a product invented", _record(_product_invented), "otherwise than is known"),
    Forgery("another way of adding", _cell("model", "native+ftz"), SIGNATURE, rerun=True),
    Forgery(
        "failures retold as documented refusals",
        _changed(*_FAILING, **_HEALED | {"verdict": "refused as documented", "reason": "windows without a cell"}),
        "no document does",
    ),
    Forgery("a waiver of the suite widened", _record(_widened), "says there something else"),
    Forgery("waivers revived by another day", _record(_revived), "waivers were judged on"),
    Forgery("a library without its hash", _record(_unhashed), "without a hash"),
    Forgery("a library that lies elsewhere", _record(_moved), "that lies in /usr/lib/other.so"),
    Forgery("another version of torch", _environment("torch", "1.0"), "of a wheel of"),
    Forgery("intervals of the evidence widened", _evidence(high=lambda arrays: arrays["high"] + 1e-9), "another array"),
    Forgery(
        "exact sums of the evidence changed",
        _evidence(exact=lambda arrays: arrays["exact"] + 1.0),
        "another array 'exact'",
    ),
    Forgery(
        "inputs of the evidence changed", _evidence(gradient=lambda arrays: arrays["gradient"] * 2.0), "another array"
    ),
    Forgery("another output in the evidence", _evidence(got=_farther), "another output than"),
    Forgery("other data said of a failure", _cell("data", ["ties"], "violates"), "other data than its row"),
    Forgery("evidence beside a row that violates nothing", _evidence_of_another, "its row violates nothing"),
    Forgery("a column that no row has", _another_column, "has other columns than this schema"),
    Forgery("a part without rows", _empty_part, "has no rows"),
    Forgery("the whole story retold: rows healed, evidence removed", _healed_with_evidence, SIGNATURE, rerun=True),
)

UNTRACED = tuple(forgery for forgery in FORGERIES if forgery.caught == SIGNATURE)
"""Those that leave nothing but a signature that no longer fits."""
