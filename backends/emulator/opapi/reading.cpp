#include "reading.h"

#include <algorithm>

#include "../ascendcl/defects.h"
#include "../ascendcl/product.h"
#include "geometry.h"

namespace emulator {

size_t Reading::first_spatial_axis(const Shape& shape) const {
    return shape.size() - spatial_rank_ - (channels_last_ ? 1 : 0);
}

std::vector<int64_t> Reading::sizes(const Shape& shape) const {
    const auto begin = shape.begin() + static_cast<int64_t>(first_spatial_axis(shape));
    return {begin, begin + static_cast<int64_t>(spatial_rank_)};
}

std::vector<int64_t> Reading::leading(const Shape& shape) const {
    const size_t axes = shape.size() - spatial_rank_;
    const size_t channel = channels_last_ ? shape.size() - 1 : axes - 1;
    return {axes == 2 ? shape.front() : 1, shape[channel]};
}

// The windowed 2-D APIs read NHWC wherever it is passed. The 3-D forward reads NDHWC, and the adaptive 2-D forward
// NHWC where there is an N; the 3-D and adaptive backwards never look at the tag.
Reading contract_reading(const Call& call) {
    const Family& family = *call.family;
    const aclFormat format = call.tensor(kSelf).format;
    if (family.is_adaptive && call.tensor(kSelf).shape.size() == 3) return {family.spatial_rank, false};
    const bool looks = family.spatial_rank == 3 ? !family.is_backward && !family.is_adaptive
                                                : !family.is_backward || !family.is_adaptive;
    const aclFormat last = family.spatial_rank == 3 ? ACL_FORMAT_NDHWC : ACL_FORMAT_NHWC;
    return {family.spatial_rank, looks && format == last};
}

// A2 and A3 have no channels-last backward and compute the windowed 2-D forwards with their 3-D operator: what the
// checks read as NHWC their kernels take for NCHW.
Reading kernel_reading(const Call& call) {
    const bool is_planar = call.family->spatial_rank == 2 && !call.family->is_adaptive;
    const bool ignores_tag = product().is_220 && (call.family->is_backward || is_planar);
    return {call.family->spatial_rank, !ignores_tag && contract_reading(call).channels_last()};
}

Attributes attributes_of(const Call& call) {
    std::vector<int64_t> kernel = expanded(call, kKernelSize);
    if (seeded(Defect::kernel_narrowed)) {
        for (int64_t& size : kernel) size = static_cast<int32_t>(size);
    }
    return {std::move(kernel), expanded(call, kStride), expanded(call, kPadding), expanded(call, kDilation)};
}

std::vector<int64_t> pooled_shape_unchecked(const Call& call, const Reading& reading) {
    std::vector<int64_t> shape = call.tensor(kSelf).shape;
    const Attributes list = attributes_of(call);
    const size_t first = reading.first_spatial_axis(shape);
    for (size_t axis = 0; axis < list.kernel.size(); ++axis) {
        int64_t& size = shape[first + axis];
        size = pooled_size(size, list.kernel[axis], list.stride[axis], list.padding[axis], list.dilation[axis],
                           call.ceil_mode);
    }
    return shape;
}

std::optional<std::vector<int64_t>> pooled_shape(const Call& call, const Reading& reading, bool clamps) {
    std::vector<int64_t> shape = pooled_shape_unchecked(call, reading);
    const size_t first = reading.first_spatial_axis(shape);
    for (size_t axis = first; axis < first + static_cast<size_t>(call.family->spatial_rank); ++axis) {
        if (shape[axis] <= 0 && !clamps) return {};
        shape[axis] = std::max<int64_t>(shape[axis], clamps);
    }
    return shape;
}

bool uses_bit_mask(const Call& call) {
    if (!call.family->is_mask) return false;
    const std::vector<int64_t> kernel = expanded(call, kKernelSize);
    return !product().is_220 || (kernel[0] == 1 && kernel[1] == 1);
}

std::vector<int64_t> adaptive_sizes(const Call& call) {
    const std::vector<int64_t>& sizes = call.list(kOutputSize);
    if (sizes.empty()) return contract_reading(call).sizes(call.tensor(kSelf).shape);
    if (sizes.size() > 1) return sizes;
    return std::vector<int64_t>(static_cast<size_t>(call.family->spatial_rank), sizes.front());
}

}  // namespace emulator
