// The vocabulary in which the contract of an API is written: an ordered list of rules, the first broken one decides.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "../ascendcl/product.h"
#include "call.h"

namespace emulator {

// Why a rule is broken; nothing where it holds.
using Violation = std::optional<std::string>;

enum class Effect {
    kRefuse,   // phase one ends with the rule's status
    kFinish,   // phase one succeeds at once: nothing to compute
    kMention,  // the text is reported, the call goes on
};

struct Rule {
    const char* clause;
    Effect effect;
    int status;
    std::function<Violation(const Call&)> violation;
};

using Rules = std::vector<Rule>;
using Dtypes = std::vector<aclDataType>;

Rules operator+(Rules first, const Rules& second);

// Refusals with 161001.
Rules present(std::initializer_list<Role> roles);
Rules present(std::initializer_list<ListRole> lists);

// Refusals with 161002.
Rule runs_on(bool (*supported)(const ProductFacts&));
Rule dtype_among(Role role, Dtypes (*allowed)(const ProductFacts&));
Rule same_dtype(Role role, Role as);
Rule same_format(std::vector<Role> roles);
Rule format_among(Role role, std::vector<aclFormat> (*allowed)(const ProductFacts&));
Rule public_format(std::vector<Role> roles);
Rules rank_among(std::initializer_list<Role> roles, std::vector<size_t> ranks);
Rule same_ranks(std::vector<Role> roles);
Rule same_shape(Role role, Role as);
Rule list_length(ListRole list, std::vector<size_t> lengths, int status);
Rule list_at_least(ListRole list, int64_t least);
Rule padding_within_half_kernel();
Rule only_batch_empty();
Rule dilation_is_one_unless(bool (*exempt)(const ProductFacts&));
// The product of the last axes is taken in 64 bits and wraps (measured on the library's host code).
Rule plane_within_int32(Role role, bool (*exempt)(const Call&), int status);

// The tag of self says the rank that self has, wherever a 2-D call has its results tagged anew: nothing is on the 950
// with N, nor in the blocked layout of the bit mask, which takes other tags.
Rule tag_fits_rank_2d();
Rule tag_has_blocks();

// A rule of its own: `violation` tells what is wrong.
Rule refuse(const char* clause, int status, std::function<Violation(const Call&)> violation);
Rule mention(const char* clause, std::function<Violation(const Call&)> violation);
Rule finish_if_empty(std::vector<Role> roles);
// Strided inputs are copied first, and have to lie in their storage; contiguous ones are never looked at (measured).
Rule views_inside(std::vector<Role> roles);

// Whether a tag other than the rank-free ones says another rank than the tensor has, and that in words for self.
bool tag_misfits(const aclTensor& tensor);
Violation tag_misfit(const Call& call);

// Sets that several contracts share.
Dtypes current_floats(const ProductFacts& facts);
Dtypes indices_int64_on_950(const ProductFacts& facts);
Dtypes indices_either(const ProductFacts& facts);
Dtypes indices_mask(const ProductFacts& facts);
bool on_950(const Call& call);
bool except_950(const ProductFacts& facts);
bool is_950(const ProductFacts& facts);
bool is_current(const ProductFacts& facts);  // A2, A3 or 950

}  // namespace emulator
