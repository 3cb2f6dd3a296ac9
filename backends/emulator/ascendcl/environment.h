// The emulator's own settings, read from the environment.
#pragma once

#include <cstdint>
#include <string>

namespace emulator {

// Value of the variable, `fallback` where it is unset or empty.
std::string environment(const char* name, const char* fallback);

// The same as a positive whole number; anything else aborts with a message that names the variable.
int64_t environment_number(const char* name, int64_t fallback);

}  // namespace emulator
