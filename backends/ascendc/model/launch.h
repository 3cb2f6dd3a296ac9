// The launch of a kernel as Python sees it (ctypes): buffers, blocks and their order, and the findings that come back.
#pragma once
#include <cstdint>

namespace model {
enum Role : uint32_t { input, output, workspace, tiling };

struct Buffer {
    const char* name;
    uint8_t* data;
    uint64_t bytes;
    uint32_t itemsize;
    uint32_t role;
};

struct Launch {
    uint32_t blocks;
    const uint32_t* order;  // in which order blocks run between two barriers; nullptr: as they are numbered
    uint64_t thread_seed;   // 0: threads run as they are numbered
    uint64_t tiling_key;
    uint64_t ub_bytes;
    uint32_t poison;        // the byte of UB that was never written
    uint32_t auto_sync;     // the kernel is compiled with --cce-auto-sync
    uint32_t buffer_count;
    const Buffer* buffers;
};
}  // namespace model

extern "C" {
void ascendc_entry(uint8_t** arguments);          // the launcher's: calls the kernel once, with the buffers in their order
int ascendc_launch(const model::Launch* launch);  // 0; 1: it ran threads, which only -fsanitize=thread lets us watch;
                                                  // 2: it was given up, for it takes more memory than there is
const char* ascendc_findings();       // of the last launch: [{"kind","text","tensor","byte","core","call","count"}]
int ascendc_assume(const char* name, int is_on);  // whether it was on until now; -1: there is no such assumption
}
