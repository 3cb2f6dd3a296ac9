#include "census.h"

#include <array>
#include <atomic>
#include <cstring>

namespace emulator {
namespace {

constexpr int kKinds = static_cast<int>(Kind::kCount);
constexpr const char* kNames[kKinds] = {"tensors", "int_arrays", "executors",     "streams",
                                        "events",  "contexts",   "device_blocks", "host_blocks"};

std::array<std::atomic<int64_t>, kKinds> living{};

}  // namespace

void born(Kind kind) { ++living[static_cast<int>(kind)]; }
void gone(Kind kind) { --living[static_cast<int>(kind)]; }

}  // namespace emulator

// How many objects of a kind exist ("tensors", "executors", ...); -1 for an unknown kind.
extern "C" int64_t poolproof_emulator_living(const char* kind) {
    for (int i = 0; i < emulator::kKinds; ++i) {
        if (std::strcmp(kind, emulator::kNames[i]) == 0) return emulator::living[i];
    }
    return -1;
}
