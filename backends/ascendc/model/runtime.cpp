// The runtime: blocks and threads as coroutines, what is known of every byte of UB and GM, and the findings. Shadows are not
// cleared: blocks of UB carry the number of the launch that touched them, elements of GM the phase, and both only grow.
#include <setjmp.h>
#include <ucontext.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <string>

#include "launch.h"
#include "queues.h"
#include "simt.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace model {
namespace {

// ---- What is assumed where no document decides, or where one document is relied on against the practice of others. ----

struct AssumptionRow {
    const char* name;
    bool is_on;
    const char* says;
    const char* source;
} table[assumption_count] = {
    {"vector_pipe_in_order", true, "vector instructions follow each other without PipeBarrier<PIPE_V>",
     "asc-devkit, intra-core synchronisation, key features: on 950 by hardware, on A2 and A3 by the compiler (--cce-auto-sync)"},
    {"scalar_accesses_synced", true, "GetValue and SetValue are ordered with the other pipes without flags",
     "asc-devkit, intra-core synchronisation, key features, table 3: the compiler inserts flags between S and V, MTE2, MTE3"},
    {"scalar_wait_holds_issue", true, "what the scalar unit waited for is done before any instruction that it issues later",
     "asc-devkit, principles of TPipe-TQue programming: the scalar unit issues all instructions, in program order"},
    {"sync_all_waits_for_all_pipes", true, "SyncAll waits for all pipes of all cores, and holds all of them",
     "asc-devkit, SyncAll, table 1: DEFAULT_SYNC_ALL_CONFIG is {PIPE_ALL, PIPE_ALL}; for A2 and A3 the page names no pipe"},
    {"registers_keep_order", false, "within a vector function a load waits for the stores before it without LocalMemBar",
     "asc-devkit, LocalMemBar: only where both use the same register, which the compiler decides, not the source"},
    {"infinities_saturate", false, "narrowing to half or bfloat16 gives the largest value for infinities and 0 for NaN",
     "asc-devkit, SetCtrlSpr: CTRL[48] saturates at reset; CANN 8.5, set_device_sat_mode: A2 and A3 run in Inf/NaN mode"},
    {"integers_saturate", true, "a cast to an integer that does not hold the value gives the nearest bound",
     "asc-devkit, precision conversion: overflow saturates; SetCtrlSpr: CTRL[59] is 0 and CTRL[60] 1 at reset"},
    {"maximum_is_ieee", true, "Max and Min give NaN where an operand is NaN, and order -0.0 below +0.0",
     "no document; asc-devkit, Reg Reduce: a maximum with NaN is NaN"},
};

// ---- Coroutines. ----

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
            running_->work_();
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

// ---- What is known of memory, of the cores, and of the launch. ----

// Which bytes of a block of UB a pipe touched in its latest window there.
struct Stamp {
    uint32_t window = 0, bytes = 0, operation = 0;
};
struct Block {
    uint32_t launch = 0, defined = 0;  // defined: a bit for each byte
    Stamp stores[pipe_count], loads[pipe_count];
};

// Zeros that the system makes where they are first touched.
template <class T>
class Zeros {
public:
    void grow(uint64_t count) {
        if (count <= count_) return;
        std::free(std::exchange(data_, static_cast<T*>(std::calloc(count, sizeof(T)))));
        count_ = count;
    }
    T& operator[](uint64_t i) const { return data_[i]; }

private:
    T* data_ = nullptr;
    uint64_t count_ = 0;
};

// The latest access to an element of GM, or, by threads, of UB.
struct Access {
    uint32_t phase = 0, window = 0, operation = 0;
    uint16_t core = 0, thread = 0;
    Pipe pipe = Pipe::scalar;
    bool is_store = false, is_atomic = false, is_unknown = false;
    bool is_of_cores = false, is_of_threads = false;  // of several, in the same phase or window
};
struct Cell {
    Access store, load;
};
struct Tensor {
    Buffer buffer;
    Zeros<Cell> cells;  // one an element, where the kernel may store
    bool is_written = false;

