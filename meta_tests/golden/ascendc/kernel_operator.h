#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#define __global__
#define __aicore__
#define __gm__
#define GM_ADDR uint8_t*
enum class KernelMode { MIX_MODE = 0, AIC_MODE, AIV_MODE };
namespace AscendC {
inline uint64_t block, blocks, key;
inline uint64_t GetBlockIdx() { return block; }
inline uint64_t GetBlockNum() { return blocks; }
inline void SetKernelMode(KernelMode) {}
inline void* GmAlloc(size_t bytes) { return malloc(bytes); }
inline void GmFree(void* memory) { free(memory); }
template <class T> struct GlobalTensor {
    T* data;
    void SetGlobalBuffer(T* memory) { data = memory; }
    T GetValue(uint64_t i) { return data[i]; }
    void SetValue(uint64_t i, T value) { data[i] = value; }
};
}
#define TILING_KEY_IS(asked) (AscendC::key == asked)
#define ICPU_SET_TILING_KEY(asked) AscendC::key = asked
#define ICPU_RUN_KF(function, count, ...) \
    for (AscendC::blocks = count, AscendC::block = 0; AscendC::block < count; ++AscendC::block) function(__VA_ARGS__)
