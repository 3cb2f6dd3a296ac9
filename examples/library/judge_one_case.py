"""One case on one backend, by one function: what `poolproof replay` does, without a process of its own.

python examples/library/judge_one_case.py torch-cpu
"""

import sys

from poolproof.suites.api import Case, failure_text, judge

CASE = Case.of(
    operator="MaxPool2dWithIndicesBackward",
    shape=(1, 1, 4, 4),
    kernel_size=(3,),
    stride=(1,),
    gradient="rounding_probe",
)

row = judge(CASE, sys.argv[1])
if row["verdict"] == "violates":
    print(failure_text(row))
else:
    single_valued = f"{row['n_single_valued']} of {row['n']} cells have one admissible value"
    print(f"{row['verdict']}: {len(row['checks_judged'])} checks, {single_valued}")
