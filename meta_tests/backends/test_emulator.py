"""Whether the emulator's ABI behaves as the real one is documented and was observed to."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ctypes import byref, c_float, c_int32, c_int64, c_size_t, c_uint64, c_void_p

import numpy as np
import pytest

from contract_calls import MP3
from emulated_calls import prepared
from emulator_driver import Emulator, fresh
from places import SUPPORT
from poolproof.backends.aclnn.prototypes import DEVICE_TO_HOST, HOST_TO_DEVICE
from poolproof.backends.emulator import build, library


@pytest.fixture(scope="module")
def a2() -> Iterator[Emulator]:
    with fresh(library(), "A2", DISABLE_L2_CACHE="1") as emulator:
        yield emulator


@pytest.fixture
def cached() -> Iterator[Emulator]:
    """An A2 with the executor cache on and a small memory."""
    with fresh(library(), "A2", POOLPROOF_EMULATOR_MEMORY=str(1 << 20)) as emulator:
        yield emulator


def test_a_thread_needs_a_context(a2: Emulator) -> None:
    with ThreadPoolExecutor(1) as other:
        assert other.submit(a2.aclrtMalloc, byref(c_void_p()), 64, 0).result() == 107002
        assert other.submit(a2.aclrtGetDevice, byref(c_int32())).result() == 107002
        assert other.submit(a2.aclrtSynchronizeStream, a2.stream).result() == 107002


def test_devices_and_contexts() -> None:
    with fresh(library(), "950", POOLPROOF_EMULATOR_DEVICES="2") as emulator:
        assert emulator.aclrtSetDevice(2) == 107001
        emulator.call("aclrtSetDevice", 1)
        device, context = c_int32(), c_void_p()
        emulator.call("aclrtGetDevice", byref(device))
        assert device.value == 1
        assert emulator.aclrtSynchronizeStream(emulator.stream) == 107003, "the stream belongs to the other context"
        emulator.call("aclrtCreateContext", byref(context), 0)
        emulator.call("aclrtGetDevice", byref(device))
        assert device.value == 0
        emulator.call("aclrtDestroyContext", context)
        assert emulator.aclrtSetCurrentContext(context) == 107017
        emulator.call("aclrtSetDevice", 0)
        assert emulator.aclrtResetDevice(0) == 0
        assert emulator.aclrtSynchronizeStream(emulator.stream) == 0, "one of two settings is left"


def test_memory_is_accounted_exactly(cached: Emulator) -> None:
    before, block = cached.free_memory(), cached.malloc(33)
    assert before - cached.free_memory() == 64 + 32, "rounded up to 32, and the guard of an A2"
    assert block.value is not None and block.value % 64 == 0
    for size, status in ((1 << 21, 207001), ((1 << 20) - 64, 207018)):
        pointer = c_void_p()
        assert cached.aclrtMalloc(byref(pointer), size, 0) == status
        assert pointer.value is None
    cached.call("aclrtFree", block)
    assert cached.free_memory() == before


def test_memory_misuse(a2: Emulator) -> None:
    block, freed = a2.malloc(64), a2.malloc(64)
    a2.call("aclrtFree", freed)
    host = ctypes.create_string_buffer(128)
    assert a2.aclrtMalloc(byref(c_void_p()), 0, 0) == 100000
    assert a2.aclrtMalloc(byref(c_void_p()), 64, 999) == 100000
    assert a2.aclrtFree(None) == 100000
    assert a2.aclrtFree(freed) == 207002
    assert "freed before" in a2.message()
    assert a2.aclrtFree(host) == 207002
    assert a2.aclrtMemcpy(None, 0, None, 0, 99) == 0, "nothing is looked at when there is nothing to copy"
    assert a2.aclrtMemcpy(block, 64, None, 64, HOST_TO_DEVICE) == 100000
    assert a2.aclrtMemcpy(block, 32, host, 64, HOST_TO_DEVICE) == 100000
    assert a2.aclrtMemcpy(block, 64, host, 64, 99) == 100000
    assert a2.aclrtMemcpy(block, 128, host, 65, HOST_TO_DEVICE) == 107000, "past the end of the block"
    assert a2.aclrtMemcpy(host, 64, freed, 64, DEVICE_TO_HOST) == 107000
    assert "was freed" in a2.message()
    assert a2.aclrtMemcpy(host, 64, host, 64, HOST_TO_DEVICE) == 107000
    seen, pointer = np.zeros(16, np.float32), c_void_p()
    a2.download(seen, block)
    assert np.isnan(seen).all(), "new memory is dirty"
    a2.call("aclrtFree", block)
    a2.call("aclrtMallocHost", byref(pointer), c_size_t(64))
    assert a2.living("host_blocks") == 1
    assert (a2.aclrtFreeHost(pointer), a2.aclrtFreeHost(pointer), a2.aclrtFreeHost(None)) == (0, 207002, 100000)


def test_streams_are_asynchronous_and_ordered(a2: Emulator) -> None:
    block, source, size = a2.malloc(1 << 24), np.arange(1 << 22, dtype=np.int32), 1 << 24
    target = np.zeros_like(source)
    for _ in range(20):
        a2.call("aclrtMemcpyAsync", block, size, source.ctypes.data, size, HOST_TO_DEVICE, a2.stream)
    a2.call("aclrtMemcpyAsync", target.ctypes.data, size, block, size, DEVICE_TO_HOST, a2.stream)
    assert a2.aclrtSynchronizeStreamWithTimeout(a2.stream, 0) == 507046
    assert a2.aclrtSynchronizeStreamWithTimeout(a2.stream, 60_000) == 0
    np.testing.assert_array_equal(target, source)
    a2.call("aclrtFree", block)
    stream = c_void_p()
    a2.call("aclrtCreateStream", byref(stream))
    a2.call("aclrtDestroyStream", stream)
    assert a2.aclrtDestroyStream(stream) == a2.aclrtSynchronizeStream(stream) == 107003
    assert a2.aclrtDestroyStream(None) == 100000


def test_events_measure_time(a2: Emulator) -> None:
    events = [c_void_p(), c_void_p()]
    for event in events:
        a2.call("aclrtCreateEvent", byref(event))
    elapsed = c_float(-1)
    assert a2.aclrtEventElapsedTime(byref(elapsed), *events) == 107000, "never recorded"
    for event in events:
        a2.call("aclrtRecordEvent", event, a2.stream)
    a2.call("aclrtSynchronizeEvent", events[1])
    a2.call("aclrtEventElapsedTime", byref(elapsed), *events)
    assert elapsed.value >= 0
    for event in events:
        a2.call("aclrtDestroyEvent", event)
    assert a2.aclrtSynchronizeEvent(events[0]) == 107017


def test_system_parameters_have_two_scopes(a2: Emulator) -> None:
    value = c_int64(-1)
    assert a2.aclrtCtxGetSysParamOpt(1, byref(value)) == 107021
    a2.call("aclrtGetSysParamOpt", 0, byref(value))
    assert value.value == 0
    assert a2.aclrtSetSysParamOpt(0, 4) == a2.aclrtSetSysParamOpt(1, 2) == a2.aclrtSetSysParamOpt(9, 0) == 107000
    assert a2.aclrtCtxSetSysParamOpt(3, 1) == 107000, "process scope only"
    a2.call("aclrtCtxSetSysParamOpt", 0, 3)
    a2.call("aclrtGetSysParamOpt", 0, byref(value))
    assert value.value == 0, "the context's setting is its own"
    a2.call("aclrtCtxGetSysParamOpt", 0, byref(value))
    assert value.value == 3


def test_error_texts_are_the_threads_own(a2: Emulator) -> None:
    a2.aclGetRecentErrMsg()
    a2.aclrtFree(None)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(a2.aclGetRecentErrMsg).result() is None
    a2.aclrtMalloc(None, 1, 0)
    newest, older = a2.aclGetRecentErrMsg().splitlines()
    assert b"aclrtMalloc" in newest
    assert older.endswith(b"aclrtFree: the pointer is null")
    assert a2.aclGetRecentErrMsg() is None, "reading clears"
    assert (a2.aclrtPeekAtLastError(0), a2.aclrtGetLastError(0), a2.aclrtGetLastError(0)) == (100000, 100000, 0)


CURRENT = {"A2": "Ascend910B1", "A3": "Ascend910_9382", "950": "Ascend950PR_9591"}
OLDER = {"910": "Ascend910A", "310P": "Ascend310P3", "310B": "Ascend310B1"}


@pytest.mark.parametrize(("product", "soc"), (CURRENT | OLDER).items())
def test_products(product: str, soc: str) -> None:
    with fresh(library(), product) as emulator:
        assert emulator.aclrtGetSocName().decode() == soc
        assert prepared(emulator).launch().phase_one == (0 if product in CURRENT else 161002)
        value, version = c_int32(), ctypes.create_string_buffer(128)
        emulator.call("aclGetCannAttribute", 0, byref(value))
        assert value.value == int(product in CURRENT)
        emulator.call("aclsysGetVersionStr", b"CANN", version)
        assert b"emulator" in version.value
        package = ctypes.create_string_buffer(128 * 2 + 64 * 4)
        emulator.call("aclsysGetCANNVersion", 0, package)
        assert package.value == version.value


def in_python(script: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(SUPPORT), **environment}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("setting", "value", "complaint"),
    [
        ("PRODUCT", "A4", "none of A2"),
        ("DEVICES", "x", "positive whole number"),
        ("DEFECTS", "nonsense", "unknown defect nonsense"),
    ],
)
def test_wrong_settings_abort_with_a_reason(setting: str, value: str, complaint: str) -> None:
    script = "import sys; from emulator_driver import Emulator; Emulator(sys.argv[1]).read_settings()"
    done = in_python(script, library(), **{f"POOLPROOF_EMULATOR_{setting}": value})
    assert done.returncode != 0
    assert complaint in done.stderr


def test_initialisation_is_counted() -> None:
    script = """