    bool holds(const uint8_t* address, uint64_t bytes) const {
        return address >= buffer.data && bytes <= buffer.bytes && address - buffer.data <= static_cast<int64_t>(buffer.bytes - bytes);
    }
};

struct Core {
    uint32_t index = 0;
    uint8_t* ub = nullptr;
    Zeros<Block> blocks;
    Fiber* fiber = nullptr;
    Pipe pipe = Pipe::scalar;
    uint32_t operation = 0;
    Clock clocks[pipe_count] = {}, windows = {1, 1, 1, 1};
    Flag flags[pipe_count][pipe_count][8];
    uint32_t occupied = 0;  // the window of MTE3 in which InitGlobalMemory copied from UB
    bool in_vector_function = false;
    Buffers buffers;
    CopyState copies;
};

struct Operation {
    const char* name;
    Site site;
    uint32_t core;
};
struct Finding {
    std::string kind, text, tensor, call;
    int64_t byte;
    uint32_t core;
    uint64_t count;
};

const Launch* launch = nullptr;
uint32_t launch_number = 0, phase = 0, first_phase = 0;  // phases end at SyncAll
std::vector<Tensor> tensors;
std::vector<Core> cores;
std::vector<Zeros<Block>> shadows;
std::vector<std::unique_ptr<Fiber>> block_fibers, thread_fibers;
std::vector<Operation> operations;
std::map<std::string, Finding> findings;
Core* core = nullptr;
bool key_was_asked = false, key_was_found = false;
uint8_t* arena = nullptr;
uint64_t ub_step = 0;  // from the UB of a core to that of the next; stores behind the end of one can be made and reported
Tensor thread_ub;      // the UB of a core while its threads run, by two bytes
uint32_t thread_epoch = 0;
uint16_t thread_number = 0;  // counted from 1; 0: no thread runs
bool is_watching = false;    // what the watch itself does is not watched
bool is_watched = false, threads_ran = false;  // whether the kernel was compiled with -fsanitize=thread

// ---- Findings. ----

bool is_in_ub(const void* address, uint64_t bytes) {
    const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - core->ub);
    return offset < ub_step && bytes <= ub_step - offset;
}

// The tensor that holds the address, or the nearest one.
void place(const void* address, Finding& finding) {
    const auto here = reinterpret_cast<int64_t>(address);
    int64_t nearest = INT64_MAX;
    const auto consider = [&](const char* name, const uint8_t* data, uint64_t bytes) {
        const auto offset = here - reinterpret_cast<int64_t>(data), distance = std::max(-offset, offset - static_cast<int64_t>(bytes) + 1);
        if (std::max<int64_t>(distance, 0) >= nearest) return;
        nearest = std::max<int64_t>(distance, 0), finding.tensor = name, finding.byte = offset;
    };
    for (const Tensor& tensor : tensors) consider(tensor.buffer.name, tensor.buffer.data, tensor.buffer.bytes);
    if (core) consider("UB", core->ub, launch->ub_bytes);
}

std::string describe(uint32_t operation) {
    const Operation& call = operations[operation];
    const std::string file = call.site.file;
    return std::string(call.name) + (call.site.line ? " (" + file.substr(file.rfind('/') + 1) + ":" + std::to_string(call.site.line) + ")" : "");
}

void add_finding(const char* kind, const std::string& text, const void* address, uint32_t operation) {
    Finding fresh{kind, text, "", describe(operation), -1, operations[operation].core, 0};
    if (address) place(address, fresh);
    ++findings.emplace(fresh.kind + '|' + text + '|' + fresh.tensor + '|' + fresh.call, fresh).first->second.count;
}

// ---- Order. ----

const char* name_of(Pipe pipe) {
    static const char* const names[] = {"S", "V", "MTE2", "MTE3"};
    return names[static_cast<int>(pipe)];
}
uint32_t& window_of(Pipe pipe) { return core->windows[static_cast<int>(pipe)]; }
bool is_ordered(Pipe earlier, uint32_t window) {
    return window <= core->clocks[static_cast<int>(core->pipe)][static_cast<int>(earlier)];
}

