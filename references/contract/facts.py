"""Facts about a call without null pointers: axes, windows, pooled shapes, tags.

The library computes in signed 64-bit integers that wrap. The wrapped values decide its refusals of huge sizes
(observed), so these helpers wrap too. `poolproof.references.geometry` does not and must not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from poolproof.references.contract.call import ContractCall, TensorArgument, wrapped
from poolproof.references.contract.clause import ALWAYS_ON_BLOCKS
from poolproof.references.contract.vocabulary import MASK_APIS, PRIVATE_TAG_RANKS, PRIVATE_TAGS, TAG_RANKS
from poolproof.references.geometry import expand
from poolproof.references.indices import MASK
from poolproof.references.products import Product

INT32_MAX = 2**31 - 1

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Axes:
    """A tensor's shape by the meaning of its axes."""

    batch: Shape
    channels: int
    spatial: Shape
    channels_last: bool

    def joined(self, spatial: Shape) -> Shape:
        if self.channels_last:
            return (*self.batch, *spatial, self.channels)
        return (*self.batch, self.channels, *spatial)


def axes(shape: Shape, spatial_rank: int, channels_last: bool = False) -> Axes:
    """Split ([N,] C, *spatial), or ([N,] *spatial, C)."""
    batch, rest = shape[: -spatial_rank - 1], shape[-spatial_rank - 1 :]
    if channels_last:
        return Axes(batch, rest[-1], rest[:-1], channels_last)
    return Axes(batch, rest[0], rest[1:], channels_last)


def self_axes(call: ContractCall) -> Axes:
    """Split ``self`` as a windowed API's checks do: the 2-D ones honour NHWC, the 3-D forward NDHWC."""
    tensor, signature = call.tensor("self"), call.signature
    honoured = "NHWC" if signature.spatial_rank == 2 else None if signature.operator.is_backward else "NDHWC"
    return axes(tensor.shape, signature.spatial_rank, tensor.format == honoured)


def attribute(call: ContractCall, name: str) -> Shape:
    """Expand a windowed API's list to one value per spatial axis; an empty stride is the kernel size."""
    rank = call.signature.spatial_rank
    if name == "stride" and not call.attribute("stride"):
        name = "kernelSize"
    return expand(call.attribute(name), rank)


def pooled_spatial(call: ContractCall, spatial: Shape) -> Shape:
    """Count the windows along each axis, in wrapping arithmetic."""
    kernel, stride, padding, dilation = (attribute(call, name) for name in call.signature.lists)
    windows = zip(spatial, kernel, stride, padding, dilation, strict=True)
    return tuple(_pooled_length(*axis, bool(call.ceil_mode)) for axis in windows)


def pooled_shape(call: ContractCall) -> Shape:
    read = self_axes(call)
    return read.joined(pooled_spatial(call, read.spatial))


def mask_shape(call: ContractCall) -> Shape:
    read = self_axes(call)
    windows = pooled_spatial(call, read.spatial)
    return MASK.tensor_shape((*read.batch, read.channels), windows, prod(attribute(call, "kernelSize")))


def adaptive_shape(call: ContractCall) -> Shape:
    """Compute the shape of an adaptive forward's outputs; only rank 4 with the tag NHWC keeps channels last.

    Without N, channels come first under every tag (``aclnn_adaptive_max_pool2d.cpp:410-416``).
    """
    read = _adaptive_axes(call)
    return read.joined(expand(call.attribute("outputSize"), call.signature.spatial_rank, read.spatial))


def divides(call: ContractCall) -> bool:
    """Check whether an adaptive pool's numbers of windows divide self's lengths, so that all windows have one size."""
    rank = call.signature.spatial_rank
    if not call.signature.lists:
        lengths, windows = call.tensor("self").shape[-rank:], call.tensor("gradOutput").shape[-rank:]
    else:
        lengths = _adaptive_axes(call).spatial
        windows = expand(call.attribute("outputSize"), rank, lengths)
    return all(length % count == 0 for length, count in zip(lengths, windows, strict=True))


