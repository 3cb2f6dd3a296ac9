"""The emulated NPU for other programs: the command's environment, copies and casts, stubs that name themselves."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from ctypes import c_uint64, c_void_p

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_driver import Emulator, View, dense
from poolproof.backends.emulator import library
from poolproof.backends.emulator.build import LIBRARY_FOLDER
from poolproof.references.contract.vocabulary import DTYPES
from sessions import poolproof

PROGRAM = """
import ctypes, os
compiler = ctypes.CDLL("libacl_op_compiler.so")
for name in ("libhccl.so", "libge_runner.so", "libgraph.so", "libacl_tdt_channel.so", "libopapi_nn.so"):
    ctypes.CDLL(name)
assert all(map(os.path.isdir, (os.environ["ASCEND_OPP_PATH"], os.environ["ASCEND_HOME_PATH"] + "/runtime")))
value = ctypes.create_string_buffer(b"?" * 40)
assert compiler.aclSetCompileopt(1, b"enable") == 0
assert (compiler.aclGetCompileoptSize(1), compiler.aclGetCompileoptSize(2)) == (7, 8)
assert compiler.aclGetCompileopt(1, value, ctypes.c_size_t(7)) == 0 and value.value == b"enable"
assert compiler.aclGetCompileopt(2, value, ctypes.c_size_t(7)) == 100000
compiler.aclrtGetSocName.restype = ctypes.c_char_p  # of another library, which the handle leads to
compiler.aclsysGetVersionStr(b"", value)
print(compiler.aclrtGetSocName().decode(), value.value.decode(), flush=True)
compiler.aclopCompileAndExecute()
"""


def test_the_command_prints_an_environment_and_nothing_else() -> None:
    said = poolproof("emulator", "env", "--product", "a3", "--version", "9.1.0")
    assert said.exit_code == 0
    lines = said.stdout.splitlines()
    assert all(len(shlex.split(line)) == 2 and line.startswith("export ") for line in lines)
    command = [*lines, f"exec {shlex.quote(sys.executable)} -c {shlex.quote(PROGRAM)}"]
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    for folder in ("", "/nowhere"):
        variables = environment | ({"LD_LIBRARY_PATH": folder} if folder else {})
        done = subprocess.run(
            ["bash", "-c", "\n".join(command)], env=variables, capture_output=True, text=True, check=False
        )
        assert done.stdout == "Ascend910_9382 9.1.0\n", done.stderr
        assert done.returncode == -6
        assert "poolproof emulator: aclopCompileAndExecute is not emulated" in done.stderr


@pytest.mark.parametrize("words", [("--version", "9"), ("--version", "9.0.0;rm"), ("--product", "A9")])
def test_what_is_no_product_or_version_is_told(words: tuple[str, str]) -> None:
    said = poolproof("emulator", "env", *words)
    assert said.exit_code != 0
    assert not said.stdout
    assert words[1] in said.stderr


@pytest.fixture(scope="module")
def client() -> Iterator[Emulator]:
    emulator = Emulator(library("cann") / LIBRARY_FOLDER / "libopapi_math.so")  # leads to the others
    yield emulator
    emulator.call("aclrtResetDeviceForce", 0)


def status(client: Emulator, api: str, *arguments: object) -> int:
    """Both phases: that of the first, where it refuses."""
    size, executor = c_uint64(), c_void_p()
    answer = client.phase_one(api, arguments, size, executor)
    if answer == 0:
        assert size.value == 0
        assert client.phase_two(api, None, 0, executor, client.stream) == 0
        client.call("aclrtSynchronizeStream", client.stream)
    return answer


def copied(client: Emulator, api: str, target: View, source: View | None = None) -> NDArray:
    """What the target's storage holds after the call."""
    views = [each for each in (target, source) if each is not None]
    buffers = [client.upload(view.storage) for view in views]
    tensors = [client.create_view(view, buffer) for view, buffer in zip(views, buffers, strict=True)]
    dtype = DTYPES[CODES[target.storage.dtype.name]]
    arguments = [tensors[1], dtype, tensors[0]] if api == "aclnnCast" else tensors
    assert status(client, api, *arguments) == 0
    result = target.storage.copy()
    client.download(result, buffers[0])
    for tensor, buffer in zip(tensors, buffers, strict=True):
        client.call("aclDestroyTensor", tensor)
        client.call("aclrtFree", buffer)
    return result


