"""A limit to the size of files, as a full disk is one."""

import os
import resource
import subprocess
import sys
from multiprocessing.util import Finalize


def limit_files(size: int) -> None:
    """Let no file that a process writes grow beyond so many bytes; what is said goes through a pipe, which may."""
    sys.dont_write_bytecode = True  # Python would keep the part of a compiled module that there is room for
    cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    assert cat.stdin
    for number in (1, 2):
        os.dup2(cat.stdin.fileno(), number)
    cat.stdin.close()
    Finalize(None, _hear_out, (cat,), exitpriority=0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _hear_out(cat: subprocess.Popen[bytes]) -> None:
    sys.stdout.flush()
    for number in (1, 2):
        os.dup2(0, number)
    cat.wait()
