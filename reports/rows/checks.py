"""Names of all that a row can say was violated, for whoever writes them about rows: waivers, above all.

What a check claims and how it is held, the suites say; they import only if they have these checks of values and no
others.
"""

from __future__ import annotations

REFUSAL, SURVIVAL = "refusal", "survival"
"""Claims that no check holds: a legal call is run, an illegal one is not; the process outlives its call."""

NEIGHBOURS = "neighbours"
"""Aspect of auxiliary calls, which nobody planned: they were judged because another's failure may be due to them."""

DIAGNOSIS = "diagnosis"
"""Aspect of further cases, which nobody planned: at the end of a run they narrow down what is wrong with it."""

SEARCH = "search"
"""Aspect of the cases that Hypothesis searched beyond the plan."""

BESIDE_PLAN = (DIAGNOSIS, SEARCH)
"""Aspects of cases that no plan draws; after the same word their `block` names the aspect that they are held to."""

FURTHER_SEED = r"\+(-?[0-9]{1,18})$"
"""End of the name of a block of a further seed, as a regular expression: no plan counts its cases."""

MEMORY_UNTOUCHED, SANITIZER = "memory_untouched", "sanitizer"


def block_beside_plan(aspect: str, claims: str) -> str:
    """Name the block of cases that no plan draws, which are held to the claims of another aspect."""
    return f"{aspect}-{claims}"


def held_to(aspect: str, block: str) -> str:
    """Return the aspect whose claims a row's case is held to."""
    return block.removeprefix(f"{aspect}-") if aspect in BESIDE_PLAN else aspect


CHECK_ORDER = (
    *("results", "written", MEMORY_UNTOUCHED, "interval", "unreached", "plane_sum", "inputs_untouched", "repeat"),
    *("layout_invariance", "modes", "variants", "streams", "state", "round_trip", "memory_kept"),
    *("index_dtype_invariance", "scale_equivariance", "maximum", "index_rule", "index_points", "empty_window"),
    *("process_untouched", SANITIZER),
)
"""The checks of values, in the order in which they judge and rows name them.

A write outside of tensors comes before what may come of it.
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
"""Claims of the checks of the contract, and of what fails without a check."""

CHECK_IDS = frozenset((*CHECK_ORDER, *OTHER_CLAIMS))
"""Ids of the checks of values and of the contract, and of what is violated without a check."""

GRAVE = frozenset({SURVIVAL, MEMORY_UNTOUCHED})
"""Checks of harm to the program around the call: a waiver has to name them."""
