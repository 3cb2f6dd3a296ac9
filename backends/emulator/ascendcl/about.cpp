// What the device and the software call themselves and can do.
#include "about.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "context.h"
#include "environment.h"
#include "errors.h"
#include "heap.h"
#include "product.h"

namespace emulator {
namespace {

// Where a structure has room for it, this says that no vendor made the software. The version does not: clients parse it.
constexpr char kMaker[] = "poolproof-emulator";
constexpr int kPackages = 8;
constexpr int32_t kUtilizationUnknown = -1;
constexpr aclCannAttr kAttributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16};

// POOLPROOF_EMULATOR_VERSION, and its parts between dots and hyphens: three or four, the first two of them numbers.
struct Version {
    std::string whole;
    std::vector<std::string> parts;
};

const Version& version() {
    static const Version chosen = [] {
        Version read{environment("POOLPROOF_EMULATOR_VERSION", "9.0.0"), {""}};
        for (const char letter : read.whole) {
            if (letter == '.' || letter == '-') {
                read.parts.emplace_back();
            } else {
                read.parts.back() += letter;
            }
        }
        const auto is_number = [](const std::string& part) {
            return !part.empty() && part.size() < 3 && part.find_first_not_of("0123456789") == std::string::npos;
        };
        const size_t count = read.parts.size();
        if (read.whole.size() > 63 || count < 3 || count > 5 || !is_number(read.parts[0]) || !is_number(read.parts[1]))
            fatal(text("POOLPROOF_EMULATOR_VERSION=", read.whole, " is no version such as 9.0.0 or 8.5.RC1"));
        return read;
    }();
    return chosen;
}

// Two digits for each of the first three parts, and two more; a part that is no number counts as 0.
int32_t version_number() {
    int32_t number = 0;
    for (size_t i = 0; i < 3; ++i) number = number * 100 + std::atoi(version().parts[i].c_str()) % 100;
    return number * 100;
}

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
    std::strcpy(version, emulator::version().whole.c_str());
    return status::kSuccess;
}

extern "C" aclError aclsysGetVersionNum(char* package, int32_t* version) {
    if (package == nullptr || version == nullptr) return null_result("aclsysGetVersionNum");
    *version = version_number();
    return status::kSuccess;
}

extern "C" aclError aclsysGetCANNVersion(int package, aclCANNPackageVersion* version) {
    if (version == nullptr) return null_result("aclsysGetCANNVersion");
    if (package < 0 || package >= kPackages) return fail(status::kInvalidParam, text("no package ", package));
    *version = {};
    const Version& known = emulator::version();
    std::strcpy(version->version, known.whole.c_str());
    std::strcpy(version->reserved, kMaker);
    char* const parts[] = {version->majorVersion, version->minorVersion, version->releaseVersion,
                           version->patchVersion};
    for (size_t i = 0; i < std::min(std::size(parts), known.parts.size()); ++i)
        std::strcpy(parts[i], known.parts[i].c_str());
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

extern "C" aclError aclGetCannAttributeList(const aclCannAttr** attributes, size_t* count) {
    if (attributes == nullptr || count == nullptr) return null_result("aclGetCannAttributeList");
    *attributes = kAttributes;
    *count = 0;  // of those that the product has; bfloat16 is the last
    while (*count < std::size(kAttributes) && (kAttributes[*count] != ACL_CANN_ATTR_BF16 || product().has_bfloat16))
        ++*count;
    return status::kSuccess;
}

extern "C" aclError aclGetDeviceCapability(uint32_t device, aclDeviceInfo about, int64_t* value) {
    if (value == nullptr) return null_result("aclGetDeviceCapability");
    if (device >= static_cast<uint32_t>(device_count()))
        return fail(status::kInvalidParam, text("no device ", device));
    switch (about) {
        case ACL_DEVICE_INFO_AI_CORE_NUM: *value = product().cube_cores; return status::kSuccess;
        case ACL_DEVICE_INFO_VECTOR_CORE_NUM: *value = product().vector_cores; return status::kSuccess;
        default: return fail(status::kInvalidParam, text("no capability ", about));
    }
}

extern "C" aclError aclrtGetDeviceUtilizationRate(int32_t device, aclrtUtilizationInfo* result) {
    if (result == nullptr) return null_result("aclrtGetDeviceUtilizationRate");
    if (result->utilizationExtend != nullptr) return fail(status::kInvalidParam, "utilizationExtend is reserved");
    if (device < 0 || device >= device_count()) return fail(status::kRtInvalidDevice, text("no device ", device));
    *result = {kUtilizationUnknown, kUtilizationUnknown, kUtilizationUnknown, kUtilizationUnknown, nullptr};
    return status::kSuccess;
}

extern "C" aclError aclrtDeviceGetBareTgid(int32_t* process) {
    if (process == nullptr) return null_result("aclrtDeviceGetBareTgid");
    *process = getpid();
    return status::kSuccess;
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
