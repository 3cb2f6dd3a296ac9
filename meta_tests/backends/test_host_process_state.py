"""What a call leaves behind in its process is named, and put right where it can be."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from host_client import HostClient
from places import SUPPORT
from poolproof.backends.host.protocol import Channel
from poolproof.references.windows import Windowed
from poolproof.suites.isolation.replies import read_changes


@pytest.fixture(scope="module")
def host() -> Iterator[HostClient]:
    with HostClient(PYTHONPATH=str(SUPPORT)) as client:
        client.describe("host_backends:Leaving")
        yield client


@pytest.fixture
def worker(host: HostClient) -> Iterator[Channel]:
    pid, channel = host.fork()
    yield channel
    channel.close()
    host.done("end", pid=pid, seconds=0)


def changed(host: HostClient, worker: Channel, mode: str = "", size: int = 2) -> list[tuple[str, str, str, bool]]:
    values = np.zeros((1, 1, 2, size), np.float32)
    outputs = {"out": values[:, :, :1, : size // 2], "indices": np.zeros((1, 1, 1, size // 2), np.int64)}
    call = host.call("MaxPool2dWithIndices", Windowed((2, 2)), {"self": values, **outputs})
    worker.send(host.to_run(call, mode=mode))
    changes = read_changes(worker.receive()["done"].get("changed", []))
    return [(change.what, change.before, change.after, change.restored) for change in changes]


on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="MXCSR is a register of x86")


@pytest.mark.parametrize(
    ("mode", "what", "before", "after"),
    [
        pytest.param("rounding up", "rounding mode", "to nearest", "up", marks=on_x86),
        pytest.param("rounding to zero", "rounding mode", "to nearest", "toward zero", marks=on_x86),
        pytest.param("flush-to-zero", "flush-to-zero", "off", "on", marks=on_x86),
        pytest.param("denormals-are-zero", "denormals-are-zero", "off", "on", marks=on_x86),
        ("folder", "working folder", None, "/"),
        ("mask", "signal mask", "none", "SIGUSR1"),
        ("handler", "ignored signals", None, "SIGUSR1"),
        ("python handler", "signal handlers", None, "SIGUSR2"),
        ("umask", "umask", None, "0777"),
        ("locale", "locale", None, "C.UTF-8"),
        ("limit", "limit of open files", None, None),
    ],
)
def test_what_a_call_leaves_is_named_and_put_right(
    host: HostClient, worker: Channel, mode: str, what: str, before: str | None, after: str | None
) -> None:
    changes = changed(host, worker, mode)
    (told,) = [change for change in changes if change[0] == what]
    assert before in (None, told[1])
    assert after is None or after in told[2]
    assert told[1] != told[2]
    assert changed(host, worker) == []
    assert all(restored for *_, restored in changes)
    assert changed(host, worker, mode) == changes


@pytest.mark.parametrize("mode", ["", pytest.param("floating-point flags", marks=on_x86)])
def test_what_a_right_call_leaves_is_nothing(host: HostClient, worker: Channel, mode: str) -> None:
    assert [changed(host, worker, mode) for _ in range(3)] == [[]] * 3


def test_what_cannot_be_put_right_is_told_once(host: HostClient, worker: Channel) -> None:
    ((what, _, _, restored),) = changed(host, worker, "hard limit")
    capabilities = Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0]
    assert (what, restored) == ("limit of open files", bool(int(capabilities, 16) >> 24 & 1)), "CAP_SYS_RESOURCE"
    assert changed(host, worker) == []


@pytest.mark.parametrize(("mode", "what"), [("thread", "threads"), ("child", "children")])
def test_what_grows_is_told_each_time(host: HostClient, worker: Channel, mode: str, what: str) -> None:
    for _ in range(2):
        ((told, before, after, restored),) = changed(host, worker, mode)
        assert (told, int(after) - int(before), restored) == (what, 1, False)
        assert changed(host, worker) == []


@on_x86
def test_no_call_is_made_in_the_rounding_mode_that_another_left(host: HostClient, worker: Channel) -> None:
    values = np.zeros((1, 1, 2, 2), np.float32)
    arrays = {"self": values, "out": values[:, :, :1, :1], "indices": np.zeros((1, 1, 1, 1), np.int64)}
    calls = [host.call("MaxPool2dWithIndices", Windowed((2, 2)), arrays) for _ in range(2)]
    for mode, made in (("", 2), ("rounding up", 1), ("", 2)):
        worker.send(host.to_run(*calls, mode=mode))
        assert len(worker.receive()["done"]["outcomes"]) == made
