"""Columns of a row: name, type, unit and meaning. The code that writes rows and the docs use this table.

A row is one case, judged or not, on one backend. It has the whole case, so that every row can be replayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from poolproof.reports.rows.verdicts import Verdict

SCHEMA_VERSION = 3


class ColumnType(StrEnum):
    """Type of a column's values, one or a list of them, by its Arrow name."""

    TEXT = "string"
    COUNT = "int64"
    REAL = "double"
    FLAG = "bool"
    WORDS = "list<string>"
    COUNTS = "list<int64>"
    REALS = "list<double>"

    @property
    def is_list(self) -> bool:
        return self.startswith("list")


@dataclass(frozen=True)
class Column:
    """One column; ``unit`` is empty for plain counts and names.

    ``combines`` is how many rows combine: by "sum", "max" or "min"; empty if only single rows mean something. A ratio
    never combines: its mean over cases would weigh a small case like a large one. ``made`` is the source of the value.
    "drawn": `Question.describe` and the labels of a backend; verify draws it again. "judged": the judgement; verify can
    only compare it with other columns.
    """

    name: str
    kind: ColumnType
    meaning: str
    unit: str = ""
    combines: str = ""
    made: Literal["drawn", "judged"] = "judged"


_TEXT, _COUNT, _REAL, _FLAG = ColumnType.TEXT, ColumnType.COUNT, ColumnType.REAL, ColumnType.FLAG
_WORDS, _COUNTS, _REALS = ColumnType.WORDS, ColumnType.COUNTS, ColumnType.REALS

