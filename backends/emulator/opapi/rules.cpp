#include "rules.h"

#include <algorithm>
#include <limits>

#include "../ascendcl/defects.h"
#include "../ascendcl/errors.h"
#include "reading.h"
#include "slips.h"

namespace emulator {
namespace {

template <class Value>
bool among(const std::vector<Value>& values, Value value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

// As the library sees it: under a private tag always, and of no or one element.
bool is_contiguous(const aclTensor& tensor) {
    const int64_t count = shape_size(tensor.shape);
    if (is_private(tensor.format) || count == 0 || count == 1) return true;
    int64_t dense = 1;
    for (size_t axis = tensor.shape.size(); axis-- > 0;) {
        if (tensor.shape[axis] == 1) continue;
        if (tensor.strides[axis] != dense) return false;
        dense *= tensor.shape[axis];
    }
    return true;
}

bool leaves_storage(const aclTensor& tensor) {
    if (is_contiguous(tensor)) return false;
    int64_t first = tensor.offset, last = tensor.offset;
    for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
        const int64_t reach = tensor.strides[axis] * (tensor.shape[axis] - 1);
        (reach < 0 ? first : last) += reach;
    }
    return first < 0 || last + 1 > shape_size(tensor.storage);
}

Violation unless(bool holds, const std::string& why) { return holds ? Violation() : Violation(why); }

}  // namespace

Rules operator+(Rules first, const Rules& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

Rule refuse(const char* clause, int status, std::function<Violation(const Call&)> violation) {
    return {clause, Effect::kRefuse, status, std::move(violation)};
}

Rule mention(const char* clause, std::function<Violation(const Call&)> violation) {
    return {clause, Effect::kMention, status::kSuccess, std::move(violation)};
}

Rule finish_if_empty(std::vector<Role> roles) {
    const auto violation = [roles](const Call& call) -> Violation {
        for (const Role role : roles) {
            if (is_empty(call.tensor(role))) return text(name_of(role), " is empty");
        }
        return {};
    };
    if (seeded(Defect::empty_refused)) return refuse("empty", status::kParamInvalid, violation);
    return {"empty", Effect::kFinish, status::kSuccess, violation};
}

Rule views_inside(std::vector<Role> roles) {
    return refuse("storage", status::kInnerNullPointer, [roles](const Call& call) -> Violation {
        for (const Role role : roles) {
            if (leaves_storage(call.tensor(role))) return text(name_of(role), " leaves its storage");
        }
        return {};
    });
}

Rules present(std::initializer_list<Role> roles) {
    Rules rules;
    for (const Role role : roles) {
        const bool confuses = (seeded(Defect::null_result_as_invalid) && role == kGradInput) ||
                              (seeded(Defect::null_out_as_invalid) && role == kOut);
        const int status = confuses ? status::kParamInvalid : status::kNullPointer;
        rules.push_back(refuse("null.tensor", status, [role](const Call& call) {
            return unless(call.tensors[role] != nullptr, text(name_of(role), " is null"));
        }));
    }
    return rules;
}

Rules present(std::initializer_list<ListRole> lists) {
    Rules rules;
    for (const ListRole list : lists) {
        rules.push_back(refuse("null.list", status::kNullPointer, [list](const Call& call) {
            return unless(call.lists[list] != nullptr, text(name_of(list), " is null"));
        }));
    }
    return rules;
}

Rule runs_on(bool (*supported)(const ProductFacts&)) {
    return refuse("product", status::kParamInvalid, [supported](const Call&) {
        return unless(supported(product()), text("not available on ", product().soc_name));
    });
}

Rule dtype_among(Role role, Dtypes (*allowed)(const ProductFacts&)) {
    return refuse("dtype", status::kParamInvalid, [role, allowed](const Call& call) {
        const aclDataType dtype = call.tensor(role).dtype;
        return unless(among(allowed(product()), dtype) || slips_on_dtype(call, role, dtype),
                      text(name_of(role), " may not be ", name_of(dtype), " on ", product().soc_name));
    });
}

Rule same_dtype(Role role, Role as) {
    return refuse("dtype.equal", status::kParamInvalid, [role, as](const Call& call) {
        const aclDataType own = call.tensor(role).dtype, other = call.tensor(as).dtype;
        const bool widens = own == ACL_FLOAT && other == ACL_FLOAT16;
        const bool is_half = own == ACL_FLOAT16 && other == ACL_BF16 && call.family->is_adaptive &&
                             call.family->spatial_rank == 3;
        const bool ignored = (seeded(Defect::result_dtype_unchecked) && role == kGradInput) ||
                             (seeded(Defect::float_gradient_of_half_accepted) && role == kGradOutput && widens) ||
                             (seeded(Defect::half_gradient_of_bfloat16_accepted) && role == kGradOutput && is_half);
        return unless(ignored || own == other,
                      text(name_of(role), " is ", name_of(own), " but ", name_of(as), " is ", name_of(other)));
    });
}

Rule same_format(std::vector<Role> roles) {
    const int status = seeded(Defect::mixed_tags_as_inner) ? status::kInnerNullPointer : status::kParamInvalid;
    return refuse("format.equal", status, [roles](const Call& call) -> Violation {
        const aclFormat expected = call.tensor(roles.front()).format;
        for (const Role role : roles) {
            const aclFormat format = call.tensor(role).format;
            if (format != expected) {
                return text(name_of(role), " is tagged ", name_of(format), " but ", name_of(roles.front()), " ",
                            name_of(expected));
            }
        }
        return {};
    });
}

Rule format_among(Role role, std::vector<aclFormat> (*allowed)(const ProductFacts&)) {
    return refuse("format", status::kParamInvalid, [role, allowed](const Call& call) {
        const aclFormat format = call.tensor(role).format;
        return unless(among(allowed(product()), format), text(name_of(role), " may not be tagged ", name_of(format)));
    });
}

Rule public_format(std::vector<Role> roles) {
    return refuse("format.private", status::kParamInvalid, [roles](const Call& call) -> Violation {
        for (const Role role : roles) {
            const aclFormat format = call.tensor(role).format;
            if (is_private(format)) return text(name_of(role), " has the private ", name_of(format));
        }
        return {};
    });
}

Rules rank_among(std::initializer_list<Role> roles, std::vector<size_t> ranks) {
    Rules rules;
    for (const Role role : roles) {
        rules.push_back(refuse("rank", status::kParamInvalid, [role, ranks](const Call& call) {
            const size_t rank = call.tensor(role).shape.size();
            const bool refused = seeded(Defect::unbatched_refused) && rank == ranks.front();
            return unless((among(ranks, rank) && !refused) || slips_on_rank(call, role, rank),
                          text(name_of(role), " has rank ", rank, ", not one of ", ranks));
        }));
    }
    return rules;
}

Rule same_ranks(std::vector<Role> roles) {
    return refuse("rank.equal", status::kParamInvalid, [roles](const Call& call) -> Violation {
        const size_t expected = call.tensor(roles.front()).shape.size();
        for (const Role role : roles) {
            const size_t rank = call.tensor(role).shape.size();
            if (rank != expected) return text(name_of(role), " has rank ", rank, " instead of ", expected);
        }
        return {};
    });
}

Rule same_shape(Role role, Role as) {
    return refuse("shape.equal", status::kParamInvalid, [role, as](const Call& call) {
        const std::vector<int64_t>& shape = call.tensor(role).shape;
        const std::vector<int64_t>& expected = call.tensor(as).shape;
        return unless(shape == expected || slips_on_shape(call, role, as),
                      text(name_of(role), " has shape ", shape, " but ", name_of(as), " has ", expected));
    });
}

Rule list_length(ListRole list, std::vector<size_t> lengths, int status) {
    return refuse("list.length", status, [list, lengths](const Call& call) {
        const size_t length = call.list(list).size();
        const bool refused = seeded(Defect::single_stride_refused) && list == kStride && length == 1;
        return unless((among(lengths, length) && !refused) || slips_on_length(call, list, length),
                      text(name_of(list), " has ", length, " values, not one of ", lengths));
    });
}

Rule list_at_least(ListRole list, int64_t least) {
    if (seeded(Defect::zero_stride_accepted) && list == kStride) least = 0;
    return refuse("list.value", status::kParamInvalid, [list, least](const Call& call) -> Violation {
        const std::vector<int64_t>& values = call.list(list);
        for (size_t entry = 0; entry < values.size(); ++entry) {
            const int64_t value = values[entry];
            if (value < slipped_least(call, list, entry, least))
                return text(name_of(list), " holds ", value, ", less than ", least);
        }
        return {};
    });
}

Rule padding_within_half_kernel() {
    return refuse("padding.half", status::kParamInvalid, [](const Call& call) -> Violation {
        const std::vector<int64_t> padding = expanded(call, kPadding);
        const std::vector<int64_t> kernel = expanded(call, kKernelSize);
        for (size_t axis = 0; axis < kernel.size(); ++axis) {
            int64_t most = kernel[axis] / 2;
            if (seeded(Defect::half_padding_refused)) most = (kernel[axis] - 1) / 2;
            if (seeded(Defect::half_padding_exceeded)) most += 1;
            if (padding[axis] > most) {
                return text("padding ", padding[axis], " is more than half of kernel ", kernel[axis]);
            }
        }
        return {};
    });
}

Rule only_batch_empty() {
    return refuse("empty.inner", status::kParamInvalid, [](const Call& call) -> Violation {
        const std::vector<int64_t>& shape = call.tensor(kSelf).shape;
        const auto channels = shape.end() - call.family->spatial_rank - 1;
        const bool fits = std::find(channels, shape.end(), 0) == shape.end();
        return unless(fits, text("self has shape ", shape, ": only N may be 0"));
    });
}

Rule dilation_is_one_unless(bool (*exempt)(const ProductFacts&)) {
    return refuse("dilation.one", status::kParamInvalid, [exempt](const Call& call) -> Violation {
        if (exempt(product()) || seeded(Defect::dilation_accepted)) return {};
        for (const int64_t dilation : call.list(kDilation)) {
            if (dilation != 1) return text("dilation ", dilation, " is not available on ", product().soc_name);
        }
        return {};
    });
}

Rule plane_within_int32(Role role, bool (*exempt)(const Call&), int status) {
    return refuse("plane.int32", status, [role, exempt](const Call& call) -> Violation {
        if (exempt(call) || seeded(Defect::plane_limit_missing)) return {};
        const std::vector<int64_t>& shape = call.tensor(role).shape;
        const size_t spatial = std::min(shape.size(), static_cast<size_t>(call.family->spatial_rank));
        const int64_t plane = element_count({shape.end() - static_cast<int64_t>(spatial), shape.end()});
        return unless(plane <= std::numeric_limits<int32_t>::max(), text("a plane of ", plane, " passes int32"));
    });
}

bool tag_misfits(const aclTensor& tensor) {
    const size_t rank = rank_of(tensor.format);
    return rank != 0 && rank != tensor.shape.size();
}

Violation tag_misfit(const Call& call) {
    return text("tag ", name_of(call.tensor(kSelf).format), " does not fit rank ", call.tensor(kSelf).shape.size());
}

Rule tag_fits_rank_2d() {
    return refuse("format.rank", status::kInnerNullPointer, [](const Call& call) -> Violation {
        const aclTensor& self = call.tensor(kSelf);
        const bool passed_through = product().is_950 && self.shape.size() == 4;
        return !passed_through && !uses_bit_mask(call) && tag_misfits(self) ? tag_misfit(call) : Violation();
    });
}

Rule tag_has_blocks() {
    return refuse("format.blocks", status::kInnerNullPointer, [](const Call& call) -> Violation {
        const aclTensor& self = call.tensor(kSelf);
        const bool fits = self.shape.size() != 4 || self.format == ACL_FORMAT_NCHW || self.format == ACL_FORMAT_NHWC;
        return fits || !uses_bit_mask(call) ? Violation() : tag_misfit(call);
    });
}

Dtypes current_floats(const ProductFacts& facts) {
    return is_current(facts) ? Dtypes{ACL_BF16, ACL_FLOAT16, ACL_FLOAT} : Dtypes{};
}

Dtypes indices_int64_on_950(const ProductFacts& facts) {
    return facts.is_950 ? Dtypes{ACL_INT32, ACL_INT64} : Dtypes{ACL_INT32};
}

Dtypes indices_either(const ProductFacts&) { return {ACL_INT32, ACL_INT64}; }
Dtypes indices_mask(const ProductFacts&) { return {ACL_INT8}; }

bool on_950(const Call&) { return product().is_950; }
bool except_950(const ProductFacts& facts) { return !facts.is_950; }
bool is_950(const ProductFacts& facts) { return facts.is_950; }
bool is_current(const ProductFacts& facts) { return facts.is_220 || facts.is_950; }

}  // namespace emulator
