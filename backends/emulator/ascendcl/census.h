// Counts the objects that callers create and must destroy, so that a test can tell a leak.
#pragma once

#include <cstdint>

namespace emulator {

enum class Kind { kTensor, kIntArray, kExecutor, kStream, kEvent, kContext, kDeviceBlock, kHostBlock, kCount };

void born(Kind kind);
void gone(Kind kind);

}  // namespace emulator
