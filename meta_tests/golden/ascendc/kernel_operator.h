#pragma once
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <iostream>
#include <string>

#include "kernel_tiling/kernel_tiling.h"
#define __global__
#define __aicore__
#define __gm__
#define GM_ADDR uint8_t*
enum class KernelMode { MIX_MODE = 0, AIC_MODE, AIV_MODE };
namespace AscendC {
inline uint64_t block, blocks, key;
inline SoftMaxTiling of_the_toolkit;
inline uint64_t GetBlockIdx() { return block; }
inline uint64_t GetBlockNum() { return blocks; }
inline void SetKernelMode(KernelMode) {}
inline void* GmAlloc(size_t bytes) { return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); }
inline void GmFree(void*) {}
template <class T> struct GlobalTensor {
    T* data;
    void SetGlobalBuffer(T* memory) { data = memory; }
    T GetValue(uint64_t i) { return data[i]; }
    void SetValue(uint64_t i, T value) { data[i] = value; }
};
inline void run(uint64_t count, const std::function<void()>& kernel)
{
    for (blocks = count, block = 0; block < count; ++block) {
        const int pid = fork();
        if (!pid) kernel(), _exit(0);
        int status = 0;
        waitpid(pid, &status, 0);
        const std::string who = "[AIV_" + std::to_string(block) + "][pid " + std::to_string(pid) + "] ";
        if (status == 0) std::cout << "[SUCCESS]" << who << "exit success!" << std::endl;
        else std::cout << "[ERROR]" << who << "error happened!" << std::endl;
    }
}
}
#define TILING_KEY_IS(asked) (AscendC::key == asked)
#define ICPU_SET_TILING_KEY(asked) AscendC::key = asked
#define ICPU_RUN_KF(function, count, ...) AscendC::run(count, [&] { function(__VA_ARGS__); })
