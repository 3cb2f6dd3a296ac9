// Settings of the device that kernels depend on.
#pragma once

namespace emulator {

// Whether narrowing casts clamp to the largest finite value instead of overflowing to infinity.
bool saturates();

}  // namespace emulator
