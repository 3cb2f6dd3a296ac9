"""What docs/findings says about torch compiled by Inductor, in half a minute: `tox -e routes` names this file."""

import pytest

from finding_programs import Program, programs, run_afresh


@pytest.mark.parametrize("program", programs("torch_compile"))
def test_the_program_still_shows_it(program: Program) -> None:
    ended = run_afresh(program)
    assert program.still_shows(ended), (ended.returncode, ended.stdout, ended.stderr)
