"""Smaller cases: what Hypothesis finds of a failing case, and what it leaves alone."""

import time
from collections.abc import Callable

import pytest

from poolproof.suites.cases.case import Case
from poolproof.suites.cases.shrinking import smaller_case

FAILING = Case.from_json(
    '{"operator":"MaxPool2dWithIndicesBackward","shape":[2,3,33,16],"dtype":"float16","kernel_size":[3,2],"stride":[1],'
    '"padding":[1,1],"dilation":[1],"ceil_mode":true,"gradient":"ones","indices":"crowded","scale":-3,'
    '"layouts":{"grad_output":"sliced","self":"sliced"},"seed":949539216}'
)
WORDS = {"gradient": ("ones", "integers"), "indices": ("forward", "crowded"), "scale": (-3, 0)}

Predicate = Callable[[Case], bool]


def small(fails: Predicate, failing: Case = FAILING, seconds: float = 20.0) -> Case:
    return smaller_case(failing, WORDS, fails, seconds)


def test_hypothesis_lowers_what_it_was_given() -> None:
    """Random cases are no help here: none has these lengths. The shrinker has to carry its own into "anything"."""
    found = small(lambda case: case.shape[-1] >= 14 and case.shape[-2] >= 30 and case.indices == "crowded")
    assert (found.shape, found.indices) == ((1, 30, 14), "crowded")


@pytest.mark.parametrize(
    ("fails", "fields"),
    [
        (lambda _: True, '"shape":[1,1,1],"dtype":"float16","kernel_size":[1]'),
        (lambda case: len(case.shape) == 4, '"shape":[1,1,1,1],"dtype":"float16","kernel_size":[1]'),
        (
            lambda case: case.attributes.ceil_mode,
            '"shape":[1,1,1],"dtype":"float16","kernel_size":[1],"ceil_mode":true',
        ),
        (
            lambda case: "self" in case.laid_out,
            '"shape":[1,1,1],"dtype":"float16","kernel_size":[1],"layouts":{"self":"sliced"}',
        ),
        (
            lambda case: case.attributes.stride and case.seed > 1,
            '"shape":[1,1,2],"dtype":"float16","kernel_size":[1,2],"stride":[1],"seed":949539216',
        ),
    ],
)
def test_nothing_is_left_but_what_fails(fails: Predicate, fields: str) -> None:
    assert small(fails).to_json() == f'{{"operator":"MaxPool2dWithIndicesBackward",{fields}}}'


def test_literals_keep_their_plane_or_go() -> None:
    values = tuple(float(number) for number in range(12))
    failing = Case.of("MaxPool2dWithIndices", shape=(1, 3, 4), kernel_size=(3, 1), literals=(("self", values),))
    assert small(lambda case: bool(case.literals), failing).shape == (1, 3, 4)
    assert small(lambda case: case.plane_size >= 2, failing).literals == ()


def test_an_empty_batch_stays_empty() -> None:
    failing = Case.of("AdaptiveMaxPool2d", shape=(0, 3, 4, 5), output_size=(2, 2))
    assert small(lambda case: 0 in case.shape, failing).shape == (0, 1, 1, 1)


def test_each_case_is_tried_once_and_the_answers_decide() -> None:
    tried: list[Case] = []

    def fails(case: Case) -> bool:
        tried.append(case)
        return case.planes >= 2

    found = small(fails)
    assert len(tried) == len(set(tried)) < 60
    assert FAILING not in tried
    assert not any(case.has_empty_window for case in tried)
    assert small(lambda case: case.planes >= 2) == found


def test_a_failure_that_never_repeats_and_one_that_does_at_times_end_at_a_case_that_failed() -> None:
    assert small(lambda _: False) == FAILING
    answers: dict[Case, bool] = {}

    def fails(case: Case) -> bool:
        return answers.setdefault(case, len(answers) % 3 == 1)

    assert answers[small(fails)]


def test_time_that_is_up_ends_the_search() -> None:
    """Behind it nothing is tried."""
    assert small(lambda _: pytest.fail("tried"), seconds=0.0) == FAILING
    begun = time.monotonic()
    slow = small(lambda _: bool(time.sleep(0.3)) or True, seconds=0.5)
    assert slow != FAILING
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_error_ends_the_search_and_is_raised(error: type[BaseException]) -> None:
    tried: list[Case] = []

    def fails(case: Case) -> bool:
        tried.append(case)
        raise error

    with pytest.raises(error):
        small(fails)
    assert len(tried) == 1
