// What went wrong, told twice: as a code to the caller and as a text to whoever asks aclGetRecentErrMsg.
#pragma once

#include <string>

#include "status.h"
#include "text.h"

namespace emulator {

// Puts `why` in front of this thread's error text.
void report(const std::string& why);

// Reports and returns `code`. Where the runtime proper decides on it, it becomes this thread's last error.
int fail(int code, const std::string& why);

// For misuse that no status can report, such as a malformed environment variable: says so and aborts.
[[noreturn]] void fatal(const std::string& why);

}  // namespace emulator