import ctypes
import sys
library = ctypes.CDLL(sys.argv[1])
left = ctypes.c_uint64()
print(library.aclFinalize(), library.aclInit(None), library.aclInit(None))
print(library.aclFinalizeReference(ctypes.byref(left)), left.value)
print(library.aclFinalize(), library.aclFinalize(), library.aclFinalizeReference(None))
"""
    found = in_python(script, library()).stdout
    assert found.split() == ["100001", "0", "100002", "0", "1", "0", "100037", "100037"]


@pytest.mark.parametrize(("layout", "operators"), [("split", "libopapi_nn.so"), ("monolithic", "libopapi.so")])
def test_layouts_find_their_own_libraries(layout: build.Layout, operators: str) -> None:
    script = """
import sys
import numpy
from emulator_driver import Emulator, dense
tensors = dict(gradOutput="f4", self="f4", indices="i4", gradInput="f4")
views = {name: dense(numpy.zeros([1, 1, 1, 3, 3], dtype)) for name, dtype in tensors.items()}
lists = dict(kernelSize=[1], stride=[1], padding=[0], dilation=[1])
print(Emulator(sys.argv[1]).run("aclnnMaxPool3dWithArgmaxBackward", views, lists).ok)
"""
    assert in_python(script, library(layout) / "lib64" / operators).stdout == "True\n"


def test_tensors_tell_what_they_are(a2: Emulator) -> None:
    tensor = a2.create_tensor([2, 3], 0, None, 5, 2, [11], 0x1000)
    size, offset, data = c_uint64(), c_int64(), c_void_p()
    for getter, expected in (("aclGetViewShape", [2, 3]), ("aclGetViewStrides", [3, 1]), ("aclGetStorageShape", [11])):
        values = ctypes.POINTER(c_int64)()
        a2.call(getter, tensor, byref(values), byref(size))
        assert values[: size.value] == expected
    a2.call("aclGetViewOffset", tensor, byref(offset))
    a2.call("aclGetRawTensorAddr", tensor, byref(data))
    assert (offset.value, data.value) == (5, 0x1000)
    assert a2.aclGetViewOffset(tensor, None) == 161001
    a2.call("aclDestroyTensor", tensor)
    a2.call("aclDestroyTensor", None)
    assert a2.aclCreateTensor(None, 2, 0, None, 0, 2, None, 0, None) is None
    assert a2.aclCreateIntArray(None, 1) is None


def test_phase_two_consumes_the_executor(a2: Emulator) -> None:
    before = {kind: a2.living(kind) for kind in ("tensors", "int_arrays", "executors", "device_blocks")}
    free, call = a2.free_memory(), prepared(a2)
    for _ in range(3):
        assert call.launch().ok
    _, _, unused = call.plan()
    assert a2.living("executors") == before["executors"] + 1
    a2.call("aclDestroyAclOpExecutor", unused)
    call.destroy()
    assert {kind: a2.living(kind) for kind in before} == before
    assert a2.free_memory() == free


def test_wrong_arguments_of_phase_two() -> None:
    with fresh(library(), "A2") as emulator:
        call, living = prepared(emulator, "float16"), emulator.living("executors")
        assert emulator.phase_two(MP3, None, 0, c_void_p(), emulator.stream) == 161001
        assert emulator.aclDestroyAclOpExecutor(None) == emulator.aclSetAclOpExecutorRepeatable(None) == 561103
        _, size, executor = call.plan()
        assert size > 0
        assert emulator.phase_two(MP3, None, size, executor, emulator.stream) == 161001
        assert emulator.living("executors") == living, "gone although it did not run"
        # A workspace that is no device memory poisons the context.
        _, size, executor = call.plan()
        host = ctypes.cast(ctypes.create_string_buffer(size), c_void_p)
        assert emulator.phase_two(MP3, host, size, executor, emulator.stream) == 0
        assert emulator.aclrtSynchronizeStream(emulator.stream) == 507053
        assert emulator.aclrtMalloc(byref(c_void_p()), 64, 0) == 507053


def test_a_repeatable_executor_runs_on_other_addresses(cached: Emulator) -> None:
    call, other = prepared(cached), prepared(cached)
    assert call.launch().ok
    expected = call.views["gradInput"].storage.copy()
    _, _, executor = other.plan()
    assert cached.aclSetAclOpExecutorRepeatable(executor) == 561000, "it comes from the cache"
    cached.call("aclDestroyAclOpExecutor", executor)
    cached.call("aclrtSetSysParamOpt", 0, 1)  # another key
    _, _, executor = call.plan()
    cached.call("aclSetAclOpExecutorRepeatable", executor)
    first, second = cached.upload(np.empty_like(expected)), cached.upload(np.empty_like(expected))
    for address in (first, second):
        cached.call("aclSetOutputTensorAddr", executor, 0, call.tensors["gradInput"], address)
        assert cached.phase_two(MP3, None, 0, executor, cached.stream) == 0
        cached.call("aclrtSynchronizeStream", cached.stream)
        found = np.empty_like(expected)
        cached.download(found, address)
        np.testing.assert_array_equal(found, expected)
    assert cached.aclSetOutputTensorAddr(executor, 1, call.tensors["gradInput"], first) == 161002
    assert cached.aclSetTensorAddr(executor, 3, call.tensors["gradInput"], first) == 0
    assert cached.aclSetInputTensorAddr(executor, 3, call.tensors["gradInput"], first) == 161002
    cached.call("aclDestroyAclOpExecutor", executor)
    _, _, executor = call.plan()
    assert cached.aclSetAclOpExecutorRepeatable(executor) == 0, "the entry was dropped"
    cached.call("aclDestroyAclOpExecutor", executor)


def test_a_cache_hit_skips_validation_and_takes_its_own_addresses(cached: Emulator) -> None:
    call, other = prepared(cached), prepared(cached)
    assert call.launch().ok
    other.fill("gradInput", 7)
    assert other.launch().ok
    assert other.views["gradInput"].storage.tobytes() == call.views["gradInput"].storage.tobytes()


@pytest.mark.parametrize(("limit", "hits"), [("1", False), ("2", True)])
def test_the_cache_is_bounded(limit: str, hits: bool) -> None:
    with fresh(library(), "A2", ACLNN_CACHE_LIMIT=limit) as emulator:
        for dtype in ("float32", "float16"):
            assert prepared(emulator, dtype).launch().ok
        _, _, executor = prepared(emulator).plan()
        assert emulator.aclSetAclOpExecutorRepeatable(executor) == (561000 if hits else 0)


def test_threads_work_side_by_side(cached: Emulator) -> None:
    def five_times() -> set[bytes]:
        cached.call("aclrtSetDevice", 0)
        results = set()
        for _ in range(5):
            call = prepared(cached, gradient="uniform")
            assert call.launch().ok
            results.add(call.views["gradInput"].storage.tobytes())
            call.destroy()
        return results

    cached.call("aclrtSetSysParamOpt", 0, 1)
    with ThreadPoolExecutor(3) as threads:
        running = [threads.submit(five_times) for _ in range(3)]
        assert len(set().union(*(each.result() for each in running))) == 1


# Streams among each other, and what phase two does when it is given less than it needs.

LENGTH = 1 << 24
TIMED_OUT = 507046


@contextmanager
def another_stream(emulator: Emulator) -> Iterator[c_void_p]:
    stream = c_void_p()
    emulator.call("aclrtCreateStream", byref(stream))
    yield stream
    emulator.call("aclrtDestroyStream", stream)


SOURCE = np.zeros(LENGTH, np.uint8)
"""Lives as long as any stream, an abandoned one as well."""


def busy(emulator: Emulator, stream: c_void_p, copies: int = 20) -> None:
    """Keeps the stream busy for some ten milliseconds."""
    block = emulator.malloc(LENGTH)
    for _ in range(copies):
        emulator.call("aclrtMemcpyAsync", block, LENGTH, SOURCE.ctypes.data, LENGTH, HOST_TO_DEVICE, stream)


def test_a_stream_waits_for_what_an_event_has_captured(a2: Emulator) -> None:
    block, seen, event = a2.upload(np.zeros(64, np.uint8)), np.zeros(64, np.uint8), c_void_p()
    a2.call("aclrtCreateEvent", byref(event))
    with another_stream(a2) as producer, another_stream(a2) as consumer:
        busy(a2, producer)
        a2.call("aclrtMemsetAsync", block, 64, 7, 64, producer)
        a2.call("aclrtRecordEvent", event, producer)
        a2.call("aclrtStreamWaitEvent", consumer, event)
        assert a2.aclrtSynchronizeStreamWithTimeout(consumer, 0) == TIMED_OUT
        assert a2.aclrtSynchronizeStreamWithTimeout(consumer, 60_000) == 0
        a2.download(seen, block)
        a2.call("aclrtSynchronizeStream", producer)
    assert (seen == 7).all()
    a2.call("aclrtDestroyEvent", event)


def test_nobody_waits_for_a_stream_that_was_abandoned_or_an_event_that_was_not_recorded(a2: Emulator) -> None:
    event, stream = c_void_p(), c_void_p()
    a2.call("aclrtCreateEvent", byref(event))
    a2.call("aclrtStreamWaitEvent", a2.stream, event)
    assert a2.aclrtSynchronizeStreamWithTimeout(a2.stream, 60_000) == 0
    a2.call("aclrtCreateStream", byref(stream))
    busy(a2, stream, copies=2)
    a2.call("aclrtRecordEvent", event, stream)
    a2.call("aclrtStreamWaitEvent", a2.stream, event)
    a2.call("aclrtDestroyStreamForce", stream)
    assert a2.aclrtSynchronizeStreamWithTimeout(a2.stream, 60_000) == 0
    a2.call("aclrtDestroyEvent", event)
    assert a2.aclrtStreamWaitEvent(a2.stream, event) == a2.aclrtStreamWaitEvent(c_void_p(1), event) == 107017


def test_an_exception_lets_those_go_who_wait_for_it() -> None:
    with fresh(library(), "A2") as emulator:
        event = c_void_p()
        emulator.call("aclrtCreateEvent", byref(event))
        with another_stream(emulator) as failing:
            busy(emulator, failing)
            _, size, executor = prepared(emulator, "float16").plan()
            host = ctypes.create_string_buffer(size)
            assert emulator.phase_two(MP3, ctypes.cast(host, c_void_p), size, executor, failing) == 0
            emulator.call("aclrtRecordEvent", event, failing)
            emulator.call("aclrtStreamWaitEvent", emulator.stream, event)
            assert emulator.aclrtSynchronizeStreamWithTimeout(emulator.stream, 60_000) == 507053


def test_a_workspace_is_needed_but_a_size_that_is_understated_changes_nothing(a2: Emulator) -> None:
    for dtype in ("float32", "float16"):
        call, living = prepared(a2, dtype), a2.living("executors")
        _, _, executor = call.plan()
        assert a2.phase_two(MP3, None, 64, executor, a2.stream) == 161001, "whatever is needed"
        assert a2.living("executors") == living
        call.destroy()
    right, call = prepared(a2, "float16"), prepared(a2, "float16")
    assert right.launch().ok
    _, size, executor = call.plan()
    workspace = a2.malloc(size)
    assert a2.phase_two(MP3, workspace, 1, executor, a2.stream) == 0
    a2.call("aclrtSynchronizeStream", a2.stream)
    call.fetch()
    assert call.views["gradInput"].storage.tobytes() == right.views["gradInput"].storage.tobytes()
    a2.call("aclrtFree", workspace)
