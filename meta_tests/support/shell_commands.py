"""`pytest` and `poolproof` as programs that shell scripts start: small clients of a thread that has them forked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Client, Listener
from pathlib import Path
from threading import Thread

import forked
from forked import PROGRAMS, Command

_CLIENT = """#!{python} -IS
import os, sys
from multiprocessing.connection import Client
connection = Client({address!r})
connection.send(({program!r}, sys.argv[1:], os.getcwd(), dict(os.environ)))
status, output, errors = connection.recv()
sys.stdout.buffer.write(output.encode())
sys.stderr.buffer.write(errors.encode())
sys.stdout.flush()
sys.exit(status)
"""


@contextmanager
def shell_commands(folder: Path) -> Iterator[None]:
    """Programs in ``folder`` that may be copied, and end as the forks of `forked.run` do, while this lasts."""
    with Listener(family="AF_UNIX") as listener:
        for program in PROGRAMS:
            path = folder / program
            path.write_text(_CLIENT.format(python=sys.executable, address=listener.address, program=program))
            path.chmod(0o755)
        thread = Thread(target=_answer, args=[listener])
        thread.start()
        try:
            yield
        finally:
            with Client(listener.address) as last:
                last.send(None)
            thread.join()


def _answer(listener: Listener) -> None:
    """Answer one program after the other, until there is nothing to answer."""
    while True:
        with listener.accept() as connection:
            asked = connection.recv()
            if asked is None:
                return
            program, arguments, here, environment = asked
            ended = forked.run(Command(program, arguments, Path(here), environment))
            connection.send((ended.returncode, ended.stdout, ended.stderr))
