"""What a hostile library would do to the judge of its run, tried in the host while the backend describes itself."""

import ctypes
import os
import signal
from pathlib import Path

from host_backends import Plain
from poolproof import references

_LIBC = ctypes.CDLL(None, use_errno=True)
_PTRACE_SEIZE, _PTRACE_INTERRUPT, _PTRACE_DETACH, _MS_BIND = 0x4206, 0x4207, 17, 4096
_PROCESS_VM_WRITEV = {"x86_64": 311, "aarch64": 271}


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _system(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _trace(pid: int) -> None:
    _system(_LIBC.ptrace(_PTRACE_SEIZE, pid, None, None))
    _LIBC.ptrace(_PTRACE_INTERRUPT, pid, None, None)
    os.waitpid(pid, 0x40000000)  # __WALL
    _LIBC.ptrace(_PTRACE_DETACH, pid, None, None)


def _write_memory(pid: int) -> None:
    mine = ctypes.create_string_buffer(8)
    vector = _Vector(ctypes.addressof(mine), 8)
    number = _PROCESS_VM_WRITEV[os.uname().machine]
    _system(_LIBC.syscall(number, pid, ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0))


def _write(path: Path) -> None:
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(b"")


def _mount(folder: Path) -> None:
    _system(_LIBC.mount(b"/tmp", bytes(folder), None, _MS_BIND, None))
    _LIBC.umount(bytes(folder))


def _keep_a_capability() -> None:
    effective = int(Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0], 16)
    if not effective >> 19 & 1:  # CAP_SYS_PTRACE
        raise PermissionError(1, "not permitted")


class Attacker(Plain):
    """Its environment says for each attack whether it succeeded."""

    def environment(self):  # type: ignore[no-untyped-def]
        guardian = _parent(os.getpid())
        judge, folder, sources = _parent(guardian), Path(os.environ["TARGET"]), Path(references.__path__[0])
        attacks = {
            "rewrite rows": lambda: _write(folder / "rows"),
            "delete rows": (folder / "rows").unlink,
            "add a file": lambda: _write(folder / "more"),
            "rename the folder": lambda: folder.rename(folder.with_name("other")),
            "change permissions and write": lambda: (folder.chmod(0o777), _write(folder / "rows")),
            "rewrite a source": lambda: _write(sources / "windows.py"),
            "leave bytecode": lambda: _write(sources / "windows.pyc"),
            "trace the judge": lambda: _trace(judge),
            "write the judge's memory": lambda: _write_memory(judge),
            "open the judge's memory": lambda: _write(Path(f"/proc/{judge}/mem")),
            "open the judge's files": lambda: os.open(f"/proc/{judge}/fd/1", os.O_WRONLY),
            "trace the guardian": lambda: _trace(guardian),
            "signal the judge": lambda: os.kill(judge, signal.SIGCONT),
            "signal the guardian": lambda: os.kill(guardian, signal.SIGCONT),
            "mount over the folder": lambda: _mount(folder),
            "keep a capability": _keep_a_capability,
        }
        attacks["write a temporary file"] = lambda: _write(Path(os.environ["TMPDIR"], "mine"))
        found = {}
        for what, attack in attacks.items():
            try:
                attack()
                found[what] = "done"
            except OSError as error:
                found[what] = error.strerror
        return found
