#include "untidy.h"

#include <unistd.h>

#include <cfenv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "../ascendcl/defects.h"

namespace emulator {
namespace {

// Host code that averages subnormals fast switches them off, and not on again.
void flush_to_zero() {
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8000U);
#elif defined(__aarch64__)
    uint64_t control = 0;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    asm volatile("msr fpcr, %0" : : "r"(control | (uint64_t{1} << 24)));
#endif
}

void ignore_signal(int) {}

}  // namespace

void leave_behind(const PoolPlan& plan) {
    if (seeded(Defect::rounding_mode_kept) && plan.problem.value == ACL_FLOAT16) std::fesetround(FE_UPWARD);
    if (seeded(Defect::flush_to_zero_kept) && plan.problem.value == ACL_BF16) flush_to_zero();
    if (seeded(Defect::folder_changed) && plan.is_empty && chdir("/") != 0) std::abort();
    const bool is_large_forward = !plan.is_empty && !plan.family->is_backward && plan.problem.planes() > 16;
    if (seeded(Defect::handler_replaced) && is_large_forward) std::signal(SIGFPE, ignore_signal);
    if (seeded(Defect::thread_left_behind) && plan.branch.has_scratch) {
        std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach();
    }
}

}  // namespace emulator
