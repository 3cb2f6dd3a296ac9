// What the device and the software call themselves and can do.
#include "about.h"

#include <atomic>
#include <cstring>
#include <string>

#include "context.h"
#include "errors.h"
#include "heap.h"
#include "product.h"

namespace emulator {
namespace {

// The version says what this is, in the shape of a version of the real thing.
constexpr char kVersion[] = "9.0.0.poolproof-emulator";
constexpr const char* kVersionParts[] = {"9", "0", "0", "poolproof-emulator"};
constexpr int32_t kVersionNumber = 90000000;
constexpr int kPackages = 8;

// Chips that know infinities start in that mode, the older ones clamp (overflow mode page of the runtime).
std::atomic<int> overflow_mode{-1};

int current_overflow_mode() {
    const int chosen = overflow_mode;
    if (chosen >= 0) return chosen;
    return product().is_220 || product().is_950 ? ACL_RT_OVERFLOW_MODE_INFNAN : ACL_RT_OVERFLOW_MODE_SATURATION;
}

int null_result(const char* function) {
    return fail(status::kInvalidParam, text(function, ": the result pointer is null"));
}

}  // namespace

bool saturates() { return current_overflow_mode() == ACL_RT_OVERFLOW_MODE_SATURATION; }

}  // namespace emulator

using namespace emulator;

extern "C" const char* aclrtGetSocName() { return product().soc_name; }

extern "C" aclError aclrtGetVersion(int32_t* major, int32_t* minor, int32_t* patch) {
    if (major == nullptr || minor == nullptr || patch == nullptr) return null_result("aclrtGetVersion");
    *major = 1;  // of the programming interface, not of the software
    *minor = 16;
    *patch = 0;
    return status::kSuccess;
}

extern "C" aclError aclsysGetVersionStr(char* package, char* version) {
    if (package == nullptr || version == nullptr) return null_result("aclsysGetVersionStr");
    std::strcpy(version, kVersion);
    return status::kSuccess;
}

extern "C" aclError aclsysGetVersionNum(char* package, int32_t* version) {
    if (package == nullptr || version == nullptr) return null_result("aclsysGetVersionNum");
    *version = kVersionNumber;
    return status::kSuccess;
}

extern "C" aclError aclsysGetCANNVersion(int package, aclCANNPackageVersion* version) {
    if (version == nullptr) return null_result("aclsysGetCANNVersion");
    if (package < 0 || package >= kPackages) return fail(status::kInvalidParam, text("no package ", package));
    *version = {};
    std::strcpy(version->version, kVersion);
    char* const parts[] = {version->majorVersion, version->minorVersion, version->releaseVersion,
                           version->patchVersion};
    for (size_t i = 0; i < std::size(parts); ++i) std::strcpy(parts[i], kVersionParts[i]);
    return status::kSuccess;
}

extern "C" aclError aclGetCannAttribute(aclCannAttr attribute, int32_t* value) {
    if (value == nullptr) return null_result("aclGetCannAttribute");
    switch (attribute) {
        case ACL_CANN_ATTR_INF_NAN: *value = saturates() ? 0 : 1; return status::kSuccess;
        case ACL_CANN_ATTR_BF16: *value = product().has_bfloat16 ? 1 : 0; return status::kSuccess;
        case ACL_CANN_ATTR_JIT_COMPILE: *value = 0; return status::kSuccess;
        default: return fail(status::kInvalidParam, text("no attribute ", attribute));
    }
}

extern "C" aclError aclrtGetRunMode(aclrtRunMode* mode) {
    if (mode == nullptr) return null_result("aclrtGetRunMode");
    *mode = ACL_HOST;
    return status::kSuccess;
}

extern "C" aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr attribute, int64_t* value) {
    if (value == nullptr) return null_result("aclrtGetDeviceInfo");
    if (device >= static_cast<uint32_t>(device_count()))
        return fail(status::kRtInvalidDevice, text("no device ", device));
    switch (attribute) {
        case ACL_DEV_ATTR_AICPU_CORE_NUM: *value = 1; return status::kSuccess;
        case ACL_DEV_ATTR_AICORE_CORE_NUM:
        case ACL_DEV_ATTR_CUBE_CORE_NUM: *value = product().cube_cores; return status::kSuccess;
        case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = product().vector_cores; return status::kSuccess;
        case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE: *value = product().buffer_bytes; return status::kSuccess;
        case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: *value = static_cast<int64_t>(heap().total()); return status::kSuccess;
        default: return fail(status::kInvalidParam, text("no device attribute ", attribute));
    }
}

extern "C" aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
    if (mode != ACL_RT_OVERFLOW_MODE_SATURATION && mode != ACL_RT_OVERFLOW_MODE_INFNAN) {
        return fail(status::kInvalidParam, text("no overflow mode ", mode));
    }
    overflow_mode = mode;
    return status::kSuccess;
}

extern "C" aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
    if (mode == nullptr) return null_result("aclrtGetDeviceSatMode");
    *mode = static_cast<aclrtFloatOverflowMode>(current_overflow_mode());
    return status::kSuccess;
}
