"""What a client of the runtime meets beside the operators: last errors, queries, versions, other settings."""

import ctypes
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

import pytest

from contract_calls import MP3
from emulated_calls import prepared, prepared_case
from emulator_driver import Emulator, fresh
from poolproof.backends.emulator import library
from poolproof.suites.cases.case import Case

HANG = "hang_on_idle_core"


@pytest.fixture(scope="module")
def a2() -> Iterator[Emulator]:
    with fresh(library(), "A2", DISABLE_L2_CACHE="1") as emulator:
        yield emulator


LAST_ERRORS = {
    # without a context, which is no error of these two
    "aclrtGetDevice": (False, lambda: (byref(c_int32()),), 107002, 0),
    "aclrtGetCurrentContext": (False, lambda: (byref(c_void_p()),), 107002, 0),
    "aclrtSynchronizeStream": (False, lambda: (None,), 107002, 107002),
    "aclrtMemset": (False, lambda: (c_void_p(64), c_size_t(4), 0, c_size_t(4)), 107002, 107002),
    # with one
    "aclInit": (True, lambda: (None,), 100002, 0),
    "aclrtMalloc": (True, lambda: (byref(c_void_p()), c_size_t(0), 0), 100000, 0),
    "aclrtMallocAlign32": (True, lambda: (byref(c_void_p()), c_size_t(1 << 50), 0), 207001, 207001),
    "aclrtFree": (True, lambda: (c_void_p(64),), 207002, 207002),
    "aclrtResetDevice": (True, lambda: (7,), 107001, 107001),
    "aclrtDestroyEvent": (True, lambda: (c_void_p(64),), 107017, 107017),
    "aclrtSetStreamFailureMode": (True, lambda: (None, c_uint64(2)), 107000, 107000),
    "aclrtPeekAtLastError": (True, lambda: (1,), 100000, 0),
    "aclnnMaxPool3dWithArgmaxGetWorkspaceSize": (True, lambda: (None,) * 10, 161001, 0),
}
"""Function -> whether the thread has a context, arguments, the status, and the thread's last error after it."""


@pytest.mark.parametrize("function", LAST_ERRORS)
def test_only_the_runtime_proper_sets_the_last_error(a2: Emulator, function: str) -> None:
    has_context, arguments, status, last = LAST_ERRORS[function]

    def ask() -> tuple[int, ...]:
        if has_context:
            a2.call("aclrtSetDevice", 0)
        answers = getattr(a2, function)(*arguments()), a2.aclrtPeekAtLastError(0), a2.aclrtGetLastError(0)
        told = a2.aclGetRecentErrMsg() is not None
        return *answers, told, a2.aclrtGetLastError(0)

    with ThreadPoolExecutor(1) as thread:
        is_silent = (status, last) == (107002, 0)
        assert thread.submit(ask).result() == (status, last, last, not is_silent, 0)


def asked(emulator: Emulator, name: str, kind: Callable[[], ctypes._SimpleCData], *arguments: object) -> int:
    """The one result that a function gives behind these arguments."""
    result = kind()
    emulator.call(name, *arguments, byref(result))
    return result.value


def test_queries_of_streams_and_events(a2: Emulator) -> None:
    old, new = c_void_p(), c_void_p()
    a2.call("aclrtCreateEvent", byref(old))
    a2.call("aclrtCreateEventExWithFlag", byref(new), 0)
    assert [asked(a2, "aclrtQueryEventStatus", c_int, event) for event in (old, new)] == [0, 1], "without a record"
    for event in (old, new):
        a2.call("aclrtRecordEvent", event, a2.stream)
        a2.call("aclrtSynchronizeEvent", event)
        assert asked(a2, "aclrtQueryEventStatus", c_int, event) == 1
        a2.call("aclrtResetEvent", event, a2.stream)
        a2.call("aclrtSynchronizeStream", a2.stream)
    assert [asked(a2, "aclrtQueryEventStatus", c_int, event) for event in (old, new)] == [0, 1], "after a reset"
    assert asked(a2, "aclrtStreamQuery", c_int, a2.stream) == 0
    a2.call("aclrtSynchronizeDeviceWithTimeout", 1000)
    for event in (old, new):
        a2.call("aclrtDestroyEvent", event)
    assert a2.aclrtQueryEventStatus(old, byref(c_int())) == 107017
    assert a2.aclrtStreamQuery(c_void_p(64), byref(c_int())) == 107003