// Whether an access of the core's own pipes is ordered before the present one; if not, a finding, or what the compiler prevents.
void check_order(Pipe earlier, uint32_t window, uint32_t operation, bool was_store, bool is_store, const void* address) {
    if (is_ordered(earlier, window) || operation == core->operation) return;
    if (earlier == core->pipe) {
        const bool in_registers = core->in_vector_function && was_store && !is_store && window == window_of(Pipe::vector);
        if (earlier == Pipe::scalar || (earlier == Pipe::vector && assumed(vector_pipe_in_order) && !in_registers)) return;
        if (in_registers && assumed(registers_keep_order)) return;
        if (in_registers) {
            return add_finding("racecheck", "a vector function loads what it stored before, no LocalMemBar between (assumption "
                               "registers_keep_order is off): " + describe(operation) + " before it", address, core->operation);
        }
    } else if ((earlier == Pipe::scalar || core->pipe == Pipe::scalar) && assumed(scalar_accesses_synced)) {
        return acquire(core->pipe, release(earlier));
    }
    add_finding("racecheck", std::string(is_store ? "store" : "load") + " by " + name_of(core->pipe) + " is not ordered after the "
                + (was_store ? "store" : "load") + " by " + name_of(earlier) + ": " + describe(operation) + " before it", address, core->operation);
}

// ---- UB. ----

// Each block that holds some of the bytes, with a bit for each of those and the place of the first.
template <class Visit>
void each_block(const void* address, uint64_t bytes, Visit visit) {
    const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - core->ub), end = offset + bytes;
    for (uint64_t begin = offset / block_bytes * block_bytes; begin < end; begin += block_bytes) {
        const uint64_t first = std::max(offset, begin) - begin, last = std::min(end - begin, uint64_t{block_bytes});
        Block& block = core->blocks[begin / block_bytes];
        if (block.launch != launch_number) {
            block = Block();
            block.launch = launch_number;
            std::memset(core->ub + begin, static_cast<int>(launch->poison), block_bytes);
        }
        visit(block, static_cast<uint32_t>((uint64_t{1} << last) - (uint64_t{1} << first)), core->ub + begin + first);
    }
}

void touch(Block& block, uint32_t bytes, const uint8_t* address, bool is_store) {
    for (int pipe = 0; pipe < pipe_count; ++pipe) {
        const auto check = [&](const Stamp& stamp, bool was_store) {
            const uint32_t common = stamp.bytes & bytes;
            if (common && !is_ordered(static_cast<Pipe>(pipe), stamp.window)) {
                check_order(static_cast<Pipe>(pipe), stamp.window, stamp.operation, was_store, is_store,
                            address + __builtin_ctz(common) - __builtin_ctz(bytes));
            }
        };
        check(block.stores[pipe], true);
        if (is_store) check(block.loads[pipe], false);
    }
    Stamp& stamp = (is_store ? block.stores : block.loads)[static_cast<int>(core->pipe)];
    const uint32_t window = window_of(core->pipe);
    stamp = {window, stamp.window == window ? stamp.bytes | bytes : bytes, core->operation};
    if (is_store) block.defined |= bytes;
}

bool reach(const void* address, uint64_t bytes, Extent buffer, bool is_store) {
    const auto* const at = static_cast<const uint8_t*>(address);
    const std::string what = is_store ? "store" : "load";
    if (!is_in_ub(at, bytes)) return add_finding("memcheck", what + " outside of UB", address, core->operation), false;
    const uint8_t* const ub_end = core->ub + launch->ub_bytes;
    if (at + bytes > ub_end) add_finding("memcheck", what + " beyond the end of UB", std::max(at, ub_end), core->operation);
    if (buffer.begin && (at < buffer.begin || at + bytes > buffer.end)) {
        add_finding("memcheck", what + " beyond the buffer of the tensor", at < buffer.begin ? at : std::max<const uint8_t*>(at, buffer.end), core->operation);
    }
    if (is_store && core->occupied && core->pipe != Pipe::mte3 && !is_ordered(Pipe::mte3, core->occupied)) {
        core->occupied = 0;
        report("racecheck", "UB is used while InitGlobalMemory still copies from it", address);
    }
    return true;
}

// ---- GM. ----

Tensor* find_tensor(const void* address, uint64_t bytes) {
    for (Tensor& tensor : tensors) {
        if (tensor.holds(static_cast<const uint8_t*>(address), bytes)) return &tensor;
    }
    return nullptr;
}

