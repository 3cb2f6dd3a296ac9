#include "environment.h"

#include <cstdlib>

#include "errors.h"

namespace emulator {

std::string environment(const char* name, const char* fallback) {
    const char* value = std::getenv(name);
    return value == nullptr || *value == '\0' ? fallback : value;
}

int64_t environment_number(const char* name, int64_t fallback) {
    const std::string value = environment(name, "");
    if (value.empty()) return fallback;
    char* end = nullptr;
    const long long number = std::strtoll(value.c_str(), &end, 10);
    if (*end != '\0' || number <= 0) fatal(text(name, "=", value, " is not a positive whole number"));
    return number;
}

}  // namespace emulator
