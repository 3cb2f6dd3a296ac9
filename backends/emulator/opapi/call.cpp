#include "call.h"

#include <algorithm>
#include <limits>

#include "../ascendcl/defects.h"
#include "../ascendcl/text.h"

namespace emulator {
namespace {

constexpr const char* kRoleNames[] = {"gradOutput", "self", "indices", "gradInput", "out"};
constexpr const char* kListNames[] = {"kernelSize", "stride", "padding", "dilation", "outputSize"};

// A list of a length that only a defect lets through, read as careless code reads it: the first values count, and
// `missing` ones are what changes nothing.
std::vector<int64_t> fitted(std::vector<int64_t> values, size_t axes, int64_t missing) {
    values.resize(axes, missing);
    return values;
}

}  // namespace

const char* name_of(Role role) { return kRoleNames[role]; }
const char* name_of(ListRole role) { return kListNames[role]; }

std::string name_of(aclDataType dtype) {
    switch (dtype) {
        case ACL_DT_UNDEFINED: return "UNDEFINED";
        case ACL_FLOAT: return "FLOAT";
        case ACL_FLOAT16: return "FLOAT16";
        case ACL_BF16: return "BF16";
        case ACL_DOUBLE: return "DOUBLE";
        case ACL_INT8: return "INT8";
        case ACL_INT32: return "INT32";
        case ACL_INT64: return "INT64";
        default: return text("dtype ", static_cast<int>(dtype));
    }
}

std::string name_of(aclFormat format) {
    switch (format) {
        case ACL_FORMAT_NCHW: return "NCHW";
        case ACL_FORMAT_NHWC: return "NHWC";
        case ACL_FORMAT_ND: return "ND";
        case ACL_FORMAT_HWCN: return "HWCN";
        case ACL_FORMAT_NCDHW: return "NCDHW";
        case ACL_FORMAT_NDHWC: return "NDHWC";
        case ACL_FORMAT_NC: return "NC";
        case ACL_FORMAT_NCL: return "NCL";
        default: return text("format ", static_cast<int>(format));
    }
}

std::vector<Role> Call::roles() const {
    std::vector<Role> all = family->inputs;
    all.insert(all.end(), family->outputs.begin(), family->outputs.end());
    return all;
}

bool is_empty(const aclTensor& tensor) {
    return std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
}

int64_t element_count(const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return count;
}

int64_t shape_size(const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t size : shape) {
        if (__builtin_mul_overflow(count, size, &count)) return std::numeric_limits<int64_t>::min();
    }
    return count;
}

int64_t item_size(aclDataType dtype) {
    switch (dtype) {
        case ACL_BOOL:
        case ACL_INT8:
        case ACL_UINT8: return 1;
        case ACL_BF16:
        case ACL_FLOAT16:
        case ACL_INT16: return 2;
        case ACL_FLOAT:
        case ACL_INT32: return 4;
        default: return 8;
    }
}

bool is_private(aclFormat format) {
    switch (format) {
        case ACL_FORMAT_FRACTAL_NZ_C0_16: return !seeded(Defect::new_private_tag_accepted);
        case ACL_FORMAT_NC1HWC0:
        case ACL_FORMAT_FRACTAL_Z:
        case ACL_FORMAT_NC1HWC0_C04:
        case ACL_FORMAT_FRACTAL_NZ:
        case ACL_FORMAT_NDC1HWC0:
        case ACL_FORMAT_FRACTAL_Z_3D:
        case ACL_FORMAT_FRACTAL_NZ_C0_32:
        case ACL_FORMAT_FRACTAL_NZ_C0_2:
        case ACL_FORMAT_FRACTAL_NZ_C0_4:
        case ACL_FORMAT_FRACTAL_NZ_C0_8: return true;
        default: return false;
    }
}

size_t rank_of(aclFormat format) {
    switch (format) {
        case ACL_FORMAT_NCL: return 3;
        case ACL_FORMAT_NCHW:
        case ACL_FORMAT_NHWC:
        case ACL_FORMAT_HWCN:
        case ACL_FORMAT_FRACTAL_Z:
        case ACL_FORMAT_FRACTAL_Z_3D: return 4;
        case ACL_FORMAT_NCDHW:
        case ACL_FORMAT_NDHWC:
        case ACL_FORMAT_NC1HWC0:
        case ACL_FORMAT_NC1HWC0_C04: return 5;
        case ACL_FORMAT_NDC1HWC0: return 6;
        default: return 0;
    }
}

std::vector<int64_t> expanded(const Call& call, ListRole role) {
    const bool defaults = role == kStride && call.list(role).empty();
    const std::vector<int64_t>& values = call.list(defaults ? kKernelSize : role);
    const bool repeats = values.size() == 1 || (defaults && seeded(Defect::empty_stride_repeats_first));
    const auto axes = static_cast<size_t>(call.family->spatial_rank);
    if (repeats) return std::vector<int64_t>(axes, values.front());
    return values.size() == axes ? values : fitted(values, axes, role == kPadding ? 0 : 1);
}

}  // namespace emulator
