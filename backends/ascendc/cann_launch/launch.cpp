// Launches a kernel once: the words are the prefix of files, one for each argument, how many blocks, and the tiling key.
// [asc-devkit, API reference, CPU twin debugging: ICPU_RUN_KF, ICPU_SET_TILING_KEY, SetKernelMode, GmAlloc]
#include <fstream>
#include <string>
#include <utility>

#include "tikicpulib.h"

extern "C" void ascendc_entry(uint8_t** arguments);

template <size_t> using Argument = uint8_t*;
template <size_t... i> void call_entry(Argument<i>... arguments)
{
    uint8_t* all[] = {arguments...};
    ascendc_entry(all);
}

template <size_t... i> void launch(char** words, std::index_sequence<i...>)
{
    std::fstream files[] = {std::fstream(words[1] + std::to_string(i), std::ios::binary | std::ios::ate | std::ios::in | std::ios::out)...};
    const size_t sizes[] = {static_cast<size_t>(files[i].tellg())...};
    // GmAlloc lets memory end where a page ends: whole blocks of 32 bytes begin on an address that copies take.
    uint8_t* memory[] = {static_cast<uint8_t*>(AscendC::GmAlloc((sizes[i] + 31) / 32 * 32))...};
    (files[i].seekg(0).read(reinterpret_cast<char*>(memory[i]), sizes[i]), ...);
    AscendC::SetKernelMode(KernelMode::AIV_MODE);
    ICPU_SET_TILING_KEY(std::stoull(words[3]));
    ICPU_RUN_KF(call_entry<i...>, std::stoul(words[2]), memory[i]...);
    (files[i].seekp(0).write(reinterpret_cast<char*>(memory[i]), sizes[i]), ...);
    (AscendC::GmFree(memory[i]), ...);
}

int main(int, char** words) { launch(words, std::make_index_sequence<ARGUMENT_COUNT>()); }
