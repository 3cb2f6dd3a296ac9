"""A test of your own kernel, on this suite's cases: Hypothesis draws, shrinks and remembers them as it does its own.

pytest examples/library/test_my_kernel.py
"""

import numpy as np
from hypothesis import example, given, settings

from poolproof.backends.abilities import Abilities
from poolproof.backends.frameworks.copying import CopyingBackend
from poolproof.suites.api import Case, cases, failure_text, judge

OPERATOR = "MaxPool2dWithIndicesBackward"
DENSE = Abilities(layouts=(), unbatched=False, empty_batch=False)


class MyKernel(CopyingBackend):
    survives_fork = True

    def unsupported(self, operator, dtype, index_dtype):
        return None if operator.name == OPERATOR else "only the 2-D backward"

    def backward(self, call):
        return self.invoke(my_kernel, call.gradient, call.indices, call.values.shape)


def my_kernel(gradient, indices, shape):
    sums = np.zeros((shape[0] * shape[1], shape[2] * shape[3]), gradient.dtype)
    planes = np.arange(len(sums))[:, None]
    np.add.at(sums, (planes, indices.reshape(len(sums), -1)), gradient.reshape(len(sums), -1))
    return sums.reshape(shape)


@given(cases(OPERATOR, "float32", abilities=DENSE))
@example(Case.from_json('{"operator":"MaxPool2dWithIndicesBackward","shape":[1,1,2,2],"kernel_size":[2]}'))
@settings(max_examples=40, deadline=None)
def test_my_kernel(case):
    row = judge(case, MyKernel(), aspect="values")
    assert row["verdict"] == "conforms", failure_text(row)
