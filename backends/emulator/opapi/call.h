// One phase-one call: which API, on what. Roles name tensors and lists alike in all ten APIs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "../nnopbase/tensor.h"

namespace emulator {

enum Role { kGradOutput, kSelf, kIndices, kGradInput, kOut, kRoles };
enum ListRole { kKernelSize, kStride, kPadding, kDilation, kOutputSize, kListRoles };

const char* name_of(Role role);
const char* name_of(ListRole role);
std::string name_of(aclDataType dtype);
std::string name_of(aclFormat format);

// What the API is, whatever it is called with.
struct Family {
    const char* name;  // with the aclnn prefix
    bool is_backward;
    bool is_adaptive;
    bool is_mask;  // indices travel in an int8 mask
    int spatial_rank;
    std::vector<Role> inputs;  // API order
    std::vector<Role> outputs;
};

struct Call {
    const Family* family;
    std::array<const aclTensor*, kRoles> tensors{};
    std::array<const aclIntArray*, kListRoles> lists{};
    bool ceil_mode = false;
    int64_t determinism = 0;

    const aclTensor& tensor(Role role) const { return *tensors[role]; }
    const std::vector<int64_t>& list(ListRole role) const { return lists[role]->values; }
    std::vector<Role> roles() const;
};

bool is_empty(const aclTensor& tensor);
int64_t element_count(const std::vector<int64_t>& shape);
// As the library counts: the least int64 where the product overflows, so that two such shapes compare equal (measured).
int64_t shape_size(const std::vector<int64_t>& shape);
int64_t item_size(aclDataType dtype);

// Formats whose memory is blocked, so that a view says nothing about it (format helpers of the base library).
bool is_private(aclFormat format);
// Rank that a tag itself stands for; 0 for tags that fit every rank (measured on the library's host code).
size_t rank_of(aclFormat format);

// One value per spatial axis: a single value is repeated, an empty stride means the kernel.
std::vector<int64_t> expanded(const Call& call, ListRole role);

}  // namespace emulator