def test_queries_while_a_kernel_hangs() -> None:
    case = Case.of(MP3.removeprefix("aclnn"), shape=(1, 1, 4, 4), dtype="float16", index_dtype="int32",
                   kernel_size=(1, 2, 2), stride=(1,), dilation=(2,))  # fmt: skip
    with fresh(library(), "A2", POOLPROOF_EMULATOR_DEFECTS=HANG) as emulator:
        call = prepared_case(emulator, case)
        _, size, executor = call.plan()
        event, other = c_void_p(), c_void_p()
        emulator.call("aclrtCreateEvent", byref(event))
        emulator.call("aclrtCreateStream", byref(other))
        assert emulator.phase_two(call.api, emulator.malloc(size), size, executor, emulator.stream) == 0
        emulator.call("aclrtRecordEvent", event, emulator.stream)
        assert asked(emulator, "aclrtQueryEventWaitStatus", c_int, event) == 0
        emulator.call("aclrtStreamWaitEvent", other, event)
        assert asked(emulator, "aclrtQueryEventWaitStatus", c_int, event) == 1
        assert asked(emulator, "aclrtQueryEventStatus", c_int, event) == 0
        assert [asked(emulator, "aclrtStreamQuery", c_int, stream) for stream in (emulator.stream, other)] == [1, 1]
        assert emulator.aclrtSynchronizeDeviceWithTimeout(20) == 507046


VERSIONS = {"9.0.0": ("9", "0", "0", "", 9000000), "8.5.RC1": ("8", "5", "RC1", "", 8050000),
            "9.1.0-beta.1": ("9", "1", "0", "beta", 9010000)}  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_is_one_that_clients_parse_and_the_maker_is_named_elsewhere(version: str) -> None:
    text, about = ctypes.create_string_buffer(128), ctypes.create_string_buffer(128 + 4 * 64 + 128)
    with fresh(library(), "A2", POOLPROOF_EMULATOR_VERSION=version) as emulator:
        emulator.call("aclsysGetVersionStr", b"runtime", text)
        number = asked(emulator, "aclsysGetVersionNum", c_int32, b"runtime")
        emulator.call("aclsysGetCANNVersion", 0, about)
    parts = [about.raw[start : start + 64].rstrip(b"\0").decode() for start in range(128, 384, 64)]
    assert (text.value.decode(), *parts, number) == (version, *VERSIONS[version])
    assert about.value.decode() == version
    assert about.raw[384:].rstrip(b"\0") == b"poolproof-emulator"


class _Utilization(ctypes.Structure):
    _fields_ = [*((name, c_int32) for name in ("cube", "vector", "aicpu", "memory")), ("reserved", c_void_p)]


@pytest.mark.parametrize(("product", "attributes", "cores"), [("A2", 2, (24, 48)), ("910", 1, (32, 32))])
def test_what_torch_asks_of_the_device(product: str, attributes: int, cores: tuple[int, int]) -> None:
    with fresh(library(), product) as emulator:
        listed, count = c_void_p(), c_size_t()
        emulator.call("aclGetCannAttributeList", byref(listed), byref(count))
        assert count.value == attributes
        assert tuple(asked(emulator, "aclGetDeviceCapability", c_int64, 0, what) for what in (0, 1)) == cores
        assert emulator.aclGetDeviceCapability(0, 2, byref(c_int64())) == 100000
        assert emulator.aclGetDeviceCapability(1, 0, byref(c_int64())) == 100000
        assert asked(emulator, "aclrtGetPrimaryCtxState", c_int32, 0, None) == 1
        assert emulator.aclrtGetPrimaryCtxState(0, byref(c_uint32()), byref(c_int32())) == 100000
        rates = _Utilization()
        emulator.call("aclrtGetDeviceUtilizationRate", 0, byref(rates))
        assert (rates.cube, rates.vector, rates.aicpu, rates.memory) == (-1, -1, -1, -1)
        emulator.call("aclrtSetStreamOverflowSwitch", emulator.stream, 1)
        assert asked(emulator, "aclrtGetStreamOverflowSwitch", c_uint32, emulator.stream) == 1
        assert emulator.aclrtSetStreamOverflowSwitch(emulator.stream, 2) == 100000
        emulator.call("aclrtSetStreamFailureMode", emulator.stream, c_uint64(1))
        for name in ("aclrtSetOpExecuteTimeOut", "aclrtSetOpExecuteTimeOutWithMs", "aclrtSetOpWaitTimeout"):
            emulator.call(name, 7)
        assert asked(emulator, "aclrtSetOpExecuteTimeOutV2", c_uint64, c_uint64(1000)) == 1000


def test_no_query_disturbs_a_call(a2: Emulator) -> None:
    with prepared(a2) as call:
        a2.call("aclrtSynchronizeDeviceWithTimeout", -1)
        assert call.launch().ok
        assert a2.aclrtEventElapsedTime(byref(c_float()), None, None) == 107017
