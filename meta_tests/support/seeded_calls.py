"""For each seeded defect of the argument checks one call that shows it, and what an emulator answers to a call."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_bool, c_uint64, c_void_p
from dataclasses import replace
from typing import Any

from contract_calls import AD3, MASK, MP2, MP3, made
from emulator_driver import DTYPES, FORMATS, Emulator
from poolproof.references.contract.call import ContractCall, TensorArgument

FORWARD_3D = "aclnnMaxPool3dWithArgmax"
FORWARD_2D = "aclnnMaxPool2dWithIndices"
ADAPTIVE_FORWARD_2D = "aclnnAdaptiveMaxPool2d"
ADAPTIVE_FORWARD_3D = "aclnnAdaptiveMaxPool3d"

BLOCK = 1 << 16
"""Bytes of device memory behind every tensor: more than any call here describes."""


def tensor_changed(api: str, name: str, **fields: Any) -> ContractCall:
    """The base call with one tensor made differently: its shape, dtype or format."""
    call = made(api)
    tensor = call.tensor(name)
    shape = fields.pop("shape", tensor.shape)
    return call.with_tensors({name: replace(tensor.reshaped(shape), **fields)})


def of_rank_three(call: ContractCall) -> ContractCall:
    """Every tensor without its first two axes."""
    return call.with_tensors({name: call.tensor(name).reshaped(call.tensor(name).shape[2:]) for name in call.tensors})


def of_output_sizes(*sizes: int) -> ContractCall:
    return made(ADAPTIVE_FORWARD_3D, output_size=(4, 4, 4)).with_lists({"outputSize": sizes})


def null_list_and_wrong_dtype() -> ContractCall:
    return tensor_changed(MP2, "gradOutput", dtype="FLOAT16").with_lists({"stride": None})


def empty_and_wrong_dtype() -> ContractCall:
    """Without a batch there is nothing to do, and that is looked at after the dtypes."""
    call = made(MP2, shape=(0, 3, 6, 7))
    return call.with_tensors({"gradOutput": replace(call.tensor("gradOutput"), dtype="FLOAT16")})


SEEDED_CALLS: dict[str, Callable[[], ContractCall]] = {
    "rank_two_indices_accepted": lambda: tensor_changed(MP2, "indices", shape=(4, 4)),
    "rank_without_channels_accepted": lambda: of_rank_three(made(AD3)),
    "uint32_indices_accepted": lambda: made(MP3, index_dtype="UINT32"),
    "bfloat16_accepted_2d": lambda: made(MP2, dtype="BF16"),
    "complex64_accepted": lambda: made(FORWARD_3D, dtype="COMPLEX64"),
    "float_gradient_of_half_accepted": lambda: made(MP3, dtype="FLOAT16").with_tensors(
        {"gradOutput": made(MP3).tensor("gradOutput")}
    ),
    "padding_of_two_accepted_3d": lambda: made(MP3).with_lists({"padding": (1, 1)}),
    "stride_of_four_accepted_2d": lambda: made(MASK).with_lists({"stride": (2, 2, 1, 1)}),
    "empty_dilation_accepted": lambda: made(FORWARD_2D).with_lists({"dilation": ()}),
    "output_size_of_one_accepted": lambda: of_output_sizes(4),
    "zero_width_stride_accepted": lambda: made(MP3).with_lists({"stride": (2, 2, 0)}),
    "first_padding_unchecked": lambda: made(MP3).with_lists({"padding": (-1, 1, 0)}),
    "zero_dilation_accepted_2d": lambda: made(MP2, dilation=(1, 0)),
    "negative_output_width_accepted": lambda: made(ADAPTIVE_FORWARD_2D).with_lists({"outputSize": (4, -1)}),
    "kernel_narrowed": lambda: made(FORWARD_2D).with_lists({"kernelSize": (3, 2**32 + 2)}),
    "kernel_beyond_input_accepted": lambda: made(MP2, shape=(2, 3, 6, 3)).with_lists({"kernelSize": (3, 2**63 - 1)}),
    "new_private_tag_accepted": lambda: made(MP3, tag="FRACTAL_NZ_C0_16"),
    "channels_last_tag_refused": lambda: made(ADAPTIVE_FORWARD_2D, tag="NHWC", output_size=(3, 2)),
    "mixed_tags_as_inner": lambda: tensor_changed(MP2, "gradOutput", format="NHWC"),
    "indices_depth_unchecked": lambda: tensor_changed(AD3, "indices", shape=(2, 3, 1, 4, 3)),
    "result_channels_unchecked": lambda: tensor_changed(MP3, "gradInput", shape=(2, 2, 5, 6, 7)),
    "null_out_as_invalid": lambda: made(FORWARD_2D).with_tensors({"out": None}),
    "null_dilation_accepted": lambda: made(MP2).with_lists({"dilation": None}),
    "null_lists_checked_late": null_list_and_wrong_dtype,
    "dtypes_checked_late": empty_and_wrong_dtype,
}
"""A call that its defect answers wrongly on its home product, and that is answered rightly without it."""


def answers(emulator: Emulator, call: ContractCall) -> tuple[int, int | None]:
    """What phase one returns, and phase two with its synchronisation, None where phase one refused."""
    block = emulator.malloc(BLOCK)
    emulator.call("aclrtMemset", block, BLOCK, 0, BLOCK)
    tensors = {name: tensor and _created(emulator, tensor, block) for name, tensor in call.tensors.items()}
    lists = {name: None if values is None else emulator.create_list(values) for name, values in call.lists.items()}
    given = {**tensors, **lists, "ceilMode": c_bool(bool(call.ceil_mode))}
    size, executor = c_uint64(), c_void_p()
    arguments = [given[argument.name] for argument in call.signature.arguments]
    phase_one = emulator.phase_one(call.api, arguments, size, executor)
    phase_two = _second_phase(emulator, call.api, size.value, executor) if phase_one == 0 else None
    for tensor in tensors.values():
        emulator.call("aclDestroyTensor", tensor)
    for values in lists.values():
        emulator.call("aclDestroyIntArray", values)
    emulator.call("aclrtFree", block)
    return phase_one, phase_two


def _created(emulator: Emulator, tensor: TensorArgument, block: c_void_p) -> c_void_p:
    dtype, tag = DTYPES[tensor.dtype], FORMATS[tensor.format]
    return emulator.create_tensor(tensor.shape, dtype, tensor.strides, tensor.offset, tag, tensor.storage, block)


def _second_phase(emulator: Emulator, api: str, size: int, executor: c_void_p) -> int:
    workspace = emulator.malloc(size) if size else None
    launched = emulator.phase_two(api, workspace, size, executor, emulator.stream)
    synchronised = int(emulator.aclrtSynchronizeStream(emulator.stream))
    if workspace:
        emulator.call("aclrtFree", workspace)
    return launched or synchronised
