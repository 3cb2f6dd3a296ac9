"""Tests of your own kernel, on this suite's cases: Hypothesis draws, shrinks and remembers them as it does its own.

pytest examples/library/test_my_kernel.py
"""

import numpy as np
from hypothesis import Phase, example, given, settings, target

from poolproof.backends.abilities import Abilities
from poolproof.backends.frameworks.copying import CopyingBackend
from poolproof.references.accumulation import NATIVE
from poolproof.suites.api import Case, cases, failure_text, judge, scores

OPERATOR = "MaxPool2dWithIndicesBackward"
DENSE = Abilities(layouts=(), unbatched=False, empty_batch=False)
SETTINGS = settings(
    max_examples=40,
    deadline=None,
    phases=[phase for phase in Phase if phase is not Phase.explain],  # it names lines of poolproof that judge a failure
)


class MyKernel(CopyingBackend):
    survives_fork = True

    def unsupported(self, operator, dtype, index_dtype):
        return None if operator.name == OPERATOR else "only the 2-D backward"

    def accumulation(self, call):
        return NATIVE  # each addition is rounded to the dtype

    def backward(self, call):
        return self.invoke(my_kernel, call.gradient, call.indices, call.values.shape)


def my_kernel(gradient, indices, shape):
    sums = np.zeros((shape[0] * shape[1], shape[2] * shape[3]), gradient.dtype)
    planes = np.arange(len(sums))[:, None]
    np.add.at(sums, (planes, indices.reshape(len(sums), -1)), gradient.reshape(len(sums), -1))
    return sums.reshape(shape)


@given(case=cases(OPERATOR, "float32", abilities=DENSE))
@example(case=Case.from_json('{"operator":"MaxPool2dWithIndicesBackward","shape":[1,1,2,2],"kernel_size":[2]}'))
@SETTINGS
def test_my_kernel(case):
    row = judge(case, MyKernel(), aspect="values")
    assert row["verdict"] == "conforms", failure_text(row)


@given(case=cases(OPERATOR, "float16", terms=17))
@SETTINGS
def test_rounding(case):
    """Search for the largest error: 17 gradients meet in one cell, and Hypothesis raises the scores step by step."""
    row = judge(case, MyKernel(), aspect="precision")
    for label, score in scores(row).items():
        target(score, label=label)
    assert row["verdict"] == "conforms", failure_text(row)
