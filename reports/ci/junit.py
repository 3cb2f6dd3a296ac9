"""A run as JUnit XML, the format every CI shows: one test case per backend, operator, dtype and aspect.

Before them stands a failing test case for each root cause: the others do not say what they have in common.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd

from poolproof.reports.clusters import asides, describe
from poolproof.reports.figures.digest import Digest
from poolproof.reports.figures.tables import Record, failures, records
from poolproof.reports.rows.failures import KIND, failure_text
from poolproof.reports.rows.text import count_of, visible

_NOT_IN_XML = re.compile("[\ufffe\uffff]")
"""What of a text that is `visible` XML has no way to say."""

_TEST_CASE = ["backend", "operator", "dtype", "aspect"]


def write_junit(digest: Digest, path: Path) -> Path:
    """Write the XML. A deviation is a failure, a gap in what had to be judged an error.

    So is an exception of the suite or of an adapter; what nobody has to judge is skipped.
    """
    gaps, examples = _gaps(digest.coverage), _examples(digest)
    suites: dict[str, ElementTree.Element] = {}
    root = ElementTree.Element("testsuites", name="poolproof")
    for counts in records(_counts(digest, gaps)):
        backend, operator, dtype, aspect = key = _test_case(counts)
        if backend not in suites:
            suites[backend] = _suite(root, digest, backend)
        name = f"{dtype} {aspect or 'support'}".lstrip()
        case = ElementTree.SubElement(suites[backend], "testcase", classname=f"{backend}.{operator}", name=name)
        refused = {"refused as documented": counts["refused"], "refused undocumented": counts["undocumented"]}
        if any(refused.values()):  # calls that were never run
            _add_properties(case, refused)
        _result(case, counts, gaps.get(key), examples.get(key, ""))
    for element in (*suites.values(), root):
        element.set("tests", str(len(element.findall(".//testcase"))))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            element.set(attribute, str(len(element.findall(f".//testcase/{tag}"))))
    for element in root.iter():  # names and messages come from outside
        element.text = element.text and _NOT_IN_XML.sub("?", visible(element.text))
        for name, value in element.attrib.items():
            element.set(name, _NOT_IN_XML.sub("?", visible(value)))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    return path


def _suite(root: ElementTree.Element, digest: Digest, backend: str) -> ElementTree.Element:
    """Add a test suite for a backend: the environment as its properties, a failing test case for each root cause."""
    run = digest.run
    started = datetime.fromtimestamp(run["started"], UTC).strftime("%Y-%m-%dT%H:%M:%S")
    suite = ElementTree.SubElement(root, "testsuite", name=backend, timestamp=started)
    environment = {**run["host"], **run["backends"].get(backend, {})}
    _add_properties(suite, {"plan": run["plan"], "seed": run["seed"], **environment})
    for cluster in digest.root_causes:
        if cluster.backend == backend:
            case = ElementTree.SubElement(suite, "testcase", classname=f"{backend}.suspects", name=cluster.name)
            failure = ElementTree.SubElement(case, "failure", type="suspect", message=describe(cluster))
            failure.text = "\n".join([*asides(cluster), failure_text(cluster.smallest)])
    return suite


def _add_properties(element: ElementTree.Element, values: Mapping[str, object]) -> None:
    properties = ElementTree.SubElement(element, "properties")
    for name, value in values.items():
        ElementTree.SubElement(properties, "property", name=name, value=str(value))


def _result(case: ElementTree.Element, counts: Record, gap: Record | None, examples: str) -> None:
    message = ""
    if counts["violates"]:
        deviating = f"{count_of(counts['violates'], 'case')} of {counts['judged']:,} deviate"
        ElementTree.SubElement(case, "failure", type="violates", message=deviating).text = examples
    elif gap:
        message = f"{gap['missing']:,} of {count_of(gap['planned'], 'planned case')} were not judged: {gap['because']}"
    elif counts["undocumented"]:
        message = f"{count_of(counts['undocumented'], 'call')} refused, and no document is known that allows it"
    elif raised := counts["suite_errors"] + counts["adapter_errors"]:
        message = f"{count_of(raised, 'case')} ended by an exception of the suite itself or of an adapter"
    elif not counts["judged"]:
        ElementTree.SubElement(case, "skipped", message="the backend does not have it")
    if message:
        ElementTree.SubElement(case, "error", type="incomplete", message=message)


def _examples(digest: Digest) -> dict[tuple[str, ...], str]:
    """Return per test case what failed in it and how to rerun it, one of each of five kinds."""
    texts = defaultdict[tuple[str, ...], list[str]](list)
    for row in records(failures(digest.folder, tuple(dict.fromkeys((*_TEST_CASE, *KIND))))):
        texts[_test_case(row)].append(failure_text(row))
    return {key: "\n\n".join(lines[:5]) for key, lines in texts.items()}


def _test_case(record: Record) -> tuple[str, ...]:
    return tuple(record[name] for name in _TEST_CASE)


def _gaps(coverage: pd.DataFrame) -> dict[tuple[str, ...], Record]:
    """Return per test case what is missing of it; groups that other columns identify are left out."""
    if not set(_TEST_CASE).issubset(coverage.columns):
        return {}
    gaps = coverage[coverage["missing"] > 0]
    summed = gaps.groupby(_TEST_CASE).agg({"missing": "sum", "planned": "sum", "because": "first"})
    return {_test_case(gap): gap for gap in records(summed.reset_index())}


def _counts(digest: Digest, gaps: Mapping[tuple[str, ...], Record]) -> pd.DataFrame:
    """Count per test case, with a line of zeros for those that no row is about."""
    counts = digest.counts.groupby(level=_TEST_CASE).sum()
    known = counts.index.union(pd.MultiIndex.from_tuples(gaps, names=_TEST_CASE)) if gaps else counts.index
    return counts.reindex(known, fill_value=0).reset_index()
