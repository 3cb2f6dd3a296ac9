// How the tensors and lists of a call are read: which axes are spatial, what sizes they should have.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "call.h"

namespace emulator {

// Which axis is which: batch (if any), channels, then D, H, W, or channels last.
class Reading {
  public:
    using Shape = std::vector<int64_t>;

    Reading(int spatial_rank, bool channels_last)
        : spatial_rank_(static_cast<size_t>(spatial_rank)), channels_last_(channels_last) {}

    bool channels_last() const { return channels_last_; }
    size_t first_spatial_axis(const Shape& shape) const;
    std::vector<int64_t> sizes(const Shape& shape) const;
    // {batch, channels}; a shape without batch axis has a batch of one.
    std::vector<int64_t> leading(const Shape& shape) const;

  private:
    size_t spatial_rank_;
    bool channels_last_;
};

// As the checks of phase one read the tensors: by the tag.
Reading contract_reading(const Call& call);
// As the kernels then read them.
Reading kernel_reading(const Call& call);

// Attribute lists with one value per spatial axis.
struct Attributes {
    std::vector<int64_t> kernel;
    std::vector<int64_t> stride;
    std::vector<int64_t> padding;
    std::vector<int64_t> dilation;
};
Attributes attributes_of(const Call& call);

// Shape that a windowed pool gives self.
std::vector<int64_t> pooled_shape_unchecked(const Call& call, const Reading& reading);
// The same, but nothing where a length would not be positive, unless it is then taken for 1.
std::optional<std::vector<int64_t>> pooled_shape(const Call& call, const Reading& reading, bool clamps = false);

// Output lengths of an adaptive forward: a single value is repeated, an empty list keeps the input's lengths.
// Whether a mask call takes the route through a bit mask in blocked layout: kernels of one cell, and every kernel on
// the older products. Its bit order is not published.
bool uses_bit_mask(const Call& call);

std::vector<int64_t> adaptive_sizes(const Call& call);

}  // namespace emulator
