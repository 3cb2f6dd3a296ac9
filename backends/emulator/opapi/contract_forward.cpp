// Contracts of the five forwards, after the library's host code as read and as measured on it.
#include <algorithm>
#include <limits>

#include "../ascendcl/defects.h"
#include "../ascendcl/errors.h"
#include "contract.h"
#include "geometry.h"
#include "reading.h"

namespace emulator {
namespace {

using status::kInnerNullPointer;
using status::kParamInvalid;

const std::vector<Role> kForwardData = {kSelf, kOut};

Dtypes floats_mask_forward(const ProductFacts& facts) {
    if (facts.product == Product::k910) return {ACL_FLOAT, ACL_FLOAT16};
    return facts.product == Product::k310P ? Dtypes{ACL_FLOAT} : current_floats(facts);
}

Dtypes floats_adaptive_2d(const ProductFacts& facts) {
    return is_current(facts) ? Dtypes{ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE}
                             : Dtypes{ACL_FLOAT, ACL_FLOAT16, ACL_DOUBLE};
}

Dtypes indices_int64(const ProductFacts&) { return {ACL_INT64}; }
bool on_950_with_int64(const Call& call) { return product().is_950 && call.tensor(kIndices).dtype == ACL_INT64; }
// On the 950 the 3-D forward names its formats; elsewhere it takes all, private ones too.
Rule format_is_named_950() {
    return refuse("format", kParamInvalid, [](const Call& call) -> Violation {
        const aclFormat format = call.tensor(kSelf).format;
        const bool named = format == ACL_FORMAT_NDHWC || format == ACL_FORMAT_NCDHW || format == ACL_FORMAT_NCHW ||
                           format == ACL_FORMAT_ND;
        return named || !product().is_950 ? Violation() : text("self may not be tagged ", name_of(format));
    });
}

std::vector<aclFormat> formats_adaptive_3d(const ProductFacts& facts) {
    if (facts.is_950) return {ACL_FORMAT_NCDHW, ACL_FORMAT_NCHW, ACL_FORMAT_ND};
    return {ACL_FORMAT_NCDHW, ACL_FORMAT_NCHW};
}

Rule output_has_pooled_shape(Role role) {
    return refuse("shape.pooled", kParamInvalid, [role](const Call& call) -> Violation {
        const auto expected = pooled_shape(call, contract_reading(call));
        if (!expected) return std::string("the pooled size is not positive");
        if (call.tensor(role).shape == *expected) return {};
        return text(name_of(role), " has shape ", call.tensor(role).shape, " but the pooled shape is ", *expected);
    });
}

// Layout of the mask: one row of bytes per kernel position (mask page of the library).
Rule mask_has_its_shape() {
    return refuse("shape.mask", kParamInvalid, [](const Call& call) -> Violation {
        const Reading reading = contract_reading(call);
        const std::vector<int64_t> kernel = expanded(call, kKernelSize);
        const std::vector<int64_t>& out = call.tensor(kOut).shape;
        std::vector<int64_t> expected = reading.leading(out);
        if (out.size() == 3) expected.erase(expected.begin());
        expected.push_back(kernel[0] * kernel[1]);
        expected.push_back((ceil_divide(element_count(reading.sizes(out)), 16) + 1) * 2 * 16);
        if (call.tensor(kIndices).shape == expected) return {};
        return text("the mask has shape ", call.tensor(kIndices).shape, " instead of ", expected);
    });
}

// Where a tensor tagged NHWC is computed as NCHW, the result of that has to fit into the output too.
Rule fits_as_computed(int status) {
    return refuse("format.channels_last", status, [](const Call& call) -> Violation {
        const Reading computed = kernel_reading(call);
        if (uses_bit_mask(call) || computed.channels_last() == contract_reading(call).channels_last()) return {};
        const auto expected = pooled_shape(call, computed);
        if (expected && call.tensor(kOut).shape == *expected) return {};
        return text(name_of(call.tensor(kSelf).format), " is computed as NCHW, which out does not fit");
    });
}

bool on_950_or_blocks(const Call& call) { return product().is_950 || uses_bit_mask(call); }

Rule result_tag_fits_rank() {
    return refuse("format.rank", kInnerNullPointer, [](const Call& call) -> Violation {
        return tag_misfits(call.tensor(kSelf)) ? tag_misfit(call) : Violation();
    });
}

// Shapes are inferred for these tags alone at rank 4; rank 3 is tagged anew before.
Rule tag_is_inferred_950() {
    return refuse("format.inferred", kInnerNullPointer, [](const Call& call) -> Violation {
        const aclTensor& self = call.tensor(kSelf);
        const bool known =
            self.format == ACL_FORMAT_ND || self.format == ACL_FORMAT_NCHW || self.format == ACL_FORMAT_NHWC;
        return known || !product().is_950 || self.shape.size() != 4 ? Violation() : tag_misfit(call);
    });
}

// The result is copied into the indices, whose tag it has to have unless it is ND; on A2 and A3 one without N is
// tagged anew on the way.
Rule indices_carry_result_tag() {
    return refuse("format.indices", kInnerNullPointer, [](const Call& call) -> Violation {
        const aclTensor& out = call.tensor(kOut);
        const aclTensor& indices = call.tensor(kIndices);
        const bool retagged = !product().is_950 && out.shape.size() == 3;
        const bool alike = out.format == ACL_FORMAT_ND || out.format == indices.format;
        const bool fits = retagged ? !tag_misfits(indices) : alike;
        return fits ? Violation() : text("indices may not be tagged ", name_of(indices.format));
    });
}

Rule forward_tag_has_blocks() {
    return refuse("format.blocks", kInnerNullPointer, [](const Call& call) -> Violation {
        const aclTensor& self = call.tensor(kSelf);
        const bool fits = self.shape.size() == 4 ? self.format == ACL_FORMAT_NCHW : !tag_misfits(self);
        return fits || !uses_bit_mask(call) ? Violation() : tag_misfit(call);
    });
}

// The library compares a result with its tensor so: equal shapes, or one element each.
bool same_or_single(const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
    return first == second || (shape_size(first) == 1 && shape_size(second) == 1);
}

// Nobody asks whether a window fits: a negative length is as good as another.
Rule result_has_pooled_shape(Role role) {
    return refuse("shape.pooled", kParamInvalid, [role](const Call& call) -> Violation {
        const std::vector<int64_t> expected = pooled_shape_unchecked(call, contract_reading(call));
        if (same_or_single(call.tensor(role).shape, expected)) return {};
        return text(name_of(role), " has shape ", call.tensor(role).shape, ", which is not the pooled shape");
    });
}

bool windows_are_alike(const Call& call) {
    const std::vector<int64_t> in = contract_reading(call).sizes(call.tensor(kSelf).shape);
    const std::vector<int64_t> out = adaptive_sizes(call);
    for (size_t axis = 0; axis < in.size(); ++axis) {
        if (in[axis] % out[axis] != 0) return false;
    }
    return true;
}

std::vector<int64_t> adaptive_shape(const Call& call) {
    const std::vector<int64_t> sizes = adaptive_sizes(call);
    std::vector<int64_t> shape = call.tensor(kSelf).shape;
    const size_t first = contract_reading(call).first_spatial_axis(shape);
    std::copy(sizes.begin(), sizes.end(), shape.begin() + static_cast<int64_t>(first));
    return shape;
}

Rule only_first_axis_empty() {
    return refuse("empty.inner", kParamInvalid, [](const Call& call) -> Violation {
        const std::vector<int64_t>& shape = call.tensor(kSelf).shape;
        const bool fits = *std::min_element(shape.begin() + 1, shape.end()) > 0;
        return fits ? Violation() : text("self has shape ", shape, ": only its first axis may be 0");
    });
}

// The path of the older products, and of DOUBLE everywhere.
bool takes_general_path(const Call& call) {
    return !is_current(product()) || call.tensor(kSelf).dtype == ACL_DOUBLE;
}

// Neither the general path nor a windowed kernel: on the 950 that is an operator for 2-D tensors.
bool takes_own_operator_950(const Call& call) {
    return product().is_950 && !takes_general_path(call) && !windows_are_alike(call);
}

// NHWC is turned into NCHW by a list of four axes. On the 950 the library dies of it; the status is that of a check.
Rule unbatched_is_not_channels_last() {
    return refuse("format.unbatched", kInnerNullPointer, [](const Call& call) -> Violation {
        const aclTensor& self = call.tensor(kSelf);
        const bool is_permuted = self.shape.size() == 3 && self.format == ACL_FORMAT_NHWC;
        return is_permuted && !takes_general_path(call) ? tag_misfit(call) : Violation();
    });
}

Rule general_path_formats() {
    return refuse("format", kInnerNullPointer, [](const Call& call) -> Violation {
        const bool looks = takes_general_path(call) && call.tensor(kSelf).shape.size() == 4;
        const aclFormat format = call.tensor(kSelf).format;
        const bool known = format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NHWC;
        const bool forgets = seeded(Defect::channels_last_tag_refused) && format == ACL_FORMAT_NHWC;
        return (looks && !known) || forgets ? text("self may not be tagged ", name_of(format)) : Violation();
    });
}

bool has_no_plane_limit(const Call& call) {
    return !product().is_220 || takes_general_path(call) || !windows_are_alike(call);
}

Rule alike_windows_within_int32() {
    return refuse("plane.int32", kInnerNullPointer, [](const Call& call) -> Violation {
        if (has_no_plane_limit(call) || seeded(Defect::plane_limit_missing)) return {};
        const int64_t plane = element_count(contract_reading(call).sizes(call.tensor(kSelf).shape));
        const bool fits = plane <= std::numeric_limits<int32_t>::max();
        return fits ? Violation() : text("a plane of ", plane, " passes int32");
    });
}

// The general path gives results without N the outputs' tags, and the windowed kernels all of theirs.
Rule retagged_outputs_fit_rank() {
    return refuse("format.rank", kInnerNullPointer, [](const Call& call) -> Violation {
        const bool unbatched = call.tensor(kSelf).shape.size() == 3;
        const bool is_retagged = takes_general_path(call) ? unbatched : windows_are_alike(call);
        for (const Role role : {kOut, kIndices}) {
            if (is_retagged && tag_misfits(call.tensor(role))) return tag_misfit(call);
        }
        return {};
    });
}

// The shape that the library gives its result: the 950's own operator takes the second and third axes of all but
// NCHW for the pooled ones, after NHWC has become NCHW.
std::vector<int64_t> computed_shape_2d(const Call& call) {
    const aclTensor& self = call.tensor(kSelf);
    const bool is_misread = self.shape.size() == 4 && self.format != ACL_FORMAT_NCHW;
    if (!is_misread || !takes_own_operator_950(call)) return adaptive_shape(call);
    const std::vector<int64_t>& sizes = call.list(kOutputSize);
    return {self.shape[0], sizes[0], sizes[1], self.shape[self.format == ACL_FORMAT_NHWC ? 2 : 3]};
}

// On the general path shapes are compared; elsewhere the result is reshaped into the output, and only counts are.
Rule output_takes_result() {
    return refuse("shape.count", kInnerNullPointer, [](const Call& call) -> Violation {
        const std::vector<int64_t> result = computed_shape_2d(call);
        const std::vector<int64_t>& out = call.tensor(kOut).shape;
        const bool fits = takes_general_path(call) ? same_or_single(out, result) : shape_size(out) == shape_size(result);
        return fits ? Violation() : text("out has shape ", out, ", which does not take ", result);
    });
}

// What is copied into the outputs has to have their tags, unless it is ND.
Rule outputs_carry_result_tag_2d() {
    return refuse("format.outputs", kInnerNullPointer, [](const Call& call) -> Violation {
        const aclTensor& self = call.tensor(kSelf);
        const bool batched = self.shape.size() == 4;
        const bool keeps_tag = takes_general_path(call)
                                   ? batched
                                   : call.tensor(kOut).shape.size() == 4 && takes_own_operator_950(call);
        const aclFormat tag = batched ? self.format : ACL_FORMAT_NCHW;
        if (!keeps_tag || tag == ACL_FORMAT_ND) return {};
        for (const Role role : {kOut, kIndices}) {
            if (call.tensor(role).format != tag) return text("a result tagged ", name_of(tag), " does not fit");
        }
        return {};
    });
}

// A rank-5 call whose windows overlap is the only one whose results keep the tags that they come with.
bool is_retagged_3d(const Call& call) { return call.tensor(kSelf).shape.size() == 4 || windows_are_alike(call); }

// A result has the rank of self, whatever that of its output.
Rule output_tag_fits_self(Role role) {
    return refuse("format.rank", kInnerNullPointer, [role](const Call& call) -> Violation {
        aclTensor result = call.tensor(kSelf);
        result.format = call.tensor(role).format;
        return is_retagged_3d(call) && tag_misfits(result) ? tag_misfit(call) : Violation();
    });
}

Rule adaptive_result_has_shape(Role role) {
    return refuse("shape.result", kParamInvalid, [role](const Call& call) -> Violation {
        const std::vector<int64_t> expected = adaptive_shape(call);
        if (same_or_single(call.tensor(role).shape, expected)) return {};
        return text(name_of(role), " has shape ", call.tensor(role).shape, " instead of ", expected);
    });
}

Rule indices_carry_own_tag_3d() {
    return refuse("format.indices", kInnerNullPointer, [](const Call& call) -> Violation {
        const aclFormat tag = call.tensor(kSelf).format;
        const bool fits = tag == ACL_FORMAT_ND || tag == call.tensor(kIndices).format;
        return fits || is_retagged_3d(call) ? Violation() : text("indices are not tagged ", name_of(tag));
    });
}

Rule output_size_length_3d() {
    return refuse("list.length", kParamInvalid, [](const Call& call) -> Violation {
        const size_t length = call.list(kOutputSize).size();
        const bool takes_one = product().is_950 || seeded(Defect::output_size_of_one_accepted);
        const bool fits = length == 3 || (product().is_950 && length == 0) || (takes_one && length == 1);
        return fits ? Violation() : text("outputSize has ", length, " values");
    });
}

// An empty outputSize keeps the lengths of self, which are counted from the front.
std::vector<int64_t> spatial_lengths_3d(const Call& call, size_t leading) {
    if (!call.list(kOutputSize).empty()) return adaptive_sizes(call);
    const std::vector<int64_t>& self = call.tensor(kSelf).shape;
    const size_t end = std::min(self.size(), leading + 3);
    return {self.begin() + static_cast<int64_t>(leading), self.begin() + static_cast<int64_t>(end)};
}

// Indices are compared along as many axes as outputSize has values.
Rule adaptive_shapes_3d() {
    return refuse("shape.adaptive", kParamInvalid, [](const Call& call) -> Violation {
        const std::vector<int64_t>& self = call.tensor(kSelf).shape;
        const std::vector<int64_t>& out = call.tensor(kOut).shape;
        const std::vector<int64_t>& indices = call.tensor(kIndices).shape;
        const size_t leading = out.size() - 3;
        const auto spatial = out.begin() + static_cast<int64_t>(leading);
        const bool fits = std::equal(out.begin(), spatial, self.begin()) &&
                          std::vector<int64_t>(spatial, out.end()) == spatial_lengths_3d(call, leading);
        if (!fits) return text("out has shape ", out, ", which is not that of self and outputSize");
        const auto compared = static_cast<int64_t>(call.list(kOutputSize).size());
        const bool alike = std::equal(out.begin(), out.begin() + compared, indices.begin());
        return alike ? Violation() : text("indices have shape ", indices, " but out has ", out);
    });
}

// The 950 multiplies the values of outputSize, which it has found positive, and takes a product of 0 for no windows.
Rule finish_if_product_wraps_950() {
    return {"empty", Effect::kFinish, status::kSuccess, [](const Call& call) -> Violation {
                const std::vector<int64_t>& sizes = call.list(kOutputSize);
                const bool wraps = product().is_950 && sizes.size() == 3 && element_count(sizes) == 0;
                return wraps ? text("outputSize is ", sizes) : Violation();
            }};
}

Rules windowed_nulls() {
    return present({kSelf}) + present({kKernelSize, kStride, kPadding, kDilation}) + present({kOut, kIndices});
}

Rules list_checks(size_t rank) {
    return {list_length(kKernelSize, {1, rank}, kParamInvalid),
            list_length(kStride, {0, 1, rank}, kParamInvalid),
            list_length(kPadding, {1, rank}, kParamInvalid),
            list_length(kDilation, {1, rank}, kParamInvalid),
            list_at_least(kKernelSize, 1),
            list_at_least(kStride, 1),
            list_at_least(kPadding, 0),
            padding_within_half_kernel(),
            dilation_is_one_unless(is_950)};
}

}  // namespace

// The dilation's value is not checked on the 950: the code lacks it, and a dilation of 0 or less is computed.
Contract windowed_forward_3d() {
    Rules rules = {runs_on(is_current)};
    rules = rules + windowed_nulls() +
            Rules{dtype_among(kSelf, current_floats), dtype_among(kIndices, indices_int64_on_950),
                  same_dtype(kOut, kSelf), same_format({kSelf, kOut}), same_format({kSelf, kIndices})} +
            rank_among({kSelf}, {4, 5}) + Rules{format_is_named_950()} + list_checks(3);
    return {{},
            rules + Rules{finish_if_empty({kSelf, kOut}), views_inside({kSelf}), plane_within_int32(kSelf, on_950, kInnerNullPointer),
                          result_tag_fits_rank(), result_has_pooled_shape(kOut), result_has_pooled_shape(kIndices)}};
}

Contract windowed_forward_2d() {
    Rules rules =
        windowed_nulls() + Rules{dtype_among(kSelf, current_floats), same_dtype(kOut, kSelf),
                                 dtype_among(kIndices, indices_either), same_format(kForwardData), public_format({kSelf})};
    rules = rules + rank_among({kSelf}, {3, 4}) + list_checks(2) + Rules{list_at_least(kDilation, 1)};
    return {{},
            rules + Rules{only_batch_empty(), output_has_pooled_shape(kOut), same_shape(kIndices, kOut),
                          finish_if_empty({kSelf}), views_inside({kSelf}), plane_within_int32(kSelf, on_950, kInnerNullPointer),
                          tag_is_inferred_950(), tag_fits_rank_2d(),
                          fits_as_computed(kParamInvalid), indices_carry_result_tag()}};
}

Contract mask_forward() {
    Rules early = present({kKernelSize}) + present({kSelf, kOut});
    early = early + Rules{list_length(kKernelSize, {1, 2}, kParamInvalid), runs_on(except_950)};
    Rules rules =
        windowed_nulls() + Rules{dtype_among(kSelf, floats_mask_forward), same_dtype(kOut, kSelf),
                                 dtype_among(kIndices, indices_mask), same_format(kForwardData), public_format({kSelf})};
    rules = rules + rank_among({kSelf, kIndices}, {3, 4}) + list_checks(2);
    return {early, rules + Rules{only_batch_empty(), output_has_pooled_shape(kOut), mask_has_its_shape(),
                                 finish_if_empty({kSelf}), views_inside({kSelf}),
                                 plane_within_int32(kSelf, on_950_or_blocks, kInnerNullPointer), tag_fits_rank_2d(),
                                 forward_tag_has_blocks(), fits_as_computed(kInnerNullPointer)}};
}

Contract adaptive_forward_2d() {
    Rules rules = present({kSelf}) + present({kOutputSize}) + present({kOut, kIndices});
    rules = rules + Rules{dtype_among(kSelf, floats_adaptive_2d), dtype_among(kOut, floats_adaptive_2d),
                          same_dtype(kOut, kSelf), dtype_among(kIndices, indices_int64)};
    rules = rules + rank_among({kSelf}, {3, 4}) +
            Rules{same_shape(kIndices, kOut), only_first_axis_empty(), list_length(kOutputSize, {2}, kParamInvalid),
                  list_at_least(kOutputSize, 1)};
    return {{},
            rules + Rules{finish_if_empty({kSelf}), views_inside({kSelf}), unbatched_is_not_channels_last(),
                          general_path_formats(), alike_windows_within_int32(), retagged_outputs_fit_rank(),
                          output_takes_result(), outputs_carry_result_tag_2d()}};
}

Contract adaptive_forward_3d() {
    Rules rules = present({kSelf}) + present({kOutputSize}) + present({kOut, kIndices});
    rules = rules + rank_among({kSelf, kOut, kIndices}, {4, 5}) +
            Rules{dtype_among(kSelf, current_floats),
                  dtype_among(kIndices, indices_int64_on_950),
                  format_among(kSelf, formats_adaptive_3d),
                  same_format(kForwardData),
                  output_size_length_3d(),
                  same_dtype(kOut, kSelf)};
    rules = rules + Rules{runs_on(is_current), only_first_axis_empty(),
                          plane_within_int32(kSelf, on_950_with_int64, kParamInvalid), list_at_least(kOutputSize, 1),
                          adaptive_shapes_3d()};
    return {{},
            rules + Rules{finish_if_empty({kSelf}), finish_if_product_wraps_950(), views_inside({kSelf}),
                          output_tag_fits_self(kOut), adaptive_result_has_shape(kOut), output_tag_fits_self(kIndices),
                          adaptive_result_has_shape(kIndices), indices_carry_own_tag_3d()}};
}

}  // namespace emulator