COLUMNS = (
    # Identity.
    Column("case_id", _TEXT, "content hash of the case", made="drawn"),
    Column("case", _TEXT, "the whole case as one line of JSON", made="drawn"),
    Column("block", _TEXT, "part of the plan it belongs to", made="drawn"),
    Column("aspect", _TEXT, "aspect of conformance it was drawn for", made="drawn"),
    Column("backend", _TEXT, "backend under test", made="drawn"),
    Column("product", _TEXT, "NPU product of the backend, empty elsewhere", made="drawn"),
    Column("operator", _TEXT, "operator, named like its aclnn API", made="drawn"),
    Column("dtype", _TEXT, "dtype of self, grad_output and grad_input (out of a forward)", made="drawn"),
    Column("index_dtype", _TEXT, "dtype of indices", made="drawn"),
    Column("route", _TEXT, "branch of the implementation that the call should take"),
    Column(
        "clause",
        _TEXT,
        "clause of the contract that the call is about, empty for values and for legal calls",
        made="drawn",
    ),
    Column("statement", _TEXT, "that clause in a sentence, or what is legal about the call", made="drawn"),
    Column(
        "follows",
        _TEXT,
        "source that the answer follows: the library's code, its page, both, an earlier release or none",
    ),
    Column("model", _TEXT, "declared accumulation model, of a forward its rule"),
    # The call.
    Column("shape", _TEXT, "shape of self", made="drawn"),
    Column("batched", _FLAG, "whether there is an N axis", made="drawn"),
    Column("planes", _COUNT, "N * C", made="drawn"),
    Column("elements", _COUNT, "elements of self", made="drawn"),
    Column("windows", _COUNT, "elements of grad_output", made="drawn"),
    Column("kernel_size", _TEXT, "attribute list as passed; output_size for adaptive operators", made="drawn"),
    Column("overlapping", _FLAG, "some cell is visited by several windows", made="drawn"),
    Column("dilated", _FLAG, "some dilation is above 1", made="drawn"),
    Column("padded", _FLAG, "some padding is above 0", made="drawn"),
    Column("ceil_mode", _FLAG, "attribute ceil_mode", made="drawn"),
    Column("layouts", _TEXT, "tensors that are not contiguous, tensor:layout separated by blanks", made="drawn"),
    Column("gradient", _TEXT, "recipe of grad_output", made="drawn"),
    Column("indices", _TEXT, "recipe of indices", made="drawn"),
    Column("values", _TEXT, "recipe of self", made="drawn"),
    Column("data", _WORDS, "words for data that kernels treat differently, from features.py; empty for large data"),
    Column("deterministic", _FLAG, "the call demands the deterministic mode", made="drawn"),
    Column(
        "classes",
        _WORDS,
        "words for what is special about the call, from suites/judging/case_question.py",
        made="drawn",
    ),
    Column("seed", _COUNT, "seed of the case's data", made="drawn"),
    # Judgement.
    Column("verdict", _TEXT, f"one of: {', '.join(Verdict)}"),
    Column("reason", _TEXT, "why the verdict is what it is, empty for conforms"),
    Column("status_code", _COUNT, "status number of the implementation, where it has one"),
    Column("checks_judged", _WORDS, "checks that judged the case"),
    Column("checks_violated", _WORDS, "checks that failed"),
    Column("findings", _TEXT, "JSON list: per violated check the element, what was expected and what it got"),
    Column("waivers", _WORDS, "ids of the waivers that cover the violated checks"),
    Column("shrunk", _TEXT, "smallest case found that breaks the same check, as JSON"),
    Column("shrunk_reason", _TEXT, "the reason of that case"),
    Column(
        "asked_again", _COUNT, "repetitions of the first failure of a kind, or of its smallest case, in a fresh process"
    ),
    Column("failed_again", _COUNT, "repetitions of these that failed"),
    # Statistics of the output.
    Column("n", _COUNT, "elements of grad_input", combines="sum"),
    Column("n_single_valued", _COUNT, "cells where exactly one value is admissible", combines="sum"),
    Column("n_reject", _COUNT, "cells outside their interval", combines="sum"),
    Column("n_bitexact", _COUNT, "cells equal to the exact sum rounded once (signs of zero ignored)", combines="sum"),
    Column("max_abs_err", _REAL, "largest |y - S| over finite cells", combines="max"),
    Column("mean_abs_err", _REAL, "mean |y - S| over finite cells"),
    Column("max_ulp", _REAL, "largest |y - S|", "ulp of S", combines="max"),
    Column("ulp_0", _COUNT, "cells with |y - S| = 0", combines="sum"),
    Column("ulp_le05", _COUNT, "cells with |y - S| in (0, 0.5]", "ulp of S", combines="sum"),
    Column("ulp_le1", _COUNT, "cells with |y - S| in (0.5, 1]", "ulp of S", combines="sum"),
    Column("ulp_le2", _COUNT, "cells with |y - S| in (1, 2]", "ulp of S", combines="sum"),
    Column("ulp_le4", _COUNT, "cells with |y - S| in (2, 4]", "ulp of S", combines="sum"),
    Column("ulp_le8", _COUNT, "cells with |y - S| in (4, 8]", "ulp of S", combines="sum"),
    Column("ulp_le32", _COUNT, "cells with |y - S| in (8, 32]", "ulp of S", combines="sum"),
    Column("ulp_gt32", _COUNT, "cells with |y - S| above 32", "ulp of S", combines="sum"),
    Column("ulp_nonfinite", _COUNT, "cells where y or the rounded S is not finite", combines="sum"),
    Column("mere", _REAL, "mean |y - r| / (|r| + 1e-7) over finite cells, r the exact sum rounded once"),
    Column("mare", _REAL, "largest |y - r| / (|r| + 1e-7) over finite cells", combines="max"),
    Column("n_inexact", _COUNT, "finite cells with S != 0 and y != S, of which bias_ulp is the mean", combines="sum"),
    Column(
        "bias_ulp",
        _REAL,
        "mean of sign(S) (y - S) over inexact cells: -0.5 for truncation, 0 for rounding to even",
        "ulp of S",
    ),
    Column(
        "margin_min",
        _REAL,
        "smallest (E - |y - S|) / E where more than one ulp is admissible, E the room on its side",
        combines="min",
    ),
    Column("k_cells", _COUNTS, "finite cells per class of k: 1, 2, 3-4, 5-8, 9-16 and so on"),
    Column("k_error", _REALS, "largest |y - S| in each of these classes", "ulp of max(P, N)"),
    Column("k_bound", _REALS, "largest admissible |y - S| in each of these classes", "ulp of max(P, N)"),
    Column("output_digest", _TEXT, "BLAKE2b of grad_input's elements in logical order: equal for equal bits"),
    Column("repeat_n", _COUNT, "repetitions of the call that were made", combines="sum"),
    Column("failed_before", _FLAG, "a search found the failure in an earlier run, and the case passes now"),
    Column("repeat_bitwise_equal", _FLAG, "all repetitions gave the first call's bits"),
    Column(
        "repeat_max_ulp_spread",
        _REAL,
        "largest distance of a repetition to the first call, in representable values",
        combines="max",
    ),
    Column(
        "decoded_faults", _TEXT, "JSON list of windows with a lost, repeated or misplaced gradient, on coded recipes"
    ),
    # Standards of others.
    Column(
        "standards_passed",
        _WORDS,
        "published standards that pass the output; a standard in neither column is open or does not apply",
    ),
    Column("standards_failed", _WORDS, "published standards that fail the output"),
    # Case lists.
    Column("list", _TEXT, "case list that the case is a row of, empty for all other cases", made="drawn"),
    Column("list_row", _COUNT, "number of that row, from 1; of a JSON lines file, the line", made="drawn"),
    Column("list_name", _TEXT, "name of the case in the list", made="drawn"),
    Column("list_standard", _TEXT, "standard that the list names for it", made="drawn"),
    Column("list_standard_passes", _FLAG, "whether that standard passes the output; empty if it is open"),
    # Execution.
    Column("call_seconds", _REAL, "time of the first call, copies excluded", "s"),
    Column("seconds", _REAL, "time of the whole judgement", "s"),
    Column("worker", _TEXT, "process that judged"),
    Column("given", _WORDS, "variables and options of the backend, as arguments of poolproof replay"),
    Column("judged_at", _REAL, "Unix time of the verdict", "s"),
)

Row = dict[str, Any]
"""One row as a mapping from column names; columns that do not apply are missing or None."""

GROUP = ("backend", "operator", "dtype", "index_dtype", "aspect")
"""Columns of one square of a verdict matrix, and of mandatory groups."""

COMBINED = {column.name: column.combines for column in COLUMNS if column.combines}
"""Columns that combine over rows, and how."""
