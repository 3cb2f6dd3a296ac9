#include "slips.h"

#include <algorithm>
#include <limits>
#include <string>

#include "../ascendcl/text.h"

namespace emulator {
namespace {

template <class Subject, class Value>
struct Slip {
    Defect defect;
    const char* api;
    Subject subject;
    Value value;
};

constexpr const char* k3dBackward = "aclnnMaxPool3dWithArgmaxBackward";
constexpr const char* k2dBackward = "aclnnMaxPool2dWithIndicesBackward";
constexpr const char* kMaskBackward = "aclnnMaxPool2dWithMaskBackward";
constexpr const char* kAdaptive3dBackward = "aclnnAdaptiveMaxPool3dBackward";
constexpr const char* k3dForward = "aclnnMaxPool3dWithArgmax";
constexpr const char* k2dForward = "aclnnMaxPool2dWithIndices";
constexpr const char* kAdaptive2dForward = "aclnnAdaptiveMaxPool2d";

constexpr Slip<Role, size_t> kRanks[] = {
    {Defect::rank_two_indices_accepted, k2dBackward, kIndices, 2},
    {Defect::rank_without_channels_accepted, kAdaptive3dBackward, kSelf, 3},
    {Defect::rank_without_channels_accepted, kAdaptive3dBackward, kGradInput, 3},
    {Defect::rank_without_channels_accepted, kAdaptive3dBackward, kGradOutput, 3},
    {Defect::rank_without_channels_accepted, kAdaptive3dBackward, kIndices, 3},
};

constexpr Slip<Role, aclDataType> kDtypes[] = {
    {Defect::uint32_indices_accepted, k3dBackward, kIndices, ACL_UINT32},
    {Defect::bfloat16_accepted_2d, k2dBackward, kSelf, ACL_BF16},
    {Defect::complex64_accepted, k3dForward, kSelf, ACL_COMPLEX64},
};

constexpr Slip<ListRole, size_t> kLengths[] = {
    {Defect::padding_of_two_accepted_3d, k3dBackward, kPadding, 2},
    {Defect::stride_of_four_accepted_2d, kMaskBackward, kStride, 4},
    {Defect::empty_dilation_accepted, k2dForward, kDilation, 0},
};

struct ListEntry {
    ListRole list;
    size_t entry;
};

bool operator==(const ListEntry& first, const ListEntry& second) {
    return first.list == second.list && first.entry == second.entry;
}

constexpr Slip<ListEntry, int64_t> kLeast[] = {
    {Defect::zero_width_stride_accepted, k3dBackward, {kStride, 2}, 0},
    {Defect::first_padding_unchecked, k3dBackward, {kPadding, 0}, std::numeric_limits<int64_t>::min()},
    {Defect::zero_dilation_accepted_2d, k2dBackward, {kDilation, 0}, 0},
    {Defect::zero_dilation_accepted_2d, k2dBackward, {kDilation, 1}, 0},
    {Defect::negative_output_width_accepted, kAdaptive2dForward, {kOutputSize, 1}, -1},
};

template <class Slips, class Subject>
auto slip_of(const Slips& slips, const Call& call, const Subject& subject) {
    return std::find_if(std::begin(slips), std::end(slips), [&](const auto& slip) {
        return seeded(slip.defect) && std::string(slip.api) == call.family->name && slip.subject == subject;
    });
}

template <class Slips, class Subject, class Value>
bool slips(const Slips& table, const Call& call, const Subject& subject, Value value) {
    if (!has_defects) return false;
    const auto slip = slip_of(table, call, subject);
    return slip != std::end(table) && slip->value == value;
}

// The axes on which a comparison of shapes does not look, counted from the spatial ones: -1 is C, 0 the first.
struct BlindAxis {
    Defect defect;
    Role role;
    Role as;
    size_t spatial_rank;
    int axis;
};

constexpr BlindAxis kBlindAxes[] = {
    {Defect::indices_depth_unchecked, kGradOutput, kIndices, 3, 0},
    {Defect::result_channels_unchecked, kSelf, kGradInput, 3, -1},
};

bool differ_on_alone(const std::vector<int64_t>& first, const std::vector<int64_t>& second, size_t axis) {
    if (first.size() != second.size()) return false;
    for (size_t i = 0; i < first.size(); ++i) {
        if (i != axis && first[i] != second[i]) return false;
    }
    return true;
}

bool is_known(aclDataType dtype) {
    constexpr aclDataType kKnown[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE, ACL_INT8, ACL_INT32, ACL_INT64};
    return std::find(std::begin(kKnown), std::end(kKnown), dtype) != std::end(kKnown);
}

bool holds_less(const Call& call, ListRole list, int64_t least) {
    const std::vector<int64_t>& values = call.list(list);
    return std::any_of(values.begin(), values.end(), [least](int64_t value) { return value < least; });
}

std::string unfit_shapes(const Call& call) {
    const bool has_flat_indices = !call.family->is_mask;
    if (call.tensor(kGradInput).shape != call.tensor(kSelf).shape) return "gradInput and self differ in shape";
    if (has_flat_indices && call.tensor(kIndices).shape != call.tensor(kGradOutput).shape)
        return "indices and gradOutput differ in shape";
    return "";
}

std::string unfit_lists(const Call& call) {
    if (holds_less(call, kStride, 1)) return "a stride is not positive";
    if (holds_less(call, kPadding, 0)) return "a padding is negative";
    return holds_less(call, kDilation, 1) ? "a dilation is not positive" : "";
}

}  // namespace

bool slips_on_rank(const Call& call, Role role, size_t rank) { return slips(kRanks, call, role, rank); }

bool slips_on_dtype(const Call& call, Role role, aclDataType dtype) { return slips(kDtypes, call, role, dtype); }

bool slips_on_length(const Call& call, ListRole list, size_t length) { return slips(kLengths, call, list, length); }

bool slips_on_shape(const Call& call, Role role, Role as) {
    const std::vector<int64_t>& shape = call.tensor(role).shape;
    const auto slipped = [&](const BlindAxis& blind) {
        const size_t first = shape.size() - blind.spatial_rank;
        return seeded(blind.defect) && blind.role == role && blind.as == as &&
               static_cast<int>(blind.spatial_rank) == call.family->spatial_rank &&
               differ_on_alone(shape, call.tensor(as).shape, first + static_cast<size_t>(blind.axis));
    };
    return has_defects && std::any_of(std::begin(kBlindAxes), std::end(kBlindAxes), slipped);
}

int64_t slipped_least(const Call& call, ListRole list, size_t entry, int64_t least) {
    if (!has_defects) return least;
    const auto slip = slip_of(kLeast, call, ListEntry{list, entry});
    return slip == std::end(kLeast) ? least : slip->value;
}

std::string unfit_for_kernels(const Call& call) {
    const size_t rank = call.tensor(kSelf).shape.size();
    const auto planar = static_cast<size_t>(call.family->spatial_rank);
    if (rank != planar + 1 && rank != planar + 2) return text("self has rank ", rank);
    for (const Role role : call.roles()) {
        if (!is_known(call.tensor(role).dtype)) return text("no kernel takes ", name_of(call.tensor(role).dtype));
    }
    if (!call.family->is_backward) return "";
    const std::string why = unfit_shapes(call);
    return why.empty() && !call.family->is_adaptive ? unfit_lists(call) : why;
}

}  // namespace emulator