void check_access(const Access& earlier, const Access& now, const void* address) {
    if (earlier.phase != now.phase || (earlier.is_atomic && now.is_atomic)) return;
    const auto kind = [](const Access& access) { return access.is_atomic ? "atomic addition" : access.is_store ? "store" : "load"; };
    const auto race = [&](const char* of) {
        add_finding("racecheck", std::string(kind(now)) + " and " + kind(earlier) + of + ": " + describe(earlier.operation) + " before it", address, now.operation);
    };
    if (earlier.core != now.core || earlier.is_of_cores) return race(" of two cores, no SyncAll between");
    const bool same_window = earlier.pipe == now.pipe && earlier.window == now.window && earlier.thread;
    if (same_window && (earlier.thread != now.thread || earlier.is_of_threads)) return race(" of two threads, no __syncthreads between");
    check_order(earlier.pipe, earlier.window, earlier.operation, earlier.is_store, now.is_store, address);
}

// Answers whether what is read was written in this launch.
bool note_access(Tensor& tensor, const void* address, uint64_t bytes, uint32_t in_phase, bool is_store, bool is_atomic, bool is_known) {
    if (!tensor.is_written) return true;
    const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - tensor.buffer.data);
    bool all_known = true;
    for (uint64_t i = offset / tensor.buffer.itemsize; i * tensor.buffer.itemsize < offset + bytes; ++i) {
        Cell& cell = tensor.cells[i];
        Access now;
        now.phase = in_phase, now.window = window_of(core->pipe), now.operation = core->operation, now.core = static_cast<uint16_t>(core->index);
        now.thread = thread_number, now.pipe = core->pipe, now.is_store = is_store, now.is_atomic = is_atomic;
        const uint8_t* const at = tensor.buffer.data + i * tensor.buffer.itemsize;
        const bool is_defined = cell.store.phase >= first_phase && !cell.store.is_unknown;
        all_known = all_known && is_defined;
        check_access(cell.store, now, at);
        if (is_store) {
            check_access(cell.load, now, at);
            now.is_unknown = !is_known || (is_atomic && !is_defined);
        } else if (cell.load.phase == in_phase) {
            now.is_of_cores = cell.load.is_of_cores || cell.load.core != now.core;
            now.is_of_threads = cell.load.window == now.window && (cell.load.is_of_threads || cell.load.thread != now.thread);
        }
        (is_store ? cell.store : cell.load) = now;
    }
    return all_known;
}

void report_outside(const void* address, uint32_t bytes, bool is_store) {
    Finding nearest;
    place(address, nearest);
    add_finding("memcheck", std::string(is_store ? "store" : "load") + " outside of every tensor, next to " + nearest.tensor, address, core->operation);
    static_cast<void>(bytes);
}

// What a thread does by a plain pointer, or atomically.
void access_by_thread(void* address, uint32_t bytes, bool is_store, bool is_atomic) {
    bool is_known = true;
    if (is_in_ub(address, bytes)) {
        thread_ub.buffer.data = core->ub;
        const auto offset = static_cast<uint64_t>(static_cast<uint8_t*>(address) - core->ub);
        bool is_repeated = !is_store;  // a load of what many threads load is looked at twice
        for (uint64_t i = offset / 2; i * 2 < offset + bytes; ++i) {
            const Cell& cell = thread_ub.cells[i];
            is_repeated = is_repeated && cell.load.phase == thread_epoch && cell.load.is_of_threads && cell.store.phase != thread_epoch;
        }
        if (is_repeated) return;
        if (!reach(address, bytes, {}, is_store)) return;
        each_block(address, bytes, [&](Block& block, uint32_t mask, const uint8_t* first) {
            is_known = is_known && (block.defined & mask) == mask;
            touch(block, mask, first, is_store);
        });
        note_access(thread_ub, address, bytes, thread_epoch, is_store, is_atomic, true);
    } else if (Tensor* const tensor = find_tensor(address, bytes)) {
        if (is_store && !tensor->is_written) return report("memcheck", "store to an input", address);
        is_known = note_access(*tensor, address, bytes, phase, is_store, is_atomic, true);
    }  // else a variable of its own
    if (!is_store || is_atomic) require_defined(is_known, "a thread reads what was never written", address);
}

uint64_t random(uint64_t& state) {  // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
}  // namespace

// ---- What the headers declare. ----

bool assumed(Assumption assumption) { return table[assumption].is_on; }
void begin(Pipe pipe, const char* name, Site site) {
    core->pipe = pipe;
    core->operation = static_cast<uint32_t>(operations.size());
    operations.push_back({name, site, core->index});
}
uint32_t current_operation() { return core->operation; }
void report(const char* kind, const char* what, const void* address) { add_finding(kind, what, address, core->operation); }
void require_alignment(const void* address) {
    if (reinterpret_cast<uint64_t>(address) % block_bytes) report("memcheck", "an operand in UB is not aligned to 32 bytes", address);
}