CODES = {"float32": "FLOAT", "float16": "FLOAT16", "bfloat16": "BF16", "float64": "DOUBLE", "int8": "INT8",
         "int32": "INT32", "int64": "INT64"}  # fmt: skip
HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
RANDOM = np.random.default_rng(0).integers(0, 1 << 32, 20_000, dtype=np.uint32).view(np.float32)


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_casts_of_half_precision(client: Emulator, half: np.dtype) -> None:
    """Every pattern is widened; what is narrowed lies at, beside and between neighbours, below and beyond them."""
    every = np.arange(1 << 16, dtype=np.uint16).view(half)
    wide = every.astype(np.float32)
    for target in (np.zeros_like(wide), np.zeros(wide.shape)):
        np.testing.assert_array_equal(copied(client, "aclnnCast", dense(target), dense(every)), wide)
    with np.errstate(all="ignore"):
        middle = (wide[:-1] + wide[1:]) / 2
        near = [wide, middle, *(np.nextafter(middle, np.float32(end)) for end in (-np.inf, np.inf)), RANDOM]
        values = np.concatenate(near).astype(np.float32)
        expected = values.astype(half)
    got = copied(client, "aclnnCast", dense(np.zeros(values.shape, half)), dense(values))
    is_nan = np.isnan(values)
    assert np.isnan(got[is_nan]).all()
    np.testing.assert_array_equal(got[~is_nan].view(np.uint16), expected[~is_nan].view(np.uint16))


@pytest.mark.parametrize("source", ["float32", "float64", "int8", "int32", "int64"])
@pytest.mark.parametrize("target", ["float32", "float64", "int8", "int32", "int64"])
def test_casts_of_small_numbers(client: Emulator, source: str, target: str) -> None:
    values = np.array([-128, -3, 0, 1, 127, 5], source)
    got = copied(client, "aclnnCast", dense(np.zeros(6, target)), dense(values))
    np.testing.assert_array_equal(got, values.astype(target))


def test_copies_follow_strides_and_spread(client: Emulator) -> None:
    storage = np.arange(40, dtype=np.float32)
    turned = View(storage, (3, 4), (1, 3), 5)
    for target in (np.zeros((3, 4), np.float32), np.zeros((3, 4))):
        got = copied(client, "aclnnInplaceCopy", dense(target), turned)
        np.testing.assert_array_equal(got, turned.array.reshape(-1))
    row = dense(np.array([7, 8, 9, 10], np.float32))
    into = View(np.full(40, -1, np.float32), (2, 3, 4), (20, 5, 1), 2)
    expected = View(np.full(40, -1, np.float32), (2, 3, 4), (20, 5, 1), 2)
    expected.array[...] = row.array
    np.testing.assert_array_equal(copied(client, "aclnnInplaceCopy", into, row), expected.storage)
    expected.array[...] = 0
    np.testing.assert_array_equal(copied(client, "aclnnInplaceZero", into), expected.storage)
    assert not copied(client, "aclnnInplaceZero", dense(np.ones(9, np.int64))).any()
    same = dense(np.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(copied(client, "aclnnInplaceCopy", dense(np.zeros((3, 4))), same), same.storage)


def test_copies_that_are_refused(client: Emulator) -> None:
    memory = client.malloc(64)
    pair, triple = (client.create_view(dense(np.zeros(n, np.float32)), memory) for n in (2, 3))
    odd = client.create_tensor((2,), DTYPES["COMPLEX64"], None, 0, 2, (2,), memory)
    assert status(client, "aclnnInplaceCopy", pair, triple) == 161002
    assert status(client, "aclnnInplaceCopy", pair, None) == 161001
    assert status(client, "aclnnInplaceCopy", pair, odd) == 161002
    assert status(client, "aclnnCast", pair, DTYPES["INT32"], pair) == 161002
    assert client.phase_one("aclnnInplaceZero", [pair], None, c_void_p()) == 161001
    assert client.shared_object.aclnnInplaceZero(None, c_uint64(0), None, None) == 161001
    for tensor in (pair, triple, odd):
        client.call("aclDestroyTensor", tensor)
    client.call("aclrtFree", memory)
