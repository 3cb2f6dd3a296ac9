// Error texts and last errors, both kept per thread.
#include "errors.h"

#include <cstdio>
#include <cstdlib>

#include "abi.h"

namespace emulator {
namespace {

// Older lines stay behind newer ones, as in the real runtime; the bound keeps a long run from growing.
constexpr size_t kLongestText = 16384;

thread_local std::string recent;
thread_local int last_error = status::kSuccess;

// Who decides on a status. Only the runtime proper remembers what it answers (GetRtExtErrCodeAndSetGlobalErr in its
// sources); the layer above it checks parameters and counts users, and remembers nothing.
struct Origin {
    int first;
    int last;
    bool sets_last_error;
};

constexpr Origin kOrigins[] = {
    {100000, 106999, false},  // parameters and life cycle, checked above the runtime
    {107000, 199999, true},   // misuse that the runtime finds
    {200000, 206999, false},  // host resources, above the runtime
    {207000, 299999, true},   // device resources
    {500000, 599999, true},   // the device itself
};

bool sets_last_error(int code) {
    for (const Origin& origin : kOrigins) {
        if (code >= origin.first && code <= origin.last) return origin.sets_last_error;
    }
    return false;
}

}  // namespace

void report(const std::string& why) {
    recent.insert(0, why + "\n");
    if (recent.size() > kLongestText) recent.resize(kLongestText);
}

int fail(int code, const std::string& why) {
    if (sets_last_error(code)) last_error = code;
    report(text("E", code, ": ", why));
    return code;
}

void fatal(const std::string& why) {
    std::fprintf(stderr, "poolproof emulator: %s\n", why.c_str());
    std::abort();
}

}  // namespace emulator

using namespace emulator;

// Gets and clears, as its page says; the text stays readable until the next call.
extern "C" const char* aclGetRecentErrMsg() {
    static thread_local std::string taken;
    taken.clear();
    taken.swap(recent);
    return taken.empty() ? nullptr : taken.c_str();
}

extern "C" aclError aclrtPeekAtLastError(int level) {
    return level == 0 ? last_error : fail(status::kInvalidParam, text("error level ", level, " is not the thread's"));
}

extern "C" aclError aclrtGetLastError(int level) {
    const int error = aclrtPeekAtLastError(level);
    last_error = status::kSuccess;
    return error;
}

// A line for the log files of the real runtime, of which there are none here.
extern "C" void aclAppLog(int, const char*, const char*, uint32_t, const char*, ...) {}
