// Switches that make the emulator wrong on purpose, one fault each, so that the suite above can be scored.
#pragma once

#include <array>
#include <cstddef>

namespace emulator {

enum class Defect {
#define DEFECT(id, group, clause, trigger, severity, difficulty, products) id,
#include "seeds.def"
#undef DEFECT
    kCount
};

constexpr size_t kDefects = static_cast<size_t>(Defect::kCount);

// Chosen by POOLPROOF_EMULATOR_DEFECTS, a comma separated list of ids, when the library is loaded; an unknown id
// aborts. A plain array, because kernels ask for every element.
extern const std::array<bool, kDefects> defect_switches;

// Whether any defect is seeded at all: the one test that honest code pays for.
extern const bool has_defects;

inline bool seeded(Defect defect) {
    return __builtin_expect(has_defects, false) && defect_switches[static_cast<size_t>(defect)];
}

}  // namespace emulator
