"""How much larger Hypothesis's errors with `target` are than those of random gradients.

    python studies/steering.py [BACKEND]

Both draw cases of `literal_gradients`: random ones by a seed, steered ones by Hypothesis. It prints nine lines, of
three dtypes and three numbers of gradients in a cell.
"""

import sys

from hypothesis import HealthCheck, Phase, given, seed, settings, target

from poolproof.backends.registry import create
from poolproof.references.operators import find_operator
from poolproof.suites.api import Case, cases, judge, scores
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.gradients import literal_gradients

OPERATOR = "MaxPool2dWithIndicesBackward"
CALLS, SEEDS = 200, 5


def random_error(backend, dtype, terms, number):
    make = literal_gradients.make(find_operator(OPERATOR), dtype, "int64", terms)
    return max(scores(judge(case, backend, "precision"))["ulp"] for case in generate(make, CALLS, number))


def steered_error(backend, dtype, terms, number):
    errors = []

    @seed(number)
    @given(cases(OPERATOR, dtype, terms=terms))
    @settings(
        max_examples=CALLS,
        phases=[Phase.generate, Phase.target],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    def search(case: Case) -> None:
        measured = scores(judge(case, backend, "precision"))
        errors.append(measured["ulp"])
        for label, score in measured.items():
            target(score, label=label)

    search()
    return max(errors)


if __name__ == "__main__":
    backend = create(*sys.argv[1:] or ["torch-cpu"])
    print(f"largest error of {CALLS} calls in ulp, mean of {SEEDS} seeds: random, steered")
    for dtype in ("float16", "bfloat16", "float32"):
        for terms in (9, 17, 33):
            both = [
                sum(error(backend, dtype, terms, number) for number in range(SEEDS)) / SEEDS
                for error in (random_error, steered_error)
            ]
            print(f"{dtype}, {terms} gradients in a cell: {both[0]:.2f}, {both[1]:.2f} ({both[1] / both[0]:.2f} times)")