void load(Bytes& to, uint32_t at, const void* from, uint32_t bytes, Extent buffer) {
    if (!reach(from, bytes, buffer, false)) {
        for (uint32_t i = at; i < at + bytes; ++i) to.value[i] = 0xa5, to.unknown.set(i, 1, true);
        return;
    }
    each_block(from, bytes, [&](Block& block, uint32_t mask, const uint8_t* first) {
        touch(block, mask, first, false);
        const uint32_t unknown = mask & ~block.defined;
        if (unknown) to.unknown.add(at + static_cast<uint32_t>(first - static_cast<const uint8_t*>(from)), unknown >> __builtin_ctz(mask));
    });
    std::memcpy(to.value + at, from, bytes);
}
void store(void* to, const Bytes& from, uint32_t at, uint32_t bytes, Extent buffer) {
    if (!reach(to, bytes, buffer, true)) return;
    const bool all_known = !from.unknown.any();
    each_block(to, bytes, [&](Block& block, uint32_t mask, const uint8_t* first) {
        touch(block, mask, first, true);
        if (all_known) return;
        block.defined &= ~(mask & from.unknown.from(at + static_cast<uint32_t>(first - static_cast<uint8_t*>(to))) << __builtin_ctz(mask));
    });
    std::memcpy(to, from.value + at, bytes);
}
void load_global(Bytes& to, uint32_t at, const void* from, uint32_t bytes) {
    Tensor* const tensor = find_tensor(from, bytes);
    if (!tensor) report_outside(from, bytes, false), std::memset(to.value + at, static_cast<int>(launch->poison), bytes);
    else std::memcpy(to.value + at, from, bytes);
    const uint32_t itemsize = tensor ? tensor->buffer.itemsize : bytes;
    for (uint32_t i = 0; i < bytes && !(tensor && !tensor->is_written); i += itemsize) {
        const bool is_known = tensor && note_access(*tensor, static_cast<const uint8_t*>(from) + i, std::min(itemsize, bytes - i), phase, false, false, true);
        for (uint32_t byte = i; byte < std::min(i + itemsize, bytes); ++byte) to.unknown.set(at + byte, 1, !is_known);
    }
}
void store_global(void* to, const Bytes& from, uint32_t at, uint32_t bytes, Addition addition) {
    Tensor* const tensor = find_tensor(to, bytes);
    if (!tensor) return report_outside(to, bytes, true);
    if (!tensor->is_written) return report("memcheck", "store to an input", to);
    const uint32_t itemsize = addition.add ? addition.bytes : tensor->buffer.itemsize;
    for (uint32_t i = 0; i < bytes; i += itemsize) {
        bool is_known = true;
        for (uint32_t byte = i; byte < std::min(i + itemsize, bytes); ++byte) is_known = is_known && !from.unknown[at + byte];
        note_access(*tensor, static_cast<uint8_t*>(to) + i, std::min(itemsize, bytes - i), phase, true, addition.add, is_known);
        if (addition.add) addition.add(static_cast<uint8_t*>(to) + i, from.value + at + i);
    }
    if (!addition.add) std::memcpy(to, from.value + at, bytes);
}

CopyState& copy_state() { return core->copies; }
Buffers& buffers_of_core() { return core->buffers; }
bool& in_vector_function() { return core->in_vector_function; }
void occupy_ub() {
    if (core->buffers.used) report("synccheck", "InitGlobalMemory is called after InitBuffer");
    core->occupied = window_of(Pipe::mte3);
}
Extent take_buffer(uint64_t bytes) {
    uint8_t* const begin = core->ub + std::min(core->buffers.used, ub_step);
    core->buffers.used += (bytes + block_bytes - 1) / block_bytes * block_bytes;  // [InitBuffer: len]
    if (core->buffers.used > launch->ub_bytes) report("memcheck", "InitBuffer takes more than UB has", begin);
    return {begin, core->ub + core->buffers.used};
}

