"""Account of a run: what was judged, what was left out and why.

The verification of a bundle ends with it. The signature of a bundle covers it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from poolproof.references.forward_rule import FAMILY_RULE
from poolproof.references.operators import OPERATORS
from poolproof.reports.figures.conclusion import is_narrowed
from poolproof.reports.figures.digest import Digest
from poolproof.reports.rows.environment import library_of
from poolproof.reports.rows.text import count_of
from poolproof.reports.waivers import to_record

_MOST = 6
"""Most names in a line."""


def account(digest: Digest) -> dict[str, Any]:
    run, conclusion = digest.run, digest.conclusion
    groups = digest.supported_counts.index
    return {
        "plan": run["plan"],
        "seed": run["seed"],
        "cases": {"whole plan": run.get("plan_cases", 0), "asked": conclusion.planned - conclusion.unasked}
        | dict(conclusion.totals),
        "narrowed": conclusion.narrowed,
        **{f"{name}s": sorted({*groups.get_level_values(name)} - {""}) for name in _ASKED},
        "backends": {name: _backend(digest, name) for name in run["backends"]},
        "waivers": [{"cases": each.cases, **to_record(each.waiver)} for each in digest.used_waivers],
        "waivers judged on": run["waivers_judged_on"],
    }


_ASKED = ("operator", "dtype", "aspect")


def _backend(digest: Digest, name: str) -> dict[str, Any]:
    declared: Mapping[str, Any] = digest.run.get("selection", {}).get("backends", {}).get(name, {})
    subjects = declared.get("subjects", [])
    own = digest.models[digest.models["backend"] == name]
    models = {model: sorted(set(rows["operator"] + " " + rows["dtype"])) for model, rows in own.groupby("model")}
    return {
        "product": declared.get("product", ""),
        "soc": digest.run["backends"][name].get("soc", ""),
        "library": library_of(digest.run["backends"][name]),
        "given": digest.given.get(name, []),
        "abilities": {operator: lacks for operator, lacks in declared.get("abilities", {}).items() if lacks},
        "models": models,
        "pairs of dtypes": len(subjects),
        "not supported": dict(Counter(reason for *_, reason, _ in subjects if reason is not None)),
    }


def judged_line(digest: Digest) -> str:
    facts = account(digest)
    return "; ".join([*(_listed(facts[f"{name}s"], name) for name in _ASKED), identity(digest)])


def identity(digest: Digest) -> str:
    """Return a run's backends with product, chip, library and given options; also plan, seed, host and day."""
    run, day = digest.run, datetime.fromtimestamp(digest.run["started"], UTC).date()
    host = ", ".join(filter(None, map(run["host"].get, ("cpu", "system"))))
    return "; ".join([*digest.judged, f"plan {run['plan']}, seed {run['seed']}", f"on {host}", str(day)])


_ISOLATED = re.compile(r"Landlock ([6-9]|[1-9]\d+)")


def unmet(digest: Digest, requirement: str) -> str:
    """Return how a run misses a requirement; empty if it meets it.

    - ``conforms`` and ``plan=NAME`` need a whole plan.
    - ``conforms-in-part`` needs only the selected part.
    - ``no-waivers`` needs a run without waivers in use.
    - ``isolated`` needs every host behind Landlock 6 or newer, without further folders.
    """
    word, left = verdict_word(digest), digest.conclusion.narrowed
    left = left if is_narrowed(left) else ""
    if requirement.startswith("conforms"):
        is_met = word.startswith("conforms") and not (left and requirement == "conforms")
        return "" if is_met else f"its verdict is: {word}"
    if requirement == "no-waivers":
        used = ", ".join(review.waiver.id for review in digest.used_waivers)
        return used and f"its waivers in use are {used}"
    if requirement == "isolated":
        walls = {
            name: environment.get("isolation", "not recorded") for name, environment in digest.run["backends"].items()
        }
        open_ones = [f"{name} ({wall})" for name, wall in walls.items() if not _ISOLATED.fullmatch(wall)]
        return ", ".join(open_ones) and f"its hosts without a wall are {', '.join(open_ones)}"
    if digest.run["plan"] != requirement.removeprefix("plan="):
        return f"its plan is {digest.run['plan']}"
    return left and "it is narrowed: see what was left out"


def left_out_line(digest: Digest) -> str:
    """Describe what was left out and why: cases, unsupported dtypes, declared limits, and waived cases."""
    facts, totals = account(digest), digest.conclusion.totals
    parts = [facts["narrowed"]] if facts["narrowed"] else []
    for name, backend in facts["backends"].items():
        whole, chosen = f"of {backend['pairs of dtypes']} pairs of dtypes of {name}", _by_choice(backend)
        parts += [f"{pairs} {whole}: {reason}" for reason, pairs in list(chosen.items())[:_MOST]]
        if forbidden := sum(backend["not supported"].values()) - sum(chosen.values()):
            parts.append(f"{forbidden} {whole} that the contract of {backend['product']} does not have")
        for operator, lacks in backend["abilities"].items():
            parts.append(f"{operator} of {name} is declared without {', '.join(lacks)}")
        for model, judged in backend["models"].items():
            if model != str(FAMILY_RULE) and (forwards := list(filter(_is_forward, judged))):
                parts.append(f"{name} is declared to find maxima by the rule {model}: {_listed(forwards, 'forward')}")
    left_out = {"refused": "refused as documented", "undocumented": "refused undocumented"}
    parts += [f"{count_of(totals[name], 'case')} {word}" for name, word in left_out.items() if totals[name]]
    for each in digest.used_waivers:
        parts.append(f"{count_of(each.cases, 'case')} waived by {each.waiver.id} until {each.waiver.expires}")
    return "; ".join(parts) or "nothing"


def _is_forward(operator_and_dtype: str) -> bool:
    operator = OPERATORS.get(operator_and_dtype.partition(" ")[0])
    return operator is not None and not operator.is_backward


def _by_choice(backend: Mapping[str, Any]) -> dict[str, int]:
    """Return what a backend does not support by its own choice: reason -> number of pairs of dtypes."""
    forbidden = f"{backend['product']}: "
    return {reason: pairs for reason, pairs in backend["not supported"].items() if not reason.startswith(forbidden)}


def _listed(names: list[str], thing: str) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"{count_of(len(names), thing)} ({', '.join(names[:_MOST])}{more})" if names else f"no {thing}"


def verdict_word(digest: Digest) -> str:
    """Return the overall verdict; add words if it only covers a part, or what a backend chose to support."""
    word, _ = digest.conclusion.shown
    if word != "conforms":
        return word
    by_choice = any(map(_by_choice, account(digest)["backends"].values()))
    return "conforms in what it supports" if by_choice else "conforms to the whole plan"
