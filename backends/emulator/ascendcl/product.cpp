#include "product.h"

#include <string>

#include "environment.h"
#include "errors.h"

namespace emulator {
namespace {

constexpr int64_t kKiB = 1024;

// Buffers and core counts are those of the library's tiling tests and of the published chips; which of the two
// common core counts an A2 or A3 has differs by model, so each gets one. Guard and system workspace: memory page
// and workspace page of the runtime.
constexpr ProductFacts kProducts[] = {
    {Product::kA2, "A2", "Ascend910B1", true, false, 48, 24, 192 * kKiB, 32, 0, true},
    {Product::kA3, "A3", "Ascend910_9382", true, false, 40, 20, 192 * kKiB, 32, 0, true},
    {Product::k950, "950", "Ascend950PR_9591", false, true, 64, 32, 240 * kKiB, 0, 16 * kKiB * kKiB, true},
    {Product::k910, "910", "Ascend910A", false, false, 32, 32, 256 * kKiB, 0, 0, false},
    {Product::k310P, "310P", "Ascend310P3", false, false, 8, 8, 256 * kKiB, 0, 0, false},
    {Product::k310B, "310B", "Ascend310B1", false, false, 1, 1, 256 * kKiB, 0, 0, true},
};

const ProductFacts& choose() {
    const std::string name = environment("POOLPROOF_EMULATOR_PRODUCT", "A2");
    for (const ProductFacts& facts : kProducts) {
        if (name == facts.name) return facts;
    }
    fatal(text("POOLPROOF_EMULATOR_PRODUCT=", name, " is none of A2, A3, 950, 910, 310P, 310B"));
}

}  // namespace

const ProductFacts& product() {
    static const ProductFacts chosen = [] {
        ProductFacts facts = choose();
        if (facts.system_workspace > 0) {
            const auto usual = static_cast<int64_t>(facts.system_workspace);
            facts.system_workspace = environment_number("POOLPROOF_EMULATOR_SYSTEM_WORKSPACE", usual);
        }
        return facts;
    }();
    return chosen;
}

}  // namespace emulator
