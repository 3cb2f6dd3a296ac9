"""The names of all that a row can say was violated, for whoever writes them about rows: waivers, above all.

What a check claims and how it is held, the suites say; that they have these and no others is tested.
"""

from __future__ import annotations

REFUSAL, SURVIVAL = "refusal", "survival"
"""What is violated without a check: a legal call is run, an illegal one is not; the process outlives its call."""

NEIGHBOURS = "neighbours"
"""The aspect of calls that nobody planned: they were asked about because another's failure may be due to them."""

MEMORY_UNTOUCHED = "memory_untouched"

CHECK_IDS = frozenset(
    {
        REFUSAL,
        SURVIVAL,
        MEMORY_UNTOUCHED,
        "results",
        "written",
        "interval",
        "unreached",
        "plane_sum",
        "inputs_untouched",
        "repeat",
        "layout_invariance",
        "modes",
        "variants",
        "state",
        "streams",
        "round_trip",
        "memory_kept",
        "index_dtype_invariance",
        "scale_equivariance",
        "maximum",
        "index_rule",
        "index_points",
        "empty_window",
        "status",
        "untouched",
        "error_text",
        "phase_status",
        "phase_values",
    }
)
"""Ids of the checks of values and of the contract, and of what is violated without a check."""

GRAVE = frozenset({SURVIVAL, MEMORY_UNTOUCHED})
"""What harms the program around the call: who accepts it has to name it."""
