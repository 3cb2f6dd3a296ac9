// Contracts of the five forwards, after the library's host code as read and as measured on it.
#include <algorithm>

#include "../ascendcl/defects.h"
#include "../ascendcl/errors.h"
#include "contract.h"
#include "geometry.h"
#include "reading.h"

namespace emulator {
namespace {

using status::kInnerNullPointer;
using status::kParamInvalid;

const std::vector<Role> kData = {kSelf, kOut};

Dtypes floats_mask(const ProductFacts& facts) {
    if (facts.product == Product::k910) return {ACL_FLOAT, ACL_FLOAT16};
    return facts.product == Product::k310P ? Dtypes{ACL_FLOAT} : current_floats(facts);
}

Dtypes floats_adaptive_2d(const ProductFacts& facts) {
    if (facts.product == Product::k910) return {ACL_FLOAT, ACL_FLOAT16, ACL_DOUBLE};
    return is_current(facts) ? Dtypes{ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE} : Dtypes{};
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
        const std::vector<int64_t> kernel = expanded(call, kKernelSize);
        std::vector<int64_t> expected = call.tensor(kOut).shape;
        const size_t rank = expected.size();
        const int64_t windows = expected[rank - 2] * expected[rank - 1];
        expected[rank - 2] = kernel[0] * kernel[1];
        expected[rank - 1] = (ceil_divide(windows, 16) + 1) * 2 * 16;
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
    return first == second || (element_count(first) == 1 && element_count(second) == 1);
}

Rule result_has_pooled_shape(Role role) {
    return refuse("shape.pooled", kParamInvalid, [role](const Call& call) -> Violation {
        const auto expected = pooled_shape(call, contract_reading(call));
        if (expected && same_or_single(call.tensor(role).shape, *expected)) return {};
        return text(name_of(role), " has shape ", call.tensor(role).shape, ", which is not the pooled shape");
    });
}

// A rank-5 call whose windows overlap is the only one whose results keep the tags that they come with.
Rule adaptive_tags_fit_3d() {
    return refuse("format.rank", kInnerNullPointer, [](const Call& call) -> Violation {
        const std::vector<int64_t> in = contract_reading(call).sizes(call.tensor(kSelf).shape);
        const std::vector<int64_t> out = adaptive_sizes(call);
        bool divides = true;
        for (size_t axis = 0; axis < in.size(); ++axis) divides &= in[axis] % out[axis] == 0;
        const bool is_retagged = call.tensor(kSelf).shape.size() == 4 || divides;
        const bool fits = !tag_misfits(call.tensor(kOut)) && !tag_misfits(call.tensor(kIndices));
        return !is_retagged || fits ? Violation() : tag_misfit(call);
    });
}

Rule adaptive_result_has_shape(Role role) {
    return refuse("shape.result", kParamInvalid, [role](const Call& call) -> Violation {
        const std::vector<int64_t> sizes = adaptive_sizes(call);
        std::vector<int64_t> expected = call.tensor(kSelf).shape;
        std::copy(sizes.begin(), sizes.end(), expected.end() - static_cast<int64_t>(sizes.size()));
        if (same_or_single(call.tensor(role).shape, expected)) return {};
        return text(name_of(role), " has shape ", call.tensor(role).shape, " instead of ", expected);
    });
}

// Only the count of elements is looked at, because the result is reshaped into the output.
Rule output_count_is(Role role) {
    return refuse("shape.count", kInnerNullPointer, [role](const Call& call) -> Violation {
        const int64_t planes = element_count(contract_reading(call).leading(call.tensor(kSelf).shape));
        const int64_t expected = planes * element_count(adaptive_sizes(call));
        const int64_t count = element_count(call.tensor(role).shape);
        return count == expected ? Violation() : text(name_of(role), " has ", count, " elements, not ", expected);
    });
}

// The general path of the 910, and of DOUBLE everywhere, is the only one that looks at the tag.
Rule general_path_formats() {
    return refuse("format", kParamInvalid, [](const Call& call) -> Violation {
        const bool general = product().product == Product::k910 || call.tensor(kSelf).dtype == ACL_DOUBLE;
        const aclFormat format = call.tensor(kSelf).format;
        const bool known = format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NCL || format == ACL_FORMAT_NHWC;
        const bool forgets = seeded(Defect::channels_last_tag_refused) && format == ACL_FORMAT_NHWC;
        return (general && !known) || forgets ? text("self may not be tagged ", name_of(format)) : Violation();
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

// The indices' last axis is not compared; the count catches what would be written out of bounds.
Rule adaptive_shapes_3d() {
    return refuse("shape.adaptive", kParamInvalid, [](const Call& call) -> Violation {
        const std::vector<int64_t> sizes = adaptive_sizes(call);
        std::vector<int64_t> expected = call.tensor(kSelf).shape;
        std::copy(sizes.begin(), sizes.end(), expected.end() - static_cast<int64_t>(sizes.size()));
        const std::vector<int64_t>& out = call.tensor(kOut).shape;
        const std::vector<int64_t>& indices = call.tensor(kIndices).shape;
        if (out != expected) return text("out has shape ", out, " instead of ", expected);
        const bool alike = indices.size() == out.size() && std::equal(out.begin(), out.begin() + 3, indices.begin());
        return alike ? Violation() : text("indices have shape ", indices, " but out has ", out);
    });
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
                                 dtype_among(kIndices, indices_either), same_format(kData), public_format({kSelf})};
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
        windowed_nulls() + Rules{dtype_among(kSelf, floats_mask), same_dtype(kOut, kSelf),
                                 dtype_among(kIndices, indices_mask), same_format(kData), public_format({kSelf})};
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
            Rules{same_shape(kIndices, kOut), only_batch_empty(), list_length(kOutputSize, {2}, kParamInvalid),
                  list_at_least(kOutputSize, 1), general_path_formats()};
    return {{}, rules + Rules{finish_if_empty({kSelf}), views_inside({kSelf}), output_count_is(kOut)}};
}

Contract adaptive_forward_3d() {
    Rules rules = present({kSelf}) + present({kOutputSize}) + present({kOut, kIndices});
    rules = rules + rank_among({kSelf, kOut, kIndices}, {4, 5}) +
            Rules{dtype_among(kSelf, current_floats),
                  dtype_among(kIndices, indices_int64_on_950),
                  format_among(kSelf, formats_adaptive_3d),
                  same_format(kData),
                  output_size_length_3d(),
                  same_dtype(kOut, kSelf)};
    rules = rules + Rules{runs_on(is_current), only_batch_empty(),
                          plane_within_int32(kSelf, on_950_with_int64, kParamInvalid), list_at_least(kOutputSize, 1),
                          adaptive_shapes_3d()};
    return {{}, rules + Rules{finish_if_empty({kSelf}), views_inside({kSelf}), adaptive_tags_fit_3d(),
                                 adaptive_result_has_shape(kOut), adaptive_result_has_shape(kIndices)}};
}

}  // namespace emulator
