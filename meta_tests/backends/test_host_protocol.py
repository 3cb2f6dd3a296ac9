"""Frames and records of the protocol: what goes through comes back, and what is none is told as such."""

import pickle
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from poolproof.backends.base import Attempt, Call, Outcome, SequenceResult, Status, Tensor
from poolproof.backends.host.protocol import (
    MAX_FRAME,
    Channel,
    Description,
    ProtocolError,
    Raised,
    to_frame,
    write_flat,
    write_outcome,
)
from poolproof.references.operators import OPERATORS
from poolproof.references.products import PRODUCTS, Product
from poolproof.references.windows import Adaptive
from poolproof.suites.isolation.replies import read, read_changes, read_declarations, read_description, read_outcome


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Channel]]:
    ours, theirs = socket.socketpair()
    yield ours, Channel(theirs)
    ours.close()
    theirs.close()


def test_messages_go_through_whole_however_they_are_cut(ends: tuple[socket.socket, Channel]) -> None:
    sender, channel = ends
    messages = [{"do": "run", "text": "ü\ud800"}, {"n": 1}, {}]
    frames, received = b"".join(map(to_frame, messages)), []
    for place in range(len(frames)):
        sender.sendall(frames[place : place + 1])
        if (message := channel.advance()) is not None:
            received.append(message)
    sender.sendall(frames + frames[:-1])
    sender.shutdown(socket.SHUT_WR)
    assert received + [channel.receive() for _ in range(5)] == [*messages, *messages, *messages[:2]]
    with pytest.raises(EOFError):
        channel.receive()
    assert len(to_frame({"a": "x" * (MAX_FRAME - 8)})) == MAX_FRAME + 4
    with pytest.raises(ProtocolError, match="16777217 bytes"):
        to_frame({"a": "x" * (MAX_FRAME - 7)})


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps({"do": "run"}),
        b"\xff\xff\xff\xff{}",
        (MAX_FRAME + 1).to_bytes(4, "little"),
        framed(b""),
        framed(b"[]"),
        framed(b"null"),
        framed(b"{]}"),
        framed(b'{"a":\xff}'),
        framed(b'{"a":NaN}'),
        framed(b'{"a":-Infinity}'),
        framed(b"[" * 100_000),
        framed(b'{"a":' + b"9" * 10_000 + b"}"),
    ],
)
def test_what_is_no_frame_is_no_message(ends: tuple[socket.socket, Channel], data: bytes) -> None:
    sender, channel = ends
    sender.sendall(data)
    with pytest.raises(ProtocolError):
        channel.receive()


MEMORY = np.zeros(1024, np.uint8)


def call() -> Call:
    """Tensors of four cells, 32 bytes into the memory, between guard bands of 16."""
    buffer = MEMORY[32:80]
    array = np.ndarray((1, 2, 2), np.float32, buffer, 16)
    array[...] = [[[1, 2], [3, 4]]]
    tensor = Tensor(buffer, 16, array, (4, 2, 1))
    return Call(OPERATORS["AdaptiveMaxPool2d"], Adaptive((2, 1)), dict.fromkeys(("self", "out", "indices"), tensor))


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        {"status": "fine"},
        {"status": "completed", "seconds": "1.0"},
        {"status": "completed", "seconds": -1.0},
        {"status": "completed", "code": "0"},
        {"status": "completed", "code": True},
        {"status": "completed", "message": 5},
        {"status": "completed", "results": {"weights": [[1], "float32"]}},
        {"status": "completed", "results": {"out": [[1.5], "float32"]}},
        {"status": "completed", "results": {"out": [[True], "float32"]}},
        {"status": "completed", "results": [1]},
        {"status": "completed", "strides": {"out": [1 << 63]}},
        {"status": "completed", "strides": {"out": "ab"}},
        {"status": "completed", "guard_violations": "text"},
        {"status": "completed", "verdict": "conforms"},
    ],
)
def test_what_is_no_outcome_is_none(record: object) -> None:
    with pytest.raises(ProtocolError):
        read_outcome(record, call())


def test_records_come_back() -> None:
    for outcome in (
        Outcome(Status.COMPLETED, seconds=1e-300, results={"out": ((1, 2), "float32")}, strides={"out": (2, 1)}),
        Outcome(Status.REFUSED, code=-(1 << 31), message='"\n\ud800', guard_violations=("a", "b")),
        Outcome(Status.COMPLETED, sanitizer=("racecheck: two cores",)),
        Outcome(Status.COMPLETED, sanitizer=()),
        Outcome(Status.UNAVAILABLE),
    ):
        expected = replace(outcome, message=outcome.message.replace("\ud800", "?"), changed=())
        assert read_outcome(through_json(write_outcome(outcome, call())), call()) == expected
    unsupported = {("A", "float32", "int32"): None, ("A", "float32", "int64"): "why"}
    for value in (
        Attempt(161002, None, "text", outputs_untouched=False, workspace=5),
        SequenceResult((0, -1), "why", (1,), ("written",), applicable=False),
        Raised.of(ValueError("text")),
        Description(
            product=Product("1000", like=PRODUCTS["950"], tags=("NHWC",)), actions=("run",), unsupported=unsupported
        ),
        Description(product=PRODUCTS["A3"], environment={"a": "b"}, modes=("m",), survives_fork=True),
    ):
        reader = read_description if isinstance(value, Description) else partial(read, type(value))
        assert reader(through_json(write_flat(value))) == value


@pytest.mark.parametrize(
    ("reader", "record"),
    [
        *((partial(read, Attempt), {"phase_one": one, "phase_two": two}) for one, two in (("0", None), (0, 1.0))),
        (partial(read, Attempt), {"phase_one": 0}),
        (partial(read, SequenceResult), {"statuses": [0], "applicable": 1}),
        (partial(read, Raised), {"type": "a", "text": None}),
        (read_description, {"product": "A0"}),
        (read_description, {"modes": "ab"}),
        (read_description, {"unsupported": [["A", "float32"]]}),
        (read_description, {"abilities": {"A": {"speed": True}}}),
        (read_description, {"actions": [1]}),
        *(
            (reader, record)
            for reader in (read_declarations, read_changes)
            for record in (None, {}, {"accumulation": "acc32"}, {"what": "a"}, "text")
        ),
    ],
)
def test_what_is_no_record_is_none(reader: Callable[[object], object], record: object) -> None:
    with pytest.raises(ProtocolError):
        reader(record)


def through_json(record: object) -> Any:
    ours, theirs = map(Channel, socket.socketpair())
    ours.send({"record": record})
    read = theirs.receive()["record"]
    ours.close()
    theirs.close()
    return read
