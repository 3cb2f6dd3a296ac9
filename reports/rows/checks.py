"""Names of the checks in rows, for code that names them, such as waivers.

The suites define the claims and tests of the checks; on import they compare these names with their checks.
"""

from __future__ import annotations

REFUSAL, SURVIVAL = "refusal", "survival"
"""Claims without a check: a legal call runs, an illegal one does not; the process survives its call."""

NEIGHBOURS = "neighbours"
"""Aspect of unplanned auxiliary calls, which were judged because they may explain another call's failure."""

DIAGNOSIS = "diagnosis"
"""Aspect of further cases, which narrow down failures at the end of a run: each was made from a failing one."""

CONTRAST = "contrast"
"""Aspect of further cases of the plan that a narrowed run left out: they do not depend on the failing ones."""

NARROWING = (DIAGNOSIS, CONTRAST)
"""Aspects of further cases: they do not count as cases of the run."""

SEARCH = "search"
"""Aspect of the cases that Hypothesis searched beyond the plan."""

BESIDE_PLAN = (*NARROWING, SEARCH)
"""Aspects of cases outside of the plan; after the same word their `block` names the aspect of their claims."""

FURTHER_SEED = r"\+(-?[0-9]{1,18})$"
"""End of the name of a further seed's block, as a regular expression: no plan counts its cases."""

MEMORY_UNTOUCHED, SANITIZER = "memory_untouched", "sanitizer"


def block_beside_plan(aspect: str, claims: str) -> str:
    """Return the block of cases outside of the plan, with the claims of another aspect."""
    return f"{aspect}-{claims}"


def held_to(aspect: str, block: str) -> str:
    """Return the aspect whose claims judge a row's case."""
    return block.removeprefix(f"{aspect}-") if aspect in BESIDE_PLAN else aspect


CHECK_ORDER = (
    *("results", "written", MEMORY_UNTOUCHED, "interval", "unreached", "plane_sum", "inputs_untouched", "repeat"),
    *("layout_invariance", "modes", "variants", "streams", "state", "round_trip", "memory_kept"),
    *("index_dtype_invariance", "scale_equivariance", "maximum", "index_rule", "index_points", "empty_window"),
    *("process_untouched", SANITIZER),
)
"""The checks of values, in the order of judging and of rows.

A write outside of tensors comes before its consequences.
"""

OTHER_CLAIMS = {
    REFUSAL: "a legal call runs, and an illegal one does not",
    SURVIVAL: "the process of the implementation neither dies nor hangs",
    "status": "a call returns the status that the contract of its product demands",
    "untouched": "a refused call writes nothing",
    "error_text": "a refused call leaves a text of the error",
    "phase_status": "a sequence of the two phases returns the status that the contract demands",
    "phase_values": "after a sequence of the two phases the outputs are those of plain calls",
    "phase_criterion": "in a sequence a call that comes behind others is right by the criterion",
}
"""Claims of the checks of the contract, and of failures without a check."""

CHECK_IDS = frozenset((*CHECK_ORDER, *OTHER_CLAIMS))
"""Ids of the checks of values and of the contract, and of failures without a check."""

GRAVE = frozenset({SURVIVAL, MEMORY_UNTOUCHED})
"""Checks of harm to the program around the call: a waiver must name them."""
