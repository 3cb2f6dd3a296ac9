"""A run as JUnit XML, the format every CI shows: one test case per backend, operator, dtype and aspect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from poolproof.reports.figures.conclusion import count_of
from poolproof.reports.figures.digest import Digest
from poolproof.reports.figures.tables import Record, records
from poolproof.reports.rows.failures import replay_line

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TEST_CASE = ["backend", "operator", "dtype", "aspect"]


def write_junit(digest: Digest, path: Path) -> Path:
    """Write the XML. A deviation is a failure, a gap in what had to be judged an error.

    So is an exception of the suite or of an adapter; what nobody owes is skipped.
    """
    gaps = _gaps(digest.coverage)
    suites: dict[str, ElementTree.Element] = {}
    root = ElementTree.Element("testsuites", name="poolproof")
    for counts in records(_with_never_asked(digest.counts.groupby(level=_TEST_CASE).sum(), gaps).reset_index()):
        backend, operator, dtype, aspect = key = tuple(counts[name] for name in _TEST_CASE)
        if backend not in suites:
            suites[backend] = _suite(root, digest.run, backend)
        name = f"{dtype} {aspect or 'support'}".lstrip()
        case = ElementTree.SubElement(suites[backend], "testcase", classname=f"{backend}.{operator}", name=name)
        _refusals(case, counts)
        _result(case, counts, gaps.get(key), digest)
    for element in (*suites.values(), root):
        _total(element)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    return path


def _suite(root: ElementTree.Element, run: Mapping[str, Any], backend: str) -> ElementTree.Element:
    """A test suite for a backend, with the environment as its properties."""
    suite = ElementTree.SubElement(root, "testsuite", name=backend, timestamp=_timestamp(run))
    properties = ElementTree.SubElement(suite, "properties")
    about = {"plan": run["plan"], "seed": run["seed"], **run["host"], **run["backends"].get(backend, {})}
    for name, value in about.items():
        ElementTree.SubElement(properties, "property", name=name, value=str(value))
    return suite


def _refusals(case: ElementTree.Element, counts: Record) -> None:
    """How many calls were never run because they were refused, as properties."""
    told = {"refused as documented": counts["refused"], "refused undocumented": counts["undocumented"]}
    if any(told.values()):
        properties = ElementTree.SubElement(case, "properties")
        for name, number in told.items():
            ElementTree.SubElement(properties, "property", name=name, value=str(number))


def _result(case: ElementTree.Element, counts: Record, gap: Record | None, digest: Digest) -> None:
    if counts["violates"]:
        message = f"{count_of(counts['violates'], 'case')} of {counts['judged']:,} deviate"
        failure = ElementTree.SubElement(case, "failure", type="violates", message=message)
        failure.text = _examples(digest, counts["backend"], counts["operator"])
    elif gap:
        message = f"{gap['missing']:,} of {count_of(gap['planned'], 'planned case')} were not judged: {gap['because']}"
        ElementTree.SubElement(case, "error", type="incomplete", message=_NOT_IN_XML.sub("?", message))
    elif counts["undocumented"]:
        message = f"{count_of(counts['undocumented'], 'call')} refused, and no document is known that allows it"
        ElementTree.SubElement(case, "error", type="incomplete", message=message)
    elif raised := counts["suite_errors"] + counts["adapter_errors"]:
        message = f"{count_of(raised, 'case')} ended by an exception of the suite itself or of an adapter"
        ElementTree.SubElement(case, "error", type="incomplete", message=message)
    elif not counts["judged"]:
        ElementTree.SubElement(case, "skipped", message="the backend does not have it")


def _examples(digest: Digest, backend: str, operator: str) -> str:
    """What failed in the operator and how to see it again, one of each kind."""
    failed = digest.failures
    failed = failed[(failed["backend"] == backend) & (failed["operator"] == operator)]
    texts = (f"{row['verdict']}: {row['reason']}\n{replay_line(row)}" for row in records(failed))
    return _NOT_IN_XML.sub("?", "\n\n".join(texts))


def _gaps(coverage: pd.DataFrame) -> dict[tuple[str, ...], Record]:
    """Per test case what is missing of it; mandatory groups that are told apart by other columns are left out."""
    if not set(_TEST_CASE).issubset(coverage.columns):
        return {}
    gaps = coverage[coverage["missing"] > 0]
    summed = gaps.groupby(_TEST_CASE).agg({"missing": "sum", "planned": "sum", "because": "first"})
    return {tuple(gap[name] for name in _TEST_CASE): gap for gap in records(summed.reset_index())}


def _with_never_asked(counts: pd.DataFrame, gaps: Mapping[tuple[str, ...], Record]) -> pd.DataFrame:
    """The counts with a line of zeros for test cases that no row is about."""
    known = counts.index.union(pd.MultiIndex.from_tuples(gaps, names=_TEST_CASE)) if gaps else counts.index
    return counts.reindex(known, fill_value=0)


def _total(element: ElementTree.Element) -> None:
    element.set("tests", str(len(element.findall(".//testcase"))))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(len(element.findall(f".//testcase/{tag}"))))


def _timestamp(run: Mapping[str, Any]) -> str:
    return datetime.fromtimestamp(run["started"], UTC).strftime("%Y-%m-%dT%H:%M:%S")
