"""The aspect of two-phase scenarios, with its blocks: all scenarios, whatever the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from poolproof.suites.judging.phases import PhaseQuestion, phase_questions
from poolproof.suites.judging.question import Aspect, Question
from poolproof.suites.plan.plans import Group, Plan, Subject, one_of_each_first


@dataclass(frozen=True)
class PhaseAspect(Aspect):
    """Every scenario that some source defines, for every operator and pair of dtypes of a backend with phases."""

    def covers(self, subject: Subject) -> bool:
        return subject.in_phases and not subject.is_whole and subject.unsupported is None

    def blocks(self, subject: Subject, plan: Plan, seed: int) -> Iterator[PhaseBlock]:  # noqa: ARG002
        yield PhaseBlock(subject, self)


@dataclass(frozen=True)
class PhaseBlock:
    """All scenarios of one subject."""

    subject: Subject
    aspect: PhaseAspect
    min_batch: int = field(default=1, init=False)

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
    def min_cases(self) -> int:
        return len(self.groups())

    def prefix(self, count: int) -> list[PhaseQuestion]:
        """Return its first questions: one of each scenario, then a second."""
        return one_of_each_first(self.questions(), _scenario_of)[:count]

    def groups(self, asked: int | None = None) -> dict[Group, int]:
        """Return a group for each scenario."""
        group = self.subject.group(self.aspect)
        counts = Counter(map(_scenario_of, self.questions() if asked is None else self.prefix(asked)))
        return {(*group, ("clause", scenario)): count for scenario, count in counts.items()}

    def smaller(self, failing: Question, still_fails: Callable[[Question], bool], seconds: float) -> None:
        """Seek nothing: the cases are small as they are."""

    def extension(self) -> None:
        """Return None: there are no other scenarios."""


def _scenario_of(question: PhaseQuestion) -> str:
    return question.scenario.id
