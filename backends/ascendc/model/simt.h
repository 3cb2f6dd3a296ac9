// Threads of 950 (SIMT): the body of a vector function runs once for each thread of a block, one after another in an order
// drawn by the launch; __syncthreads is a real barrier. Threads use memory through plain pointers: what they load and store is
// seen where the kernel is compiled with -fsanitize=thread, whose calls watch.cpp answers instead of that sanitizer's library.
#pragma once
#include <functional>
#include <limits>

#include "registers.h"

struct dim3 {
    uint32_t x, y, z;
    constexpr dim3(uint32_t x = 1, uint32_t y = 1, uint32_t z = 1) : x(x), y(y), z(z) {}
};
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace model {
void run_threads(dim3 threads, const std::function<void()>& body);
void sync_threads();
void add_atomically(void* to, void* before, const void* term, Addition addition);  // to one element of UB or GM
}  // namespace model

using std::isnan;
inline void __syncthreads() { model::sync_threads(); }
inline void asc_syncthreads() { model::sync_threads(); }
inline void asc_threadfence() {}
inline void asc_threadfence_block() {}
#define __builtin_cce_dcci(...)

// [asc_vf_call]: with a number of threads a SIMT function, without one a SIMD function.
template <auto function, class First, class... Arguments> void asc_vf_call(First first, Arguments... arguments) {
    if constexpr (std::is_same<First, dim3>::value) {
        model::run_threads(first, [=]() __attribute__((no_sanitize("thread"))) { function(arguments...); });
    } else {
        const model::VectorFunction scope;
        function(first, arguments...);
    }
}

// [asc_atomic_add]: answers what was there before.
template <class T> T asc_atomic_add(T* to, model::Same<T> term) {
    T before;
    model::add_atomically(to, &before, &term, model::addition_of<T>);
    return before;
}

namespace AscendC {
// Division by multiplication and shift: q = (high half of n * magic + n) >> shift.
template <class T> void GetUintDivMagicAndShift(T& magic, T& shift, model::Same<T> divisor) {
    using Wide = unsigned __int128;
    for (shift = 0; divisor && (Wide{1} << shift) < divisor;) ++shift;
    magic = divisor ? static_cast<T>((((Wide{1} << shift) - divisor) << sizeof(T) * 8) / divisor + 1) : 0;
}
template <class T> struct NumericLimits {  // [NumericLimits]
    static T NegativeInfinity() { return static_cast<T>(-std::numeric_limits<float>::infinity()); }
};
namespace Simt {
using Dim3 = dim3;
inline bool IsNan(float value) { return value != value; }  // [IsNan]
inline uint32_t GetBlockIdx() { return ::blockIdx.x; }
inline uint32_t GetBlockNum() { return ::gridDim.x; }
inline uint32_t GetThreadNum() { return ::blockDim.x * ::blockDim.y * ::blockDim.z; }
inline uint32_t GetThreadIdx() { return ::threadIdx.x + ::blockDim.x * (::threadIdx.y + ::blockDim.y * ::threadIdx.z); }
template <class T> T UintDiv(T dividend, T magic, T shift) {
    const auto high = static_cast<T>(static_cast<unsigned __int128>(dividend) * magic >> sizeof(T) * 8);
    return static_cast<T>(static_cast<T>(dividend + high) >> shift);
}
template <auto function, class... Arguments>
void VF_CALL(Dim3 threads, Arguments... arguments) { asc_vf_call<function>(threads, arguments...); }
}  // namespace Simt
}  // namespace AscendC
