// System parameters such as the determinism level, at process scope and per context.
#pragma once

#include <cstdint>
#include <map>

#include "abi.h"

namespace emulator {

class Context;

// Per context; read back, but without effect on aclnn, which asks the process scope only.
using ContextOptions = std::map<int32_t, int64_t>;

// The level that phase one captures: 0 off, 1 deterministic, 2 strong consistency, 3 batch consistency.
int64_t determinism_level();

}  // namespace emulator