Clock release(Pipe pipe) {
    Clock clock = core->clocks[static_cast<int>(pipe)];
    clock[static_cast<int>(pipe)] = window_of(pipe)++;
    return clock;
}
void acquire(Pipe pipe, const Clock& clock) {
    const bool holds_issue = pipe == Pipe::scalar && assumed(scalar_wait_holds_issue);
    for (int later = 0; later < pipe_count; ++later) {
        if (later != static_cast<int>(pipe) && !holds_issue) continue;
        for (int i = later == static_cast<int>(pipe) ? 0 : 1; i < pipe_count; ++i) {  // who waits for issue does not wait for S
            core->clocks[later][i] = std::max(core->clocks[later][i], clock[i]);
        }
    }
}
void barrier_all() {
    Clock all;
    for (int pipe = 0; pipe < pipe_count; ++pipe) all[pipe] = core->windows[pipe]++;
    for (Clock& clock : core->clocks) clock = all;
}
Flag* flags_of(Event event) { return core->flags[static_cast<int>(event.from)][static_cast<int>(event.to)]; }
void sync_all() { Fiber::yield(); }

// ---- Threads. ----

void run_threads(dim3 threads, const std::function<void()>& body) {
    begin(Pipe::vector, "SIMT function", Site("", 0));
    threads_ran = true;
    const uint32_t count = threads.x * threads.y * threads.z;
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    uint64_t state = launch->thread_seed;
    for (uint32_t i = count; state && i > 1; --i) std::swap(order[i - 1], order[random(state) % i]);
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
void add_atomically(void* to, void* before, const void* term, Addition addition) {
    if (!is_in_ub(to, addition.bytes) && !find_tensor(to, addition.bytes)) return report_outside(to, addition.bytes, true);
    is_watching = true;
    access_by_thread(to, addition.bytes, true, true);
    std::memcpy(before, to, addition.bytes);
    addition.add(to, term);
    is_watching = false;
}
void watch_pointer(void* address, uint64_t bytes, bool is_store) {
    if (!thread_number || std::exchange(is_watching, true)) return;
    access_by_thread(address, static_cast<uint32_t>(bytes), is_store, false);
    is_watching = false;
}

bool is_tiling_key(uint64_t key) {
    key_was_asked = true;
    key_was_found = key_was_found || key == launch->tiling_key;
    return key == launch->tiling_key;
}
void copy_tiling(void* to, const void* from, uint64_t bytes) {
    if (find_tensor(from, bytes)) std::memcpy(to, from, bytes);
    else report("launchcheck", "the tiling data are shorter than the kernel's struct");
}
}  // namespace model

namespace AscendC {
uint32_t GetBlockIdx() { return model::core->index; }
uint32_t GetBlockNum() { return model::launch->blocks; }
}  // namespace AscendC

// ---- The launch. ----

