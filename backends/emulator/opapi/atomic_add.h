// Additions to shared cells, as the cores' atomic units make them: indivisible, in no fixed order.
#pragma once

#include "numeric.h"

namespace emulator {

// Replaces the bits at `target` by update(bits), retrying until no other thread came between.
template <class Bits, class Update>
void atomic_update(Bits* target, Update update) {
    Bits seen = __atomic_load_n(target, __ATOMIC_RELAXED);
    while (true) {
        const Bits next = update(seen);
        if (__atomic_compare_exchange_n(target, &seen, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
    }
}

inline void atomic_add(float* target, float addend) {
    atomic_update(reinterpret_cast<uint32_t*>(target), [addend](uint32_t bits) {
        const float sum = bits_as<float>(bits) + addend;
        const bool flushes = seeded(Defect::atomic_add_flushes) && std::fpclassify(sum) == FP_SUBNORMAL;
        return bits_as<uint32_t>(flushes ? 0.0f : sum);
    });
}

}  // namespace emulator
