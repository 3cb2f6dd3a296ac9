// Threads of 950 (SIMT): the body of a vector function runs once for each thread of a block, one after another in an order drawn by
// the launch; __syncthreads is a real barrier. Threads use memory through plain pointers: what they load and store is seen where
// the kernel is compiled with -fsanitize=thread, whose calls runtime.cpp answers instead of that sanitizer's library.
#pragma once
#include <functional>

#include "registers.h"

struct dim3 {
    uint32_t x, y, z;
    constexpr dim3(uint32_t x = 1, uint32_t y = 1, uint32_t z = 1) : x(x), y(y), z(z) {}
};
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace model {
void run_threads(dim3 threads, const std::function<void()>& body);
void sync_threads();
void add_atomically(void* to, const void* value, uint32_t bytes, Addition add);  // one element of UB or GM
}  // namespace model

inline void __syncthreads() { model::sync_threads(); }
inline void asc_syncthreads() { model::sync_threads(); }
inline void asc_threadfence() {}
inline void asc_threadfence_block() {}
#define __builtin_cce_dcci(...)

// [asc_vf_call]: with a number of threads a SIMT function, without one a SIMD function.
template <auto function, class... Arguments>
void asc_vf_call(dim3 threads, Arguments... arguments) { model::run_threads(threads, [=] { function(arguments...); }); }
template <auto function, class First, class... Arguments, class = std::enable_if_t<!std::is_same<std::decay_t<First>, dim3>::value>>
void asc_vf_call(First first, Arguments... arguments) {
    model::enter_vector_function();
    function(first, arguments...);
}

// [asc_atomic_add]: answers what was there before.
template <class T>
T asc_atomic_add(T* to, model::Same<T> value) {
    T before;
    std::memcpy(&before, to, sizeof(T));
    model::add_atomically(to, &value, sizeof(T), [](void* total, const void* term) {
        T sum, addend;
        std::memcpy(&sum, total, sizeof(T)), std::memcpy(&addend, term, sizeof(T));
        sum = model::add(sum, addend);
        std::memcpy(total, &sum, sizeof(T));
    });
    return before;
}

namespace AscendC {
// Division by multiplication and shift, of 32 or 64 bits: q = (high half of n * magic + n) >> shift.
template <class T>
void GetUintDivMagicAndShift(T& magic, T& shift, model::Same<T> divisor) {
    using Wide = unsigned __int128;
    constexpr int bits = sizeof(T) * 8;
    shift = 0;
    while (divisor && (Wide{1} << shift) < divisor) ++shift;
    magic = divisor ? static_cast<T>((((Wide{1} << shift) - divisor) << bits) / divisor + 1) : 0;
}
namespace Simt {
using Dim3 = dim3;
inline uint32_t GetBlockIdx() { return ::blockIdx.x; }
inline uint32_t GetBlockNum() { return ::gridDim.x; }
inline uint32_t GetThreadNum() { return ::blockDim.x * ::blockDim.y * ::blockDim.z; }
inline uint32_t GetThreadIdx() { return ::threadIdx.x + ::blockDim.x * (::threadIdx.y + ::blockDim.y * ::threadIdx.z); }
template <class T>
T UintDiv(model::Same<T> dividend, model::Same<T> magic, model::Same<T> shift) {
    const auto high = static_cast<T>(static_cast<unsigned __int128>(dividend) * magic >> sizeof(T) * 8);
    return static_cast<T>(static_cast<T>(dividend + high) >> shift);
}
template <auto function, class... Arguments>
void VF_CALL(Dim3 threads, Arguments... arguments) { asc_vf_call<function>(threads, arguments...); }
}  // namespace Simt
}  // namespace AscendC
