"""Annotations and job summaries in the form that each CI service reads."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from poolproof.reports.ci import SERVICES
from poolproof.reports.clusters import FailureCluster, asides, describe
from poolproof.reports.figures.digest import Digest
from poolproof.reports.rows.failures import replay_line
from poolproof.reports.rows.io_errors import writing
from poolproof.reports.rows.text import count_of, visible
from poolproof.reports.rows.verdicts import Overall
from poolproof.reports.waivers.review import STALE, State

GITLAB_FILE = "gl-code-quality-report.json"
"""Name under which a GitLab job uploads the annotations (artifacts:reports:codequality)."""


@dataclass(frozen=True)
class Annotation:
    """One remark; ``level`` is "error", "warning" or "notice", ``place`` names what it is about."""

    level: str
    place: str
    title: str
    text: str


def remarks_about(digest: Digest) -> list[Annotation]:
    """Return one error for each cluster of failures, then warnings.

    One warning is for all gaps, one for each stale waiver; the weightiest come first. Waivers that match no case share
    a notice: of a part of a plan most are, and GitHub shows only ten warnings. A strict run warns of them.
    """
    remarks = [*map(_failures, digest.clusters)]
    if len(digest.gaps):  # one remark for all: a machine without a device has hundreds of them for one cause
        text = f"{'; '.join(digest.conclusion.reasons)}: {digest.gaps['because'].mode()[0]}"
        remarks.append(Annotation("warning", "coverage", Overall.INCOMPLETE.word, text))
    for review in digest.waivers:
        if review.state in STALE - {State.UNMATCHED}:
            title = f"waiver {review.waiver.id}: {review.state}"
            remarks.append(Annotation("warning", f"waivers/{review.waiver.id}", title, review.waiver.reason))
    if unmatched := [each.waiver.id for each in digest.waivers if each.state is State.UNMATCHED]:
        title, level = (
            f"{count_of(len(unmatched), 'waiver')} unmatched",
            "warning" if digest.run["strict_waivers"] else "notice",
        )
        remarks.append(Annotation(level, "waivers", title, ", ".join(unmatched)))
    return remarks


def annotate(digest: Digest, name: str, environment: Mapping[str, str], print_line: Callable[[str], object]) -> None:
    """Tell a service about the run, "auto" for the one it runs in; ``print_line`` prints a line of the job's log.

    `CannotWrite` names the file of the service that cannot be written.
    """
    remarks = remarks_about(digest)
    if name == "auto":
        name = next((service for service, variable in SERVICES.items() if environment.get(variable) == "true"), "none")
    if name == "github":
        for line in github_lines(remarks):
            print_line(line)
        if target := environment.get("GITHUB_STEP_SUMMARY"):
            with writing(Path(target)):  # a pipe that nobody reads is an error, not waited for
                descriptor = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o666)
                with os.fdopen(descriptor, "a", encoding="utf-8") as summary:
                    summary.write((digest.folder / "summary.md").read_text(encoding="utf-8"))
    elif name == "gitlab":
        path = digest.folder / GITLAB_FILE
        with writing(path):
            path.write_text(gitlab_report(remarks), encoding="utf-8")
        print_line(f"annotations for the artifact codequality: {path}")


def github_lines(remarks: Sequence[Annotation]) -> list[str]:
    """Return workflow commands: the first ten of each level, for GitHub shows no more of a step."""
    lines = []
    for level in ("error", "warning", "notice"):
        for remark in [remark for remark in remarks if remark.level == level][:10]:
            title = _data(remark.title).replace(":", "%3A").replace(",", "%2C")
            lines.append(f"::{level} title={title}::{_data(remark.text)}")
    return lines


def gitlab_report(remarks: Iterable[Annotation]) -> str:
    """Write a Code Quality report, which GitLab compares with that of the target branch."""
    issues = [
        {
            "description": visible(f"{remark.title}: {remark.text}"),
            "check_name": "poolproof",
            "fingerprint": hashlib.sha256(f"{remark.place}\0{remark.title}".encode()).hexdigest(),
            "severity": {"error": "major", "warning": "minor", "notice": "info"}[remark.level],
            "location": {"path": remark.place, "lines": {"begin": 1}},
        }
        for remark in remarks
    ]
    return json.dumps(issues, indent=2) + "\n"


def _failures(cluster: FailureCluster) -> Annotation:
    """Describe a cluster; its place is named by what stays from run to run, not by how many cases are in it."""
    names = map(str, cluster.terms) if cluster.has_condition else (*cluster.place, cluster.checks)
    place = "/".join((cluster.backend, "suspects", *names))
    lines = [*asides(cluster), f"smallest case: {cluster.message}", replay_line(cluster.smallest)]
    return Annotation("error", place, f"{cluster.backend}: {describe(cluster)}", "\n".join(lines))


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
