"""The aspects of conformance: the cases to draw, the claim about them, and the checks that judge it."""

from __future__ import annotations

from poolproof.reports.rows.checks import REFUSAL, SURVIVAL
from poolproof.suites.cases.ends import ends
from poolproof.suites.cases.huge import huge
from poolproof.suites.cases.models import models
from poolproof.suites.cases.pairs import pairs, triples
from poolproof.suites.cases.strategies import ALL_LAYOUTS, LENGTHS, LONG_LENGTHS, MANY_PLANES, PLANES, Profile
from poolproof.suites.cases.targets import ACCEPTANCE, examples, targets
from poolproof.suites.judging.checks import CHECKS, USUAL
from poolproof.suites.judging.contract import CHECKS as CONTRACT_CHECKS
from poolproof.suites.judging.phases import CHECKS as PHASE_CHECKS
from poolproof.suites.judging.question import Aspect
from poolproof.suites.plan.blocks import CaseAspect, ContractAspect, PhaseAspect
from poolproof.suites.plan.plans import PLANS

_INEXACT = (
    *("uniform", "positive", "wide", "big_among_ones"),
    *("cancellation", "rounding_probe", "carries", "near_overflow", "subnormal"),
)
_DIFFICULT_VALUES = ("nan", "all_nan", "infinities", "negative_infinity", "mostly_negative_infinity", "ties")

