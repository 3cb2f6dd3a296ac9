// Which chip is emulated, and the facts about it that statuses, routes and core splits depend on.
#pragma once

#include <cstdint>

namespace emulator {

// A2 and A3 share an architecture and every code path; 950 has its own; the others only ever refuse.
enum class Product { kA2, kA3, k950, k910, k310P, k310B };

struct ProductFacts {
    Product product;
    const char* name;
    const char* soc_name;
    bool is_220;  // A2 or A3
    bool is_950;
    int vector_cores;
    int cube_cores;
    int64_t buffer_bytes;       // unified buffer of one vector core
    uint64_t allocation_guard;  // bytes that the runtime adds behind every allocation
    uint64_t system_workspace;  // bytes of every workspace that belong to the runtime
    bool has_bfloat16;
};

// Chosen by POOLPROOF_EMULATOR_PRODUCT at first use.
const ProductFacts& product();

}  // namespace emulator
