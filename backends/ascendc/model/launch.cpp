// The launch: blocks and threads of a kernel as coroutines, in the order that is asked, and what they are given.
#include <setjmp.h>
#include <ucontext.h>

#include <memory>
#include <numeric>
#include <random>

#include "simt.h"
#include "watch.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace model {

// A stack that is kept for the next work. Switching costs no system call: setjmp after the first start.
class Fiber {
public:
    void start(std::function<void()> work) { work_ = std::move(work), is_done_ = false; }
    bool is_done() const { return is_done_; }

    void resume() {
        Fiber* const outer = std::exchange(running_, this);
        if (!_setjmp(caller_)) {
            if (stack_) _longjmp(here_, 1);
            constexpr size_t bytes = 256 << 10;
            stack_.reset(new uint8_t[bytes]);
            getcontext(&context_);
            context_.uc_stack.ss_sp = stack_.get();
            context_.uc_stack.ss_size = bytes;
            makecontext(&context_, &Fiber::run, 0);
            setcontext(&context_);
        }
        running_ = outer;
    }
    static void yield() {
        Fiber* const self = running_;
        if (!_setjmp(self->here_)) _longjmp(self->caller_, 1);
    }

private:
    static void run() {
        for (;; yield()) {
            try { running_->work_(); } catch (const std::bad_alloc&) { memory_is_short = true; }
            running_->is_done_ = true;
        }
    }

    static Fiber* running_;
    std::function<void()> work_;
    bool is_done_ = true;
    std::unique_ptr<uint8_t[]> stack_;
    ucontext_t context_{};
    jmp_buf here_, caller_;
};
Fiber* Fiber::running_ = nullptr;

namespace {

std::vector<Zeros<Block>> shadows;
std::vector<std::unique_ptr<Fiber>> block_fibers, thread_fibers;
bool key_was_asked = false, key_was_found = false, threads_ran = false;
}  // namespace

CopyState& copy_state() { return core->copies; }
Buffers& buffers_of_core() { return core->buffers; }
bool& in_vector_function() { return core->in_vector_function; }
Extent take_buffer(uint64_t bytes) {
    uint8_t* const begin = core->ub + std::min(core->buffers.used, ub_step);
    core->buffers.used += (bytes + block_bytes - 1) / block_bytes * block_bytes;  // [InitBuffer: len]
    if (core->buffers.used > launch->ub_bytes) report("memcheck", "InitBuffer takes more than UB has", begin);
    core->buffers.ends.push_back(core->ub + core->buffers.used);
    return {begin, core->buffers.ends.back()};
}
void sync_all() { Fiber::yield(); }

// ---- Threads. ----

void run_threads(dim3 threads, const std::function<void()>& body) {
    begin(Pipe::vector, "SIMT function", Site("", 0));
    threads_ran = true;
    const uint32_t count = threads.x * threads.y * threads.z;
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    if (launch->thread_seed) std::shuffle(order.begin(), order.end(), std::mt19937_64(launch->thread_seed));
    blockDim = threads, gridDim = dim3(launch->blocks), blockIdx = dim3(core->index);
    const auto enter = [&](uint32_t thread) {
        thread_number = static_cast<uint16_t>(thread + 1);
        threadIdx = dim3(thread % threads.x, thread / threads.x % threads.y, thread / threads.x / threads.y);
    };
    uint32_t next = 0, ended = 0;
    const auto work = [&] {
        for (; next < count; ++ended) enter(order[next++]), body();
    };
    std::vector<std::pair<Fiber*, uint32_t>> waiting, resumed;
    release(Pipe::vector), ++thread_epoch;
    for (size_t fiber = 0; next < count; ++fiber) {  // a fiber goes from thread to thread until one of them waits
        if (fiber == thread_fibers.size()) thread_fibers.push_back(std::make_unique<Fiber>());
        thread_fibers[fiber]->start(work);
        thread_fibers[fiber]->resume();
        if (!thread_fibers[fiber]->is_done()) waiting.emplace_back(thread_fibers[fiber].get(), thread_number - 1);
    }
    while (!waiting.empty()) {
        if (ended) report("synccheck", "__syncthreads that not every thread of the block reaches: a hang");
        release(Pipe::vector), ++thread_epoch;
        resumed.swap(waiting);
        waiting.clear();
        for (const auto& [fiber, thread] : resumed) {
            enter(thread);
            fiber->resume();
            if (!fiber->is_done()) waiting.emplace_back(fiber, thread);
        }
    }
    thread_number = 0;
    release(Pipe::vector);
}
void sync_threads() { Fiber::yield(); }

