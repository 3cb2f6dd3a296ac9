#include "options.h"

#include <atomic>

#include "context.h"
#include "errors.h"

namespace emulator {
namespace {

constexpr int kOptions = 4;
constexpr int64_t kHighestDeterminism = 3;

std::atomic<int64_t> process_options[kOptions];

// Value ranges as the runtime checks them: 0..3 for the determinism level, a switch for everything else.
int check(aclSysParamOpt option, int64_t value) {
    if (option < 0 || option >= kOptions) return fail(status::kRtInvalidValue, text("no system parameter ", option));
    const int64_t highest = option == ACL_OPT_DETERMINISTIC ? kHighestDeterminism : 1;
    if (value >= 0 && value <= highest) return status::kSuccess;
    return fail(status::kRtInvalidValue, text("system parameter ", option, " cannot be ", value));
}

bool is_process_only(aclSysParamOpt option) { return option == ACL_OPT_ENABLE_KERNEL_EARLY_START; }

}  // namespace

int64_t determinism_level() {
    const int64_t level = process_options[ACL_OPT_DETERMINISTIC];
    return level == 1 && process_options[ACL_OPT_STRONG_CONSISTENCY] == 1 ? 2 : level;
}

}  // namespace emulator

using namespace emulator;

extern "C" aclError aclrtSetSysParamOpt(aclSysParamOpt option, int64_t value) {
    const int status = check(option, value);
    if (status == status::kSuccess) process_options[option] = value;
    return status;
}

extern "C" aclError aclrtGetSysParamOpt(aclSysParamOpt option, int64_t* value) {
    if (value == nullptr) return fail(status::kInvalidParam, "aclrtGetSysParamOpt: value is null");
    const int status = check(option, 0);
    if (status == status::kSuccess) *value = process_options[option];
    return status;
}

extern "C" aclError aclrtCtxSetSysParamOpt(aclSysParamOpt option, int64_t value) {
    std::shared_ptr<Context> context;
    int status = check(option, value);
    if (status == status::kSuccess) status = require_context(&context);
    if (status != status::kSuccess) return status;
    if (is_process_only(option))
        return fail(status::kRtInvalidValue, text("parameter ", option, " has no context scope"));
    context->options()[option] = value;
    return status::kSuccess;
}

extern "C" aclError aclrtCtxGetSysParamOpt(aclSysParamOpt option, int64_t* value) {
    if (value == nullptr) return fail(status::kInvalidParam, "aclrtCtxGetSysParamOpt: value is null");
    std::shared_ptr<Context> context;
    int status = check(option, 0);
    if (status == status::kSuccess) status = require_context(&context);
    if (status != status::kSuccess) return status;
    const auto found = context->options().find(option);
    if (found == context->options().end()) {
        return fail(status::kRtSysParamNeverSet, text("system parameter ", option, " was never set in this context"));
    }
    *value = found->second;
    return status::kSuccess;
}

// Time-outs of the device are accepted and have no effect: the emulator never gives up on a kernel.

extern "C" aclError aclrtSetOpExecuteTimeOut(uint32_t) { return status::kSuccess; }

extern "C" aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t) { return status::kSuccess; }

extern "C" aclError aclrtSetOpExecuteTimeOutV2(uint64_t microseconds, uint64_t* actual) {
    if (actual == nullptr) return fail(status::kInvalidParam, "aclrtSetOpExecuteTimeOutV2: actualTimeout is null");
    *actual = microseconds;
    return status::kSuccess;
}

extern "C" aclError aclrtSetOpWaitTimeout(uint32_t) { return status::kSuccess; }