def element_count(shape: Shape) -> int:
    """Count elements; return the least int64 if the product overflows, so that two such shapes compare equal.

    Source: metadef ``shape.h:111-118``.
    """
    count = 1
    for length in shape:
        count *= length
        if wrapped(count) != count:
            return -(2**63)
    return count


def nothing_pooled(call: ContractCall) -> bool:
    return min(pooled_spatial(call, self_axes(call).spatial)) <= 0


def has_zero_length(call: ContractCall) -> bool:
    read = self_axes(call)
    return 0 in (read.channels, *read.spatial)


def misreads_channels_last(call: ContractCall, product: Product) -> bool:
    """Check for tensors tagged NHWC that do not fit together when read as NCHW, as A2 and A3 compute them."""
    computed_as_nchw = call.tensor("self").format == "NHWC" and not runs_on_blocks(call, product)
    read = axes(call.tensor("self").shape, call.signature.spatial_rank)
    pooled = call.tensor(call.signature.pooled).shape
    return computed_as_nchw and pooled != read.joined(pooled_spatial(call, read.spatial))


def plane(call: ContractCall) -> int:
    """Count the cells of one plane of self, wrapped to 64 bits."""
    return wrapped(prod(call.tensor("self").shape[-call.signature.spatial_rank :]))


def tag_fits(tensor: TensorArgument) -> bool:
    """Check whether the format tag's own rank, plain or private, is the tensor's."""
    return {**TAG_RANKS, **PRIVATE_TAG_RANKS}.get(tensor.format) in (None, tensor.rank)


def leaves_storage(tensor: TensorArgument) -> bool:
    """Check whether a view that is not contiguous exceeds its storage; the library skips contiguous ones.

    Source: ops-math ``contiguous.cpp:602-609`` and opbase ``tensor_view_utils.cpp:50-71``.
    """
    if _is_contiguous(tensor):
        return False
    reach = [wrapped((length - 1) * stride) for length, stride in zip(tensor.shape, tensor.strides, strict=True)]
    first = wrapped(tensor.offset + sum(min(step, 0) for step in reach))
    last = wrapped(tensor.offset + sum(max(step, 0) for step in reach))
    return first < 0 or wrapped(last + 1) > element_count(tensor.storage)


def same_or_single(first: Shape, second: Shape) -> bool:
    """Compare shapes of outputs as the library does: equal, or one element each."""
    return first == second or prod(first) == prod(second) == 1


def runs_on_blocks(call: ContractCall, product: Product) -> bool:
    """Check whether a mask API goes through NC1HWC0: for 1x1 kernels, and on some products for every kernel."""
    if call.api not in MASK_APIS:
        return False
    return product.value_in(ALWAYS_ON_BLOCKS) or set(attribute(call, "kernelSize")) == {1}


def _is_contiguous(tensor: TensorArgument) -> bool:
    """Check as the library does: tensors with a private tag, and of at most one element, are always contiguous."""
    if tensor.format in PRIVATE_TAGS or element_count(tensor.shape) in (0, 1):
        return True
    dense = (wrapped(prod(tensor.shape[axis + 1 :])) for axis in range(tensor.rank))
    steps = zip(tensor.shape, tensor.strides, dense, strict=True)
    return all(length == 1 or wrapped(stride) == expected for length, stride, expected in steps)


def _adaptive_axes(call: ContractCall) -> Axes:
    tensor, rank = call.tensor("self"), call.signature.spatial_rank
    return axes(tensor.shape, rank, tensor.rank == 4 and rank == 2 and tensor.format == "NHWC")


def _pooled_length(length: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Compute `geometry.pooled_size` in wrapping arithmetic."""
    span = wrapped(length + 2 * padding - dilation * (kernel - 1) - 1 + (stride - 1 if ceil_mode else 0))
    windows = span // stride + 1
    if ceil_mode and wrapped((windows - 1) * stride) >= wrapped(length + padding):
        windows -= 1
    return windows
