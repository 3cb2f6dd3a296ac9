// A model of Ascend C on the CPU: what a kernel's source includes. Keywords and macros of the language, tiling data and keys;
// the API itself by subject: types, memory, pipes, queues, copies, vector, registers and threads (950).
#pragma once
#define __global__
#define __aicore__
#define __gm__
#define __ubuf__
#define __local_mem__
#define __vector__
#define __mix__(cube, vector)
#define __simd_vf__
#define __simd_callee__
#define __simt_vf__
#define __simt_callee__
#define __inout_pipe__(pipe)
#define __launch_bounds__(threads)
#define LAUNCH_BOUND(threads)
#define GM_ADDR uint8_t*
#define likely(condition) (condition)
#define unlikely(condition) (condition)
#ifndef ASSERT
#define ASSERT(condition)
#endif

#include "queues.h"
#include "vector.h"
#if __CCE_AICORE__ == 310
#include "simt.h"
#endif

constexpr int AIC = 1, AIV = 2, g_coreType = AIV;
#define ASCEND_IS_AIV constexpr(g_coreType == AIV)
#define ASCEND_IS_AIC constexpr(g_coreType == AIC)

namespace model {
bool is_tiling_key(uint64_t key);
void copy_tiling(void* to, const void* from, uint64_t bytes);
}  // namespace model
#define TILING_KEY_IS(key) (::model::is_tiling_key(static_cast<uint64_t>(key)))
#define GET_TILING_DATA_WITH_STRUCT(Type, name, address) \
    Type name;                                           \
    ::model::copy_tiling(&name, address, sizeof name)
#define GET_TILING_DATA(name, address) GET_TILING_DATA_WITH_STRUCT(ASCENDC_TILING_STRUCT, name, address)
#define REGISTER_TILING_DEFAULT(Type)
#define REGISTER_TILING_FOR_TILINGKEY(condition, Type)
#define KERNEL_TASK_TYPE_DEFAULT(type)
#define KERNEL_TASK_TYPE(key, type)
#define ASCENDC_TPL_ARGS_DECL(...)
#define ASCENDC_TPL_SEL(...)

namespace AscendC {
uint32_t GetBlockIdx();
uint32_t GetBlockNum();
template <class T, class U> constexpr uint64_t AlignUp(T value, U unit) {
    return unit ? (static_cast<uint64_t>(value) + unit - 1) / unit * unit : value;
}
constexpr int32_t CeilDivision(int32_t value, int32_t unit) { return (value + unit - 1) / unit; }  // [CeilDivision]
constexpr uint32_t Ceil(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit; }  // as CeilDivision, in no document
constexpr uint32_t F32_NEG_INF = 0xff800000;
inline uint8_t* GetUserWorkspace(uint8_t* workspace) { return workspace; }
}  // namespace AscendC
using AscendC::GetUserWorkspace;
using AscendC::TPipe;
