// aclInit, aclFinalize and their count of users.
#include <mutex>

#include "abi.h"
#include "errors.h"

namespace emulator {
namespace {

std::mutex mutex;
uint64_t users = 0;
bool finalised = false;

int not_initialised() {
    return finalised ? fail(status::kRepeatFinalise, "aclFinalize was called before")
                     : fail(status::kUninitialised, "aclInit was not called");
}

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" aclError aclInit(const char*) {
    const std::lock_guard lock(mutex);
    finalised = false;
    if (++users == 1) return status::kSuccess;
    return fail(status::kRepeatInitialise, "aclInit was called before, which does no harm");
}

extern "C" aclError aclFinalizeReference(uint64_t* left) {
    const std::lock_guard lock(mutex);
    if (users == 0) return not_initialised();
    --users;
    finalised = users == 0;
    if (left != nullptr) *left = users;
    return status::kSuccess;
}

extern "C" aclError aclFinalize() {
    const std::lock_guard lock(mutex);
    if (users == 0) return not_initialised();
    users = 0;
    finalised = true;
    return status::kSuccess;
}
