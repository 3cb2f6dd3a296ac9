"""The aspect of the ways through two phases, with its blocks: all of them, whatever the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from poolproof.suites.judging.phases import PhaseQuestion, phase_questions
from poolproof.suites.judging.question import Aspect, Question
from poolproof.suites.running.plans import Group, Plan, Subject, one_of_each_first


@dataclass(frozen=True)
class PhaseAspect(Aspect):
    """Every way that some source defines, for every operator and pair of dtypes of a backend that has phases."""

    def covers(self, subject: Subject) -> bool:
        return subject.in_phases and not subject.is_whole and subject.unsupported is None

    def blocks(self, subject: Subject, plan: Plan, seed: int) -> Iterator[PhaseBlock]:  # noqa: ARG002
        yield PhaseBlock(subject, self)


@dataclass(frozen=True)
class PhaseBlock:
    """All ways of one subject."""

    subject: Subject
    aspect: PhaseAspect
    grain: int = field(default=1, init=False)

    @property
    def id(self) -> str:
        return f"{self.subject.id}-{self.aspect.id}"

    @property
    def count(self) -> int:
        return len(self.questions())

    def questions(self) -> list[PhaseQuestion]:
        subject = self.subject
        return phase_questions(subject.operator, subject.dtype, subject.index_dtype, self.aspect.alone, self.id)

    @property
    def least(self) -> int:
        return len(self.groups())

    def first(self, count: int) -> list[PhaseQuestion]:
        """So many of its questions: one of each way, then a second."""
        return one_of_each_first(self.questions(), _scenario_of)[:count]

    def groups(self, asked: int | None = None) -> dict[Group, int]:
        """A group for each way."""
        group = self.subject.group(self.aspect)
        ways = Counter(map(_scenario_of, self.questions() if asked is None else self.first(asked)))
        return {(*group, ("clause", way)): count for way, count in ways.items()}

    def smaller(self, failing: Question, still_fails: Callable[[Question], bool], seconds: float) -> None:
        """The cases of the ways are small as they are."""

    def beyond(self) -> None:
        """There are no other ways."""


def _scenario_of(question: PhaseQuestion) -> str:
    return question.scenario.id