CASE_ASPECTS = {
    aspect.id: aspect
    for aspect in (
        CaseAspect(
            "values",
            "gradients arrive where their index says, and maxima are found, on exact data over all geometries",
            profile=Profile(
                gradients=("integers", "base_four_weights", "colour_ids", "one_hot", "ones"),
                values=("normal", "ties", "constant", "negative", "ascending", "descending"),
                scales=(0, 0, -3, 5),
            ),
        ),
        CaseAspect(
            "precision",
            "inexact sums stay within the bounds of the declared accumulation model",
            profile=Profile(
                gradients=_INEXACT,
                indices=("in_window", "crowded", "lattice", "shared", "shared", "forward"),
                scales=(0, 0, 0, -7),
            ),
            directions=("backward",),
            standards=True,
        ),
        CaseAspect(
            "special_values",
            "NaN, infinities, subnormals and signed zeros go where they belong and nowhere else",
            profile=Profile(
                gradients=("special", "special", "signed_zeros", "subnormal", "near_overflow"),
                values=_DIFFICULT_VALUES,
            ),
        ),
        CaseAspect(
            "subnormals",
            "subnormal cells are compared as the numbers that they are, or taken for zero where that is declared",
            profile=Profile(values=("subnormals",)),
            weight=0.1,
            directions=("forward",),
        ),
        CaseAspect(
            "layouts",
            "strides, gaps and offsets of every tensor change nothing, and gaps stay untouched",
            profile=Profile(
                gradients=("integers", "base_four_weights", "uniform"),
                values=("normal", "ties", "nan"),
                layouts=ALL_LAYOUTS,
            ),
            weight=2.0,
            on_layouts=True,
        ),
        CaseAspect(
            "tagged",
            "tensors tagged as channels last are read and written as such",
            profile=Profile(
                gradients=("integers", "one_hot", "uniform"), values=("normal", "ties", "nan"), tagged="nhwc"
            ),
        ),
        CaseAspect(
            "examples",
            "the examples of the published pages give the expected results",
            weight=0,
            directions=("backward",),
            listed=examples,
        ),
        CaseAspect(
            "targets", "calls at the limits of known kernels give the expected results", weight=0, listed=targets
        ),
        CaseAspect(
            "ends",
            "lengths, windows, planes, gaps and offsets beyond 8, 12, 16 and 20 bits behave like small ones",
            weight=0,
            listed=ends,
        ),
        CaseAspect(
            "determinism",
            "repeated calls give the same bits, with the deterministic mode on and off",
            profile=Profile(
                gradients=("uniform", "wide", "positive"),
                indices=("shared", "crowded", "lattice"),
                budgets=(256, 1024, 4096, 4096),
                deterministic=(False, True),
            ),
            weight=0.5,
            repeats=5,
            directions=("backward",),
        ),
        CaseAspect(
            "state",
            "earlier calls, other streams, reused executors and a busy device change nothing",
            profile=Profile(
                gradients=("integers", "uniform"),
                indices=("crowded", "in_window", "forward"),
                values=("normal", "ties"),
                deterministic=(True,),
            ),
            weight=0.2,
            checks=(*USUAL, "modes", "state"),
        ),
        CaseAspect(
            "streams",
            "other work on streams, before a call, behind it and beside it, changes nothing",
            profile=Profile(
                gradients=("integers", "uniform"),
                indices=("in_window", "forward", "shared"),
                values=("normal", "ties"),
                deterministic=(True,),
                layouts=ALL_LAYOUTS,
            ),
            weight=0.05,
            checks=("results", "interval", "maximum", "streams"),
            on_streams=True,
        ),
        CaseAspect(
            "round_trip",
            "a backward accepts the indices of the implementation's own forward",
            profile=Profile(gradients=("integers", "uniform"), values=("normal", "ties", "nan", "negative_infinity")),
            weight=0.25,
            directions=("backward",),
            checks=(*USUAL, "round_trip"),
        ),
        CaseAspect(
            "memory",
            "calls leave no memory behind",
            profile=Profile(values=("normal",), budgets=(256, 4096), layouts=ALL_LAYOUTS),
            weight=0.05,
            repeats=20,
            checks=("results", "written", "interval", "maximum", "memory_kept"),
        ),
        CaseAspect(
            "endurance",
            "a thousand calls, and a thousand refused ones, leave no memory behind",
            profile=Profile(values=("normal",), budgets=(256,)),
            weight=1 / 1600,
            repeats=1000,
            checks=("results", "written", "interval", "maximum", "memory_kept"),
        ),
        CaseAspect(
            "scale",
            "large planes and many planes behave like small ones",
            profile=Profile(
                gradients=("integers", "one_hot", "uniform"),
                values=("normal", "ties"),
                budgets=(16384, 65536, 135000),
                lengths=LENGTHS + LONG_LENGTHS,
                planes=PLANES + MANY_PLANES,
                known_geometries=True,
            ),
            weight=0.15,
        ),
        CaseAspect(
            "models",
            "pooling layers of well-known networks at training sizes, on data like theirs, give the expected results",
            weight=0,
            listed=models,
            costly=True,
        ),
        CaseAspect(
            "huge",
            "planes and tensors beyond 16, 20, 24 and 31 bits behave like small ones",
            profile=Profile(values=("constant",), budgets=(1 << 25,), planes=(1,), huge=True),
            weight=1 / 1600,
            min_cases=0,
            listed=huge,
            costly=True,
            checks=("results", "written", "interval", "unreached", "maximum", "index_rule", "index_points"),
        ),
        CaseAspect(
            "empty_windows",
            "a window without any cell inside the plane is refused, or gives -inf and an index that harms no backward",
            profile=Profile(
                values=("normal", "negative_infinity"),
                budgets=(64, 256, 1024, 4096),
                planes=(1, 1, 2, 3, 5),
                empty_windows=True,
                empty_batches=False,
            ),
            weight=0.1,
        ),
        CaseAspect(
            "pairs",
            "any two classes of factors meet in a call with the expected result",
            profile=Profile(layouts=ALL_LAYOUTS),
            weight=0,
            listed=pairs,
            least_cases=PLANS["smoke"].cases,
        ),
        CaseAspect(
            "triples",
            "any three classes of the most important factors meet in a call with the expected result",
            profile=Profile(layouts=ALL_LAYOUTS),
            weight=0,
            listed=triples,
            least_cases=ACCEPTANCE,
        ),
    )
}

CONTRACT = ContractAspect(
    "contract",
    "calls that break a clause are refused with its status, legal ones at the boundary are not",
    CONTRACT_CHECKS,
)

PHASES = PhaseAspect(
    "phases",
    "legal actions in and between the two phases and between calls give right results, illegal ones are refused",
    PHASE_CHECKS,
    profile=Profile(
        gradients=("integers", "uniform"),
        indices=("in_window", "forward", "shared"),
        values=("normal", "ties"),
        budgets=(64, 256, 1024),
        deterministic=(True, False),
    ),
    weight=0.15,
)

ASPECTS: dict[str, CaseAspect | ContractAspect | PhaseAspect]
ASPECTS = {**CASE_ASPECTS, CONTRACT.id: CONTRACT, PHASES.id: PHASES}
"""All aspects, in the order of reports."""

ALL_CHECKS = (*CHECKS, REFUSAL, SURVIVAL, *CONTRACT_CHECKS, *PHASE_CHECKS)

EVERYTHING = Aspect("case", "all that any aspect claims", tuple(CHECKS), repeats=5, standards=True)
"""Claims about a single case of the command line."""

LISTED = Aspect("case_list", "a row of a case list gives the expected result", USUAL, standards=True)
"""Claims about the rows of case lists."""
