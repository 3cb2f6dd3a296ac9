// aclTensor and aclIntArray: descriptions that callers own, nothing more.
#pragma once

#include <cstdint>
#include <vector>

#include "../ascendcl/abi.h"

// A strided view over memory that the caller owns. Strides, offset and storage count elements.
struct aclTensor {
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    std::vector<int64_t> storage;
    int64_t offset;
    aclDataType dtype;
    aclFormat format;
    void* data;
};

struct aclIntArray {
    std::vector<int64_t> values;
};

namespace emulator {

// Whether the description has not been destroyed; kept for seeded defects alone, which look at it too late.
bool is_living(const aclTensor* tensor);

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);

}  // namespace emulator
