// Contracts of the five backwards. Order and codes follow the library's host code, as read and as measured on it;
// where a published page differs, the code is followed and the difference is said.
#include "../ascendcl/defects.h"
#include "../ascendcl/errors.h"
#include "contract.h"
#include "reading.h"

namespace emulator {
namespace {

using status::kInnerNullPointer;
using status::kNullPointer;
using status::kParamInvalid;

const std::vector<Role> kBackwardData = {kSelf, kGradOutput, kGradInput};
const std::vector<Role> kAll = {kSelf, kGradOutput, kGradInput, kIndices};

// Half precision on A2 and A3 goes through the mask API.
Dtypes floats_2d(const ProductFacts& facts) {
    if (facts.is_950) return current_floats(facts);
    return facts.is_220 ? Dtypes{ACL_FLOAT} : Dtypes{};
}

Dtypes floats_mask_backward(const ProductFacts& facts) {
    if (facts.product == Product::k910) return {ACL_FLOAT16, ACL_FLOAT};
    return facts.is_220 ? Dtypes{ACL_FLOAT16, ACL_FLOAT, ACL_BF16} : Dtypes{};
}

// The code lets INT8 through where the page has INT32 alone; the tiling then refuses it.
Dtypes indices_2d(const ProductFacts& facts) {
    return facts.is_950 ? Dtypes{ACL_INT32, ACL_INT64} : Dtypes{ACL_INT32, ACL_INT8};
}

bool is_rank(const Call& call, size_t rank) { return call.tensor(kSelf).shape.size() == rank; }

Rules null_checks() {
    return present({kGradOutput, kSelf, kIndices}) + present({kKernelSize, kStride, kPadding, kDilation}) +
           present({kGradInput});
}

Rules list_checks_3d() {
    return {list_length(kKernelSize, {1, 3}, kParamInvalid),
            list_at_least(kKernelSize, 1),
            list_length(kStride, {0, 1, 3}, kParamInvalid),
            list_at_least(kStride, 1),
            list_length(kPadding, {1, 3}, kParamInvalid),
            list_at_least(kPadding, 0),
            padding_within_half_kernel(),
            list_length(kDilation, {1, 3}, kParamInvalid),
            list_at_least(kDilation, 1)};
}

Rules list_checks_2d() {
    return {list_length(kKernelSize, {1, 2}, kParamInvalid),
            list_length(kStride, {0, 1, 2}, kParamInvalid),
            list_length(kPadding, {1, 2}, kParamInvalid),
            list_length(kDilation, {1, 2}, kParamInvalid),
            list_at_least(kKernelSize, 1),
            list_at_least(kStride, 1),
            list_at_least(kPadding, 0),
            padding_within_half_kernel(),
            list_at_least(kDilation, 1),
            dilation_is_one_unless(is_950)};
}

// The second padding limit of the code; it can only decide where dilation * kernel passes 64 bits.
Rule padding_within_dilated_kernel() {
    return refuse("padding.dilated", kParamInvalid, [](const Call& call) -> Violation {
        const Attributes list = attributes_of(call);
        for (size_t axis = 0; axis < list.kernel.size(); ++axis) {
            const int64_t reach = (list.kernel[axis] - 1) * list.dilation[axis] + 1;
            if (list.padding[axis] > reach / 2) return text("padding ", list.padding[axis], " for a reach of ", reach);
        }
        return {};
    });
}

Rule gradient_has_pooled_size() {
    return refuse("shape.pooled", kParamInvalid, [](const Call& call) -> Violation {
        const bool clamps = seeded(Defect::kernel_beyond_input_accepted);
        const auto expected = pooled_shape(call, contract_reading(call), clamps);
        if (!expected) return std::string("a pooled size is not positive");
        std::vector<int64_t> found = call.tensor(kGradOutput).shape;
        if (seeded(Defect::pooled_width_unchecked) && !found.empty()) found.back() = expected->back();
        if (found == *expected) return {};
        return text("gradOutput has shape ", call.tensor(kGradOutput).shape, " but the pooled shape is ", *expected);
    });
}

// The code compares these shapes, reports a difference and goes on; the page promises a refusal.
Rule mention_indices_shape() {
    return mention("indices.shape", [](const Call& call) -> Violation {
        if (call.family->is_mask || call.tensor(kIndices).shape == call.tensor(kGradOutput).shape) return {};
        return text("indices have shape ", call.tensor(kIndices).shape, " but gradOutput has ",
                    call.tensor(kGradOutput).shape);
    });
}

Rule ranks_agree() {
    return refuse("rank.mixed", kInnerNullPointer, [](const Call& call) -> Violation {
        const size_t rank = call.tensor(kSelf).shape.size();
        const size_t gradient_rank = call.tensor(kGradOutput).shape.size();
        if (rank == gradient_rank) return {};
        return text("self has rank ", rank, " but gradOutput has ", gradient_rank);
    });
}

// A rank-4 tensor of the 950's 2-D kernel is passed through as it is; all others are re-tagged on the way.
Rule indices_rank_agrees() {
    return refuse("rank.indices", kInnerNullPointer, [](const Call& call) -> Violation {
        const bool passed_through = product().is_950 && is_rank(call, 4);
        if (passed_through || call.tensor(kIndices).shape.size() == call.tensor(kSelf).shape.size()) return {};
        return text("indices have rank ", call.tensor(kIndices).shape.size());
    });
}

Rule tag_fits_rank() {
    return refuse("format.rank", kInnerNullPointer, [](const Call& call) -> Violation {
        const bool fits = !tag_misfits(call.tensor(kSelf)) && !tag_misfits(call.tensor(kGradOutput));
        return fits ? Violation() : tag_misfit(call);
    });
}

// Without N the result is tagged NCL and compared with gradInput's tag.
Rule tag_is_ncl_without_batch() {
    return refuse("format.rank", kInnerNullPointer, [](const Call& call) -> Violation {
        const bool fits =
            is_rank(call, 3) ? call.tensor(kSelf).format == ACL_FORMAT_NCL : !tag_misfits(call.tensor(kSelf));
        return fits ? Violation() : tag_misfit(call);
    });
}

// Everything that the windowed 2-D backwards share, after their null and dtype checks.
Rules checks_2d() {
    Rules rules = {same_format(kBackwardData), public_format({kSelf, kGradOutput, kGradInput, kIndices})};
    rules = rules + rank_among({kSelf, kGradInput, kGradOutput, kIndices}, {3, 4}) + list_checks_2d();
    return rules + Rules{same_shape(kGradInput, kSelf), only_batch_empty(),      padding_within_dilated_kernel(),
                         gradient_has_pooled_size(),    mention_indices_shape(), finish_if_empty({kSelf}), views_inside({kSelf, kGradOutput, kIndices})};
}

Rules adaptive_nulls() { return present({kGradOutput, kSelf, kIndices, kGradInput}); }

Rules adaptive_dtypes() {
    return {same_dtype(kGradOutput, kSelf), same_dtype(kGradInput, kSelf), dtype_among(kSelf, current_floats)};
}

Rules adaptive_shapes() { return {same_ranks(kAll), same_shape(kGradOutput, kIndices), same_shape(kSelf, kGradInput)}; }

}  // namespace

Contract windowed_backward_3d() {
    Rules rules = null_checks() + Rules{dtype_among(kSelf, current_floats),
                                        dtype_among(kIndices, indices_int64_on_950),
                                        same_dtype(kGradOutput, kSelf),
                                        same_dtype(kGradInput, kSelf),
                                        same_format(kBackwardData),
                                        public_format({kSelf, kGradOutput, kIndices, kGradInput})};
    rules = rules + rank_among({kGradOutput, kGradInput, kIndices, kSelf}, {4, 5}) + list_checks_3d();
    rules = rules + Rules{plane_within_int32(kSelf, on_950, kParamInvalid), same_shape(kIndices, kGradOutput),
                          same_shape(kSelf, kGradInput), finish_if_empty({kGradOutput, kSelf, kIndices})};
    return {{}, rules + Rules{views_inside({kSelf, kGradOutput, kIndices}), ranks_agree(), tag_fits_rank()}};
}

Contract windowed_backward_2d() {
    const Rules dtypes = {dtype_among(kSelf, floats_2d), same_dtype(kGradOutput, kSelf), same_dtype(kGradInput, kSelf),
                          dtype_among(kIndices, indices_2d)};
    const bool is_late = seeded(Defect::dtypes_checked_late);
    const Rules checks = is_late ? checks_2d() + dtypes : dtypes + checks_2d();
    const bool are_nulls_late = seeded(Defect::null_lists_checked_late);
    const Rules nulls = are_nulls_late ? adaptive_nulls() + dtypes + null_checks() : null_checks();
    return {{}, nulls + checks + Rules{tag_fits_rank_2d(), indices_rank_agrees()}};
}

Contract mask_backward() {
    Rules early = {runs_on(except_950)};
    early = early + present({kKernelSize}) + present({kSelf, kGradOutput});
    // 161001 where the page has 161002: the code confuses the two here, and here alone.
    early.push_back(list_length(kKernelSize, {1, 2}, kNullPointer));
    const Rules dtypes = {dtype_among(kSelf, floats_mask_backward), same_dtype(kGradOutput, kSelf),
                          same_dtype(kGradInput, kSelf), dtype_among(kIndices, indices_mask)};
    return {early, null_checks() + dtypes + checks_2d() + Rules{tag_fits_rank_2d(), tag_has_blocks()}};
}

Contract adaptive_backward_2d() {
    const Rules tags = {same_format(kAll), public_format(kAll)};
    return {
        {},
        adaptive_nulls() + adaptive_dtypes() + Rules{dtype_among(kIndices, indices_either)} + adaptive_shapes() + tags +
            rank_among({kSelf, kGradInput, kGradOutput, kIndices}, {3, 4}) +
            Rules{plane_within_int32(kSelf, on_950, kParamInvalid), finish_if_empty(kAll), views_inside({kSelf, kGradOutput, kIndices}), tag_is_ncl_without_batch()}};
}

Contract adaptive_backward_3d() {
    const Rules tags = {plane_within_int32(kSelf, on_950, kParamInvalid), same_format(kAll), public_format(kAll)};
    return {{},
            adaptive_nulls() + adaptive_dtypes() + adaptive_shapes() + tags +
                rank_among({kSelf, kGradInput, kGradOutput, kIndices}, {4, 5}) +
                Rules{dtype_among(kIndices, indices_int64_on_950), finish_if_empty(kAll), views_inside({kSelf, kGradOutput, kIndices}), tag_fits_rank()}};
}

}  // namespace emulator