namespace model {
namespace {

void prepare() {
    constexpr uint64_t slack = 64 << 10, page = 4096;
    static uint64_t arena_bytes = 0;
    ub_step = (launch->ub_bytes + slack) / page * page;
    if (arena_bytes < ub_step * launch->blocks) {
        std::free(arena);
        arena_bytes = ub_step * launch->blocks;
        arena = static_cast<uint8_t*>(std::aligned_alloc(page, arena_bytes));
    }
    thread_ub.buffer = {"UB", nullptr, ub_step, 2, workspace}, thread_ub.is_written = true;
    thread_ub.cells.grow(ub_step / thread_ub.buffer.itemsize);
    tensors.resize(launch->buffer_count);
    for (uint32_t i = 0; i < launch->buffer_count; ++i) {
        const Buffer& buffer = tensors[i].buffer = launch->buffers[i];
        tensors[i].is_written = buffer.role == output || buffer.role == workspace;
        if (tensors[i].is_written) tensors[i].cells.grow(buffer.bytes / buffer.itemsize + 1);
    }
    operations.assign(1, {"", Site("", 0), 0});
    findings.clear();
    shadows.resize(std::max<size_t>(shadows.size(), launch->blocks));
    cores.assign(launch->blocks, Core());
    while (block_fibers.size() < launch->blocks) block_fibers.push_back(std::make_unique<Fiber>());
    for (uint32_t i = 0; i < launch->blocks; ++i) {
        shadows[i].grow(ub_step / block_bytes);
        cores[i].index = i, cores[i].ub = arena + i * ub_step, cores[i].blocks = shadows[i], cores[i].fiber = block_fibers[i].get();
    }
}

void finish_core() {
    end_queues();
    for (auto& of_pipe : core->flags) for (auto& flags : of_pipe) for (const Flag& flag : flags) {
        if (flag.is_set) add_finding("synccheck", "SetFlag without WaitFlag: the flag is left to the next kernel", nullptr, flag.operation);
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
            add_finding("synccheck", "core " + std::to_string(missing->index) + " ends without this SyncAll: the others wait for ever", nullptr, waits->operation);
        }
        for (Core& each : cores) core = &each, barrier_all();
        is_over = !waits;
    }
    core = nullptr;
}

// Outputs that hold at the end what came of bytes that were never written.
void check_outputs() {
    for (const Tensor& tensor : tensors) {
        for (uint64_t at = 0; tensor.buffer.role == output && at < tensor.buffer.bytes; at += tensor.buffer.itemsize) {
            const Access& store = tensor.cells[at / tensor.buffer.itemsize].store;
            if (store.phase < first_phase || !store.is_unknown) continue;
            add_finding("initcheck", "an output is computed from, or added to, what was never written", tensor.buffer.data + at, store.operation);
        }
    }
}

// A list of objects in JSON, each of pairs of name and value; values that are no texts stand as they are.
class JsonList {
public:
    void add(std::initializer_list<std::pair<const char*, std::string>> texts, std::initializer_list<std::pair<const char*, std::string>> others) {
        text_ += text_.size() > 1 ? ",\n{" : "{";
        for (const auto& [name, value] : texts) {
            text_ += std::string("\"") + name + "\":\"";
            for (char c : value) (c == '"' || c == '\\' ? text_ += '\\' : text_) += c;
            text_ += "\",";
        }
        for (const auto& [name, value] : others) text_ += std::string("\"") + name + "\":" + value + ",";
        text_.back() = '}';
    }
    std::string end() { return text_ + "]"; }

private:
    std::string text_ = "[";
};
}  // namespace
}  // namespace model

using namespace model;

extern "C" int ascendc_launch(const Launch* request) {
    launch = request;
    key_was_asked = key_was_found = threads_ran = false;
    first_phase = ++phase, ++launch_number;
    prepare();
    run_blocks();
    check_outputs();
    if (key_was_asked && !key_was_found) {
        add_finding("launchcheck", "a tiling key that no branch serves: " + std::to_string(launch->tiling_key), nullptr, 0);
    }
    return threads_ran && !is_watched;
}

extern "C" const char* ascendc_findings() {
    static std::string text;
    JsonList list;
    for (const auto& [key, finding] : findings) {
        list.add({{"kind", finding.kind}, {"text", finding.text}, {"tensor", finding.tensor}, {"call", finding.call}},
                 {{"byte", std::to_string(finding.byte)}, {"core", std::to_string(finding.core)}, {"count", std::to_string(finding.count)}});
    }
    return (text = list.end()).c_str();
}

extern "C" const char* ascendc_assumptions() {
    static std::string text;
    JsonList list;
    for (const AssumptionRow& row : table) {
        list.add({{"name", row.name}, {"says", row.says}, {"source", row.source}}, {{"on", row.is_on ? "true" : "false"}});
    }
    return (text = list.end()).c_str();
}

extern "C" int ascendc_assume(const char* name, int is_on) {
    for (AssumptionRow& row : table) {
        if (std::string(row.name) == name) return row.is_on = is_on, 0;
    }
    return 1;
}

// ---- The calls that -fsanitize=thread puts before loads and stores. ----

#define MODEL_ACCESS(bytes)                                                                    \
    void __tsan_read##bytes(void* address) { watch_pointer(address, bytes, false); }           \
    void __tsan_write##bytes(void* address) { watch_pointer(address, bytes, true); }           \
    void __tsan_unaligned_read##bytes(void* address) { watch_pointer(address, bytes, false); } \
    void __tsan_unaligned_write##bytes(void* address) { watch_pointer(address, bytes, true); }
extern "C" {
MODEL_ACCESS(1) MODEL_ACCESS(2) MODEL_ACCESS(4) MODEL_ACCESS(8) MODEL_ACCESS(16)
void __tsan_read_range(void* address, unsigned long bytes) { watch_pointer(address, bytes, false); }
void __tsan_write_range(void* address, unsigned long bytes) { watch_pointer(address, bytes, true); }
void __tsan_init() { is_watched = true; }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
