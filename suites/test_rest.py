"""The rest of a ``--budget`` once the first cases of every block are judged: all blocks continue, slice by slice."""

from poolproof.suites.plugin import Examiner


def test_rest(time_slice: int, examine: Examiner) -> None:  # noqa: ARG001
    examine.time_slice()
