// Options of the operator compiler: kept for those who ask, without effect, for nothing is compiled.
#include <map>
#include <mutex>
#include <string>

#include "../ascendcl/errors.h"

namespace emulator {
namespace {

struct CompileOptions {
    std::mutex mutex;
    std::map<int, std::string> values;
};

CompileOptions& compile_options() {
    static CompileOptions& instance = *new CompileOptions;
    return instance;
}

std::string compile_option(int option) {
    const std::lock_guard lock(compile_options().mutex);
    const auto found = compile_options().values.find(option);
    return found == compile_options().values.end() ? "disable" : found->second;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" int aclSetCompileopt(int option, const char* value) {
    if (value == nullptr) return fail(status::kInvalidParam, "aclSetCompileopt: value is null");
    const std::lock_guard lock(compile_options().mutex);
    compile_options().values[option] = value;
    return status::kSuccess;
}

// With the zero at the end.
extern "C" size_t aclGetCompileoptSize(int option) { return compile_option(option).size() + 1; }

extern "C" int aclGetCompileopt(int option, char* value, size_t capacity) {
    const std::string text = compile_option(option);
    if (value == nullptr || capacity <= text.size())
        return fail(status::kInvalidParam, "aclGetCompileopt: no room for the value");
    text.copy(value, text.size());
    value[text.size()] = '\0';
    return status::kSuccess;
}