bool is_tiling_key(uint64_t key) {
    key_was_asked = true;
    key_was_found = key_was_found || key == launch->tiling_key;
    return key == launch->tiling_key;
}
void copy_tiling(void* to, const void* from, uint64_t bytes) {
    if (find_tensor(from, bytes)) std::memcpy(to, from, bytes);
    else add_finding("launchcheck", "the tiling data are shorter than the kernel's struct", nullptr, 0);
}

// ---- The launch. ----

namespace {

void prepare() {
    constexpr uint64_t slack = 64 << 10, page = 4096;
    static Zeros<uint8_t[page]> arena;
    ub_step = (launch->ub_bytes + slack) / page * page;
    arena.grow((launch->blocks + 1) * ub_step / page);
    ub_of_threads.buffer = {"UB", nullptr, ub_step, 2, workspace}, ub_of_threads.is_written = true;
    ub_of_threads.cells.grow(ub_step / 2);
    tensors.resize(launch->buffer_count);
    for (uint32_t i = 0; i < launch->buffer_count; ++i) {
        const Buffer& buffer = tensors[i].buffer = launch->buffers[i];
        tensors[i].is_written = buffer.role == output || buffer.role == workspace;
        if (tensors[i].is_written) tensors[i].cells.grow(buffer.bytes / buffer.itemsize + 1);
    }
    operations.assign(1, {"", Site("", 0), 0});
    findings.clear();
    key_was_asked = key_was_found = threads_ran = memory_is_short = false;
    first_phase = ++phase, ++launch_number;
    shadows.resize(std::max<size_t>(shadows.size(), launch->blocks));
    cores.assign(launch->blocks, Core());
    const uint64_t base = (reinterpret_cast<uint64_t>(&arena[0]) + page - 1) / page * page;
    for (uint32_t i = 0; i < launch->blocks; ++i) {
        if (i == block_fibers.size()) block_fibers.push_back(std::make_unique<Fiber>());
        shadows[i].grow(ub_step / block_bytes);
        cores[i].index = i, cores[i].blocks = shadows[i], cores[i].fiber = block_fibers[i].get();
        cores[i].ub = reinterpret_cast<uint8_t*>(base + i * ub_step);
    }
}

void finish_core() {
    end_queues();
    if (core->copies.keeps_infinities) {
        add_finding("launchcheck", "CTRL[48] is not set back: later kernels compute otherwise", nullptr, core->copies.ctrl_call);
    }
    for (const auto& of_pipe : core->flags) for (const auto& flags : of_pipe) for (const Flag& flag : flags) {
        if (flag.is_set) add_finding("synccheck", "SetFlag without WaitFlag: the next kernel finds it set", nullptr, flag.operation);
    }
}

void run_blocks() {
    std::vector<uint8_t*> arguments;
    for (const Tensor& tensor : tensors) arguments.push_back(tensor.buffer.data);
    for (Core& each : cores) each.fiber->start([&] { ascendc_entry(arguments.data()); });
    for (bool is_over = false; !is_over; ++phase) {
        Core *missing = nullptr, *waits = nullptr;
        for (uint32_t k = 0; k < launch->blocks; ++k) {
            core = &cores[launch->order ? launch->order[k] : k];
            if (!core->fiber->is_done()) {
                core->fiber->resume();
                if (core->fiber->is_done()) finish_core();
            }
            (core->fiber->is_done() ? missing : waits) = core;
        }
        if (missing && waits) {
            const std::string who = "core " + std::to_string(missing->index);
            add_finding("synccheck", who + " ends without this SyncAll: the others wait for ever", nullptr, waits->operation);
        }
        for (Core& each : cores) core = &each, barrier_all();
        is_over = !waits;
    }
    core = nullptr;
}
}  // namespace
}  // namespace model

namespace AscendC {
uint32_t GetBlockIdx() { return model::core->index; }
uint32_t GetBlockNum() { return model::launch->blocks; }
}  // namespace AscendC

using namespace model;

extern "C" int ascendc_launch(const Launch* request) {
    launch = request;
    prepare();
    run_blocks();
    check_outputs();
    if (key_was_asked && !key_was_found) {
        add_finding("launchcheck", "a tiling key that no branch serves: " + std::to_string(launch->tiling_key), nullptr, 0);
    }
    return memory_is_short ? 2 : threads_ran && !is_watched;
}
