// The runtime: blocks and threads as coroutines, what is known of every byte of UB and GM, and the findings. Shadows are never
// cleared: what a launch left is older than the phases, and the first block states, of the next.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
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
} table[assumptions] = {
    {"vector_pipe_in_order", true, "vector instructions follow each other without PipeBarrier<PIPE_V>",
     "asc-devkit, intra-core synchronisation, key features: on 950 by hardware, on A2 and A3 by the compiler (--cce-auto-sync=on, the default)"},
    {"scalar_accesses_synced", true, "GetValue and SetValue are ordered with the other pipes without flags",
     "asc-devkit, intra-core synchronisation, key features, table 3: the compiler inserts flags between S and V, MTE2, MTE3"},
    {"scalar_wait_holds_issue", true, "what the scalar unit waited for is done before any instruction that it issues later",
     "asc-devkit, principles of TPipe-TQue programming: the scalar unit issues all instructions, in program order"},
    {"sync_all_waits_for_all_pipes", true, "SyncAll waits for all pipes of all cores, and holds all of them",
     "asc-devkit, SyncAll, table 1: DEFAULT_SYNC_ALL_CONFIG is {PIPE_ALL, PIPE_ALL}; for A2 and A3 the page names no pipe"},
    {"registers_keep_order", false, "within a vector function a load waits for the stores before it without LocalMemBar",
     "asc-devkit, LocalMemBar: only where both use the same register, which the compiler, not the source, decides"},
    {"infinities_saturate", false, "narrowing to half or bfloat16 gives the largest value for infinities and 0 for NaN",
     "asc-devkit, SetCtrlSpr: CTRL[48] is 0 (saturate) at reset; CANN 8.5, set_device_sat_mode: the runtime's default on A2 and A3 is Inf/NaN mode"},
    {"integers_saturate", true, "a cast to an integer that does not hold the value gives the nearest bound",
     "asc-devkit, precision conversion: overflow saturates by default; SetCtrlSpr: CTRL[59] is 0, CTRL[60] is 1 at reset"},
    {"maximum_is_ieee", true, "Max and Min give NaN where an operand is NaN, and order -0.0 below +0.0",
     "no document; asc-devkit, Reg Reduce: a maximum with NaN is NaN"},
    {"division_flushes_subnormals", true, "Div of registers takes and gives subnormal floats as zero",
     "asc-devkit, Reg Div: only PRECISION_0ULP_FTZ_FALSE and PRECISION_1ULP_FTZ_FALSE keep them"},
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
            stack_.reset(new uint8_t[stack_bytes]);
            getcontext(&context_);
            context_.uc_stack.ss_sp = stack_.get();
            context_.uc_stack.ss_size = stack_bytes;
            context_.uc_link = nullptr;
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
    static constexpr size_t stack_bytes = 256 << 10;

    static void run() {
        for (;;) {
            running_->work_();
            running_->is_done_ = true;
            yield();
        }
    }

    static Fiber* running_;
    std::function<void()> work_;
    bool is_done_ = true;
    std::unique_ptr<uint8_t[]> stack_;
    ucontext_t context_;
    jmp_buf here_, caller_;
};
Fiber* Fiber::running_ = nullptr;

// ---- Cores, and what is known of their UB. ----

// The latest window in which a pipe touched a block of UB, and which of its bytes.
struct Stamp {
    uint32_t window = 0, bytes = 0, operation = 0;
};
// Blocks that saw the same accesses share a state: a call that covers a whole buffer makes one state, not thousands.
struct BlockState {
    uint32_t references = 0;
    uint32_t defined = 0;  // a bit for each byte
    Stamp stores[pipe_count], loads[pipe_count];
};
struct Flag {
    bool is_set = false, is_taken = false;
    Clock clock{};
    uint32_t operation = 0;
};

struct Core {
    uint32_t index = 0;
    uint8_t* ub = nullptr;
    std::vector<uint32_t> blocks;  // indices of states
    uint32_t touched = 0;          // blocks below were touched in this launch or the last
    Fiber fiber;
    std::vector<uint32_t> calls;  // of each operation, where in the source

    Pipe pipe = Pipe::scalar;
    uint32_t operation = 0;
    bool is_waiting = false, is_pointer_access = false;
    Clock clocks[pipe_count], windows;
    Flag flags[pipe_count][pipe_count][8];
    uint64_t used = 0;          // bytes of UB that buffers have
    uint32_t occupied = 0;      // the window of MTE3 in which InitGlobalMemory copied from UB
    int taken_tensors[16] = {};
    CopyState copies;
    MaskState masks;
    std::vector<std::unique_ptr<Queue>> queues;
    struct { uint32_t operation, before, after; bool is_store; } latest{};
};

// ---- GM. ----

struct Access {
    uint32_t phase = 0, window = 0, operation = 0;
    uint16_t core = 0;
    Pipe pipe = Pipe::scalar;
    bool is_atomic : 1, is_unknown : 1, is_of_many : 1;
};
struct Cell {
    Access store{}, load{};
};
struct ThreadCell {
    uint32_t store_epoch = 0, load_epoch = 0;
    uint16_t store = 0, load = 0;
    bool is_atomic = false, is_of_many = false;
};
struct Tensor {
    Buffer buffer;
    std::vector<Cell> cells;  // one an element; none of an input
    std::vector<ThreadCell> threads;

    uint8_t* end() const { return buffer.data + buffer.bytes; }
    bool holds(const uint8_t* address, uint64_t bytes) const { return address >= buffer.data && address <= end() && bytes <= static_cast<uint64_t>(end() - address); }
};

struct Finding {
    std::string kind, text, tensor, call;
    int64_t byte;
    uint32_t core;
    uint64_t count;
};
struct CallSite {
    const char* name;
    const char* file;
    int line;
};

const Launch* launch = nullptr;
std::vector<std::unique_ptr<Core>> cores;
std::vector<BlockState> states;
std::vector<uint32_t> free_states;
std::vector<Tensor> tensors;
std::map<std::string, Finding> findings;
std::string findings_text;
std::vector<CallSite> call_sites;
uint8_t* arena = nullptr;
uint64_t arena_step = 0, arena_bytes = 0;
uint32_t phase = 0, first_phase = 0;  // phases end at SyncAll, and are never used again
Core* core = nullptr;
bool key_was_asked = false, key_was_found = false;
constexpr uint32_t slack = 64 << 10;  // behind the end of UB, so that a store there can be made and reported

int number(Pipe pipe) { return static_cast<int>(pipe); }
const char* name_of(Pipe pipe) {
    static const char* const names[] = {"S", "V", "MTE2", "MTE3"};
    return names[number(pipe)];
}

std::string describe(const Core& of, uint32_t operation) {
    if (operation >= of.calls.size()) return "";
    const CallSite& site = call_sites[of.calls[operation]];
    const std::string file = site.file;
    return std::string(site.name) + " (" + file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line) + ")";
}

void add_finding(const char* kind, const std::string& rule, const std::string& text, const std::string& tensor, int64_t byte, const Core* of, uint32_t operation) {
    const std::string call = of ? describe(*of, operation) : "";
    Finding& finding = findings[std::string(kind) + '|' + rule + '|' + tensor + '|' + call];
    if (!finding.count++) finding = {kind, text, tensor, call, byte, of ? of->index : 0, 1};
}

void place(const void* address, std::string& tensor, int64_t& byte) {
    const auto* const at = static_cast<const uint8_t*>(address);
    byte = -1;
    if (!at) return;
    if (core && at - core->ub >= 0 && at - core->ub < static_cast<int64_t>(arena_step)) {
        tensor = "UB", byte = at - core->ub;
        return;
    }
    uint64_t nearest = UINT64_MAX;
    for (const Tensor& candidate : tensors) {
        const auto from = reinterpret_cast<uint64_t>(candidate.buffer.data), to = reinterpret_cast<uint64_t>(candidate.end()), here = reinterpret_cast<uint64_t>(at);
        const uint64_t distance = here < from ? from - here : here >= to ? here - to + 1 : 0;
        if (distance < nearest) nearest = distance, tensor = candidate.buffer.name, byte = static_cast<int64_t>(here - from);
    }
}

// ---- Races. ----

bool is_in_order(Pipe pipe) { return pipe == Pipe::scalar || (pipe == Pipe::vector && assumed(vector_pipe_in_order)); }
bool is_ordered(Pipe earlier, uint32_t window) { return window <= core->clocks[number(core->pipe)][number(earlier)]; }

void race(const char* what, const std::string& other, const void* address) {
    std::string tensor;
    int64_t byte;
    place(address, tensor, byte);
    add_finding("racecheck", what + other, std::string(what) + ": " + other + " before it", tensor, byte, core, core->operation);
}

// Whether an access of the core's own pipes is ordered before the present one; a race is a finding, or what the compiler prevents.
void check_order(Pipe earlier, uint32_t window, uint32_t operation, bool was_store, bool is_store, const void* address) {
    if (is_ordered(earlier, window)) return;
    if (earlier == core->pipe && (is_in_order(earlier) || operation == core->operation)) return;
    if ((earlier == Pipe::scalar || core->pipe == Pipe::scalar) && assumed(scalar_accesses_synced) && !core->is_pointer_access) {
        return acquire(core->pipe, release(earlier));
    }
    const std::string what = std::string(is_store ? "store" : "load") + " by " + name_of(core->pipe) + " is not ordered after the " + (was_store ? "store" : "load") + " by " + name_of(earlier);
    race(what.c_str(), describe(*core, operation), address);
}

// ---- States of blocks. ----

uint32_t new_state(const BlockState& state) {
    uint32_t index;
    if (free_states.empty()) {
        index = static_cast<uint32_t>(states.size());
        states.push_back(state);
    } else {
        index = free_states.back();
        free_states.pop_back();
        states[index] = state;
    }
    states[index].references = 1;
    return index;
}

void drop_state(uint32_t index) {
    if (--states[index].references) return;
    free_states.push_back(index);
    if (core->latest.before == index) core->latest.operation = 0;
}

// The state after the present call's access to some bytes of a block.
uint32_t touch_block(uint32_t index, uint32_t block, uint32_t bytes, bool is_store) {
    uint8_t* const address = core->ub + uint64_t{block} * block_bytes;
    if (!index) {
        std::memset(address, static_cast<int>(launch->poison), block_bytes);
        core->touched = std::max(core->touched, block + 1);
    }
    const BlockState before = states[index];
    for (int earlier = 0; earlier < pipe_count; ++earlier) {
        const Stamp &store = before.stores[earlier], &load = before.loads[earlier];
        if (store.bytes & bytes) check_order(static_cast<Pipe>(earlier), store.window, store.operation, true, is_store, address + __builtin_ctz(store.bytes & bytes));
        if (is_store && load.bytes & bytes) check_order(static_cast<Pipe>(earlier), load.window, load.operation, false, true, address + __builtin_ctz(load.bytes & bytes));
    }
    if (before.references > 1 || !index) {
        if (index) drop_state(index);
        index = new_state(before);
    }
    BlockState& after = states[index];
    Stamp& stamp = (is_store ? after.stores : after.loads)[number(core->pipe)];
    const uint32_t window = core->windows[number(core->pipe)];
    stamp = {window, stamp.window == window ? stamp.bytes | bytes : bytes, core->operation};
    if (is_store) after.defined |= bytes;
    return index;
}

uint32_t bytes_of_block(uint64_t offset, uint64_t bytes, uint32_t block) {
    const uint64_t begin = uint64_t{block} * block_bytes, first = std::max(offset, begin) - begin, end = std::min(offset + bytes, begin + block_bytes) - begin;
    return (end - first == 32 ? ~0u : ((1u << (end - first)) - 1) << first);
}

template <class Visit>
void visit_blocks(const void* address, uint64_t bytes, Visit visit) {
    const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - core->ub);
    for (auto block = static_cast<uint32_t>(offset / block_bytes); block * uint64_t{block_bytes} < offset + bytes; ++block) visit(block, bytes_of_block(offset, bytes, block));
}

bool touch(const void* address, uint64_t bytes, bool is_store) {
    bool all_defined = true;
    auto& latest = core->latest;
    if (core->occupied && is_store && core->pipe != Pipe::mte3 && !is_ordered(Pipe::mte3, core->occupied)) {
        core->occupied = 0;
        race("UB is used while its content is still copied", "InitGlobalMemory", address);
    }
    visit_blocks(address, bytes, [&](uint32_t block, uint32_t mask) {
        uint32_t& index = core->blocks[block];
        if (mask == ~0u && latest.operation == core->operation && latest.is_store == is_store && latest.before == index && index != latest.after) {
            if (!index) std::memset(core->ub + uint64_t{block} * block_bytes, static_cast<int>(launch->poison), block_bytes), core->touched = std::max(core->touched, block + 1);
            ++states[latest.after].references;
            const uint32_t before = std::exchange(index, latest.after);
            if (before) drop_state(before);
        } else {
            const uint32_t before = index;
            index = touch_block(before, block, mask, is_store);
            if (mask == ~0u && index != before) latest = {core->operation, before, index, is_store};
        }
        all_defined = all_defined && (states[index].defined & mask) == mask;
    });
    return all_defined;
}

// ---- Elements of GM. ----

Tensor* find_tensor(const void* address, uint64_t bytes) {
    static Tensor* latest = nullptr;
    const auto* const at = static_cast<const uint8_t*>(address);
    if (latest >= tensors.data() && latest < tensors.data() + tensors.size() && latest->holds(at, bytes)) return latest;
    for (Tensor& tensor : tensors) {
        if (tensor.holds(at, bytes)) return latest = &tensor;
    }
    return nullptr;
}

void check_global(const Access& earlier, bool was_store, const Access& now, bool is_store, const void* address) {
    if (earlier.phase != phase || (earlier.is_atomic && now.is_atomic && is_store && was_store)) return;
    if (earlier.core == core->index && !earlier.is_of_many) return check_order(earlier.pipe, earlier.window, earlier.operation, was_store, is_store, address);
    const auto kind = [](const Access& access, bool stores) { return access.is_atomic ? "atomic add" : stores ? "store" : "load"; };
    const std::string what = std::string(kind(now, is_store)) + " of one core and " + kind(earlier, was_store) + " of another, no SyncAll between";
    race(what.c_str(), describe(*cores[earlier.core], earlier.operation), address);
}

// Answers whether what is read was written in this launch.
bool note_global(Tensor& tensor, const void* address, uint64_t bytes, bool is_store, bool is_atomic, bool is_known) {
    if (tensor.cells.empty()) return true;
    Access now;
    now.phase = phase, now.window = core->windows[number(core->pipe)], now.operation = core->operation;
    now.core = static_cast<uint16_t>(core->index), now.pipe = core->pipe;
    now.is_atomic = is_atomic, now.is_unknown = !is_known, now.is_of_many = false;
    const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - tensor.buffer.data);
    bool all_known = true;
    for (uint64_t i = offset / tensor.buffer.itemsize; i * tensor.buffer.itemsize < offset + bytes; ++i) {
        Cell& cell = tensor.cells[i];
        const uint8_t* const at = tensor.buffer.data + i * tensor.buffer.itemsize;
        all_known = all_known && cell.store.phase >= first_phase && !cell.store.is_unknown;
        check_global(cell.store, true, now, is_store, at);
        if (is_store) {
            check_global(cell.load, false, now, true, at);
            now.is_unknown = !is_known || (is_atomic && (cell.store.phase < first_phase || cell.store.is_unknown));
            cell.store = now;
        } else {
            now.is_of_many = cell.load.phase == phase && (cell.load.core != now.core || cell.load.is_of_many);
            cell.load = now;
        }
    }
    return all_known;
}

void report_outside(const void* address, uint32_t bytes, bool is_store) {
    std::string tensor;
    int64_t byte;
    place(address, tensor, byte);
    const std::string rule = std::string(is_store ? "store" : "load") + " outside of every tensor";
    add_finding("memcheck", rule, rule + ": " + std::to_string(bytes) + " bytes at byte " + std::to_string(byte) + " of " + tensor, tensor, byte, core, core->operation);
}

// ---- Threads. ----

uint32_t thread_epoch = 0, thread_number = 0;
std::vector<ThreadCell> ub_threads;
bool threads_run = false;

void note_thread(std::vector<ThreadCell>& cells, uint64_t first, uint64_t end, bool is_store, bool is_atomic, const void* address) {
    const auto me = static_cast<uint16_t>(thread_number + 1);
    for (uint64_t i = first; i < end; ++i) {
        ThreadCell& cell = cells[i];
        const bool was_stored = cell.store_epoch == thread_epoch && cell.store != me && !(cell.is_atomic && is_atomic);
        const bool was_loaded = is_store && cell.load_epoch == thread_epoch && (cell.load != me || cell.is_of_many);
        if (was_stored || was_loaded) race(was_stored ? "two threads use what one of them stores, no __syncthreads or atomic operation between" : "a thread stores what another loads, no __syncthreads between", "a thread", address);
        if (is_store) {
            cell.store_epoch = thread_epoch, cell.store = me, cell.is_atomic = is_atomic;
        } else {
            cell.is_of_many = cell.load_epoch == thread_epoch && (cell.load != me || cell.is_of_many);
            cell.load_epoch = thread_epoch, cell.load = me;
        }
    }
}

bool is_in_ub(const void* address) { return static_cast<uint64_t>(static_cast<const uint8_t*>(address) - core->ub) < arena_step; }

// What a thread does by a plain pointer.
void access_by_thread(const void* address, uint32_t bytes, bool is_store, bool is_atomic) {
    const bool in_ub = is_in_ub(address);
    Tensor* const tensor = in_ub ? nullptr : find_tensor(address, bytes);
    if (!in_ub && !tensor) return;  // its own variables; outside of every tensor: see watch_pointer
    bool is_known = true;
    if (in_ub) {
        if (!reach(address, bytes, {}, is_store)) return;
        is_known = touch(address, bytes, is_store);
        const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - core->ub);
        if (ub_threads.size() < arena_step) ub_threads.resize(arena_step);
        note_thread(ub_threads, offset, offset + bytes, is_store, is_atomic, address);
    } else {
        if (is_store && tensor->buffer.role == input) return report("memcheck", "store to an input", address);
        is_known = note_global(*tensor, address, bytes, is_store, is_atomic, true);
        if (!tensor->cells.empty()) {
            if (tensor->threads.size() < tensor->cells.size()) tensor->threads.resize(tensor->cells.size());
            const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - tensor->buffer.data), size = uint64_t{tensor->buffer.itemsize};
            note_thread(tensor->threads, offset / size, (offset + bytes + size - 1) / size, is_store, is_atomic, address);
        }
    }
    if (!is_store || is_atomic) require_defined(is_known, "a thread reads what was never written", address);
}

std::vector<std::unique_ptr<Fiber>> thread_fibers;

uint64_t mix(uint64_t& state) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
}  // namespace

// ---- What the headers declare. ----

bool assumed(int assumption) { return table[assumption].is_on; }

void begin(Pipe pipe, const char* name, Site site) {
    static struct { CallSite site; uint32_t index; } cache[1024];
    auto& entry = cache[(reinterpret_cast<uint64_t>(name) / 8 + reinterpret_cast<uint64_t>(site.file) / 8 + static_cast<uint64_t>(site.line) * 31) % 1024];
    if (entry.site.name != name || entry.site.file != site.file || entry.site.line != site.line) {
        entry = {{name, site.file, site.line}, static_cast<uint32_t>(call_sites.size())};
        call_sites.push_back(entry.site);
    }
    core->pipe = pipe;
    core->operation = static_cast<uint32_t>(core->calls.size());
    core->calls.push_back(entry.index);
}

bool reach(const void* address, uint64_t bytes, Extent buffer, bool is_store) {
    const auto* const at = static_cast<const uint8_t*>(address);
    const auto offset = static_cast<uint64_t>(at - core->ub);
    if (offset >= arena_step || bytes > arena_step - offset) {
        report("memcheck", is_store ? "store outside of UB" : "load outside of UB", nullptr);
        return false;
    }
    if (offset + bytes > launch->ub_bytes) report("memcheck", is_store ? "store beyond the end of UB" : "load beyond the end of UB", address);
    if (buffer.begin && (at < buffer.begin || at + bytes > buffer.end)) {
        report("memcheck", is_store ? "store beyond the buffer of the tensor" : "load beyond the buffer of the tensor", at < buffer.begin ? at : std::max<const uint8_t*>(at, buffer.end));
    }
    return true;
}
bool load(const void* address, uint64_t bytes) { return touch(address, bytes, false); }
void store(const void* address, uint64_t bytes) { touch(address, bytes, true); }
bool is_defined(const void* address, uint64_t bytes) {
    bool all = true;
    visit_blocks(address, bytes, [&](uint32_t block, uint32_t mask) { all = all && (states[core->blocks[block]].defined & mask) == mask; });
    return all;
}
void forget(const void* address, uint64_t bytes) {
    visit_blocks(address, bytes, [&](uint32_t block, uint32_t mask) {
        uint32_t& index = core->blocks[block];
        if (states[index].references > 1) {
            const BlockState state = states[index];
            drop_state(index);
            index = new_state(state);
        }
        states[index].defined &= ~mask;
    });
    core->latest.operation = 0;
}
void require_alignment(const void* address, uint32_t bytes) {
    if (reinterpret_cast<uint64_t>(address) % bytes) report("memcheck", "an operand in UB is not aligned to 32 bytes", address);
}

bool load_global(void* to, const void* from, uint32_t bytes) {
    Tensor* const tensor = find_tensor(from, bytes);
    if (!tensor) {
        report_outside(from, bytes, false);
        std::memset(to, static_cast<int>(launch->poison), bytes);
        return false;
    }
    std::memcpy(to, from, bytes);
    return note_global(*tensor, from, bytes, false, false, true);
}
void store_global(void* to, const void* from, uint32_t bytes, bool is_known, Addition add) {
    Tensor* const tensor = find_tensor(to, bytes);
    if (!tensor) return report_outside(to, bytes, true);
    if (tensor->buffer.role == input || tensor->buffer.role == tiling) return report("memcheck", "store to an input", to);
    note_global(*tensor, to, bytes, true, add != nullptr, is_known);
    if (add) add(to, from);
    else std::memcpy(to, from, bytes);
}
void copy_in(uint8_t* to, const uint8_t* from, uint64_t bytes, uint32_t itemsize) {
    store(to, bytes);
    const Tensor* const tensor = find_tensor(from, bytes);
    if (tensor && tensor->cells.empty()) {
        std::memcpy(to, from, bytes);
        return;
    }
    for (uint64_t i = 0; i < bytes; i += itemsize) {
        const auto size = static_cast<uint32_t>(std::min<uint64_t>(itemsize, bytes - i));
        if (!load_global(to + i, from + i, size)) forget(to + i, size);
    }
}
void copy_out(uint8_t* to, const uint8_t* from, uint64_t bytes, uint32_t itemsize, Addition add) {
    const bool all_known = load(from, bytes);
    for (uint64_t i = 0; i < bytes; i += itemsize) {
        const auto size = static_cast<uint32_t>(std::min<uint64_t>(itemsize, bytes - i));
        store_global(to + i, from + i, size, all_known || is_defined(from + i, size), size == itemsize ? add : nullptr);
    }
}
CopyState& copy_state() { return core->copies; }
MaskState& mask_state() { return core->masks; }
void occupy_buffer() {
    if (core->used) report("synccheck", "InitGlobalMemory is called after InitBuffer");
    core->occupied = core->windows[number(Pipe::mte3)];
}

void report(const char* kind, const char* rule, const void* address, const char* detail) {
    std::string tensor;
    int64_t byte;
    place(address, tensor, byte);
    add_finding(kind, rule, std::string(rule) + detail, tensor, byte, core, core ? core->operation : 0);
}

Clock release(Pipe pipe) {
    Clock clock = core->clocks[number(pipe)];
    clock[number(pipe)] = core->windows[number(pipe)]++;
    return clock;
}
void acquire(Pipe pipe, const Clock& clock) {
    const auto join = [&](Pipe later, bool with_scalar) {
        for (int i = 0; i < pipe_count; ++i) {
            if (i != number(Pipe::scalar) || with_scalar) core->clocks[number(later)][i] = std::max(core->clocks[number(later)][i], clock[i]);
        }
    };
    join(pipe, true);
    if (pipe != Pipe::scalar || !assumed(scalar_wait_holds_issue)) return;
    for (Pipe later : {Pipe::vector, Pipe::mte2, Pipe::mte3}) join(later, false);
}
void barrier(Pipe pipe) { acquire(pipe, release(pipe)); }
void barrier_all() {
    for (Pipe earlier : {Pipe::scalar, Pipe::vector, Pipe::mte2, Pipe::mte3}) {
        const Clock clock = release(earlier);
        for (Pipe later : {Pipe::scalar, Pipe::vector, Pipe::mte2, Pipe::mte3}) acquire(later, clock);
    }
}
void set_flag(Pipe from, Pipe to, int id) {
    Flag& flag = core->flags[number(from)][number(to)][id & 7];
    if (id < 0 || id > 7) report("synccheck", "an event id is not in 0 to 7");
    if (flag.is_set) report("synccheck", "SetFlag of a flag that is set already: no WaitFlag between");
    flag.is_set = true, flag.clock = release(from), flag.operation = core->operation;
}
void wait_flag(Pipe from, Pipe to, int id) {
    Flag& flag = core->flags[number(from)][number(to)][id & 7];
    if (!flag.is_set) return report("synccheck", "WaitFlag of a flag that nothing sets: the pipe hangs");
    flag.is_set = false;
    acquire(to, flag.clock);
}
int fetch_event(Pipe from, Pipe to, bool take) {
    auto& flags = core->flags[number(from)][number(to)];
    for (int id = 0; id < 8; ++id) {
        if (flags[id].is_taken) continue;
        flags[id].is_taken = take;
        return id;
    }
    report("synccheck", "no event id is left");
    return 0;
}
void release_event(Pipe from, Pipe to, int id) { core->flags[number(from)][number(to)][id & 7].is_taken = false; }
void sync_all() {
    core->is_waiting = true;
    Fiber::yield();
}

Extent take_buffer(uint64_t bytes) {
    bytes = (bytes + block_bytes - 1) / block_bytes * block_bytes;  // [InitBuffer: len]
    uint8_t* const begin = core->ub + std::min<uint64_t>(core->used, arena_step);
    core->used += bytes;
    if (core->used > launch->ub_bytes) report("memcheck", "InitBuffer takes more than UB has", begin);
    return {begin, begin + bytes};
}
void reset_buffers() {
    for (const auto& queue : core->queues) queue->end();
    core->queues.clear();
    core->used = 0;
    std::fill(std::begin(core->taken_tensors), std::end(core->taken_tensors), 0);
}
Queue* make_queue(Pipe fills, Pipe drains, int position, int depth) {
    core->queues.push_back(std::make_unique<Queue>(fills, drains, position, depth));
    return core->queues.back().get();
}
int Queue::find(const uint8_t* address) const {
    for (size_t i = 0; i < buffers_.size(); ++i) {
        if (buffers_[i].extent.begin == address) return static_cast<int>(i);
    }
    return -1;
}
Extent Queue::allocate() {
    if (free_.empty()) return report("synccheck", "AllocTensor of a queue whose buffers are all taken: a hang"), first();
    if (++core->taken_tensors[position_] > 8) report("synccheck", "more than 8 tensors of one position are allocated at a time");  // [AllocTensor: constraints]
    Buffer& buffer = buffers_[free_.front()];
    free_.pop_front();
    buffer.is_taken = true;
    acquire(fills_, buffer.drained);
    return buffer.extent;
}
bool Queue::enqueue(const uint8_t* address, Pipe fills) {
    const int index = find(address);
    if (index < 0) return report("synccheck", "EnQue of a tensor that is not of the queue"), false;
    if (static_cast<int>(waiting_.size()) >= std::max(depth_, 1)) report("synccheck", "EnQue beyond the depth of the queue");
    buffers_[index].filled = release(fills);
    waiting_.push_back(index);
    return true;
}
Extent Queue::dequeue(Pipe drains) {
    if (waiting_.empty()) return report("synccheck", "DeQue of an empty queue"), first();
    const int index = waiting_.front();
    waiting_.pop_front();
    acquire(drains, buffers_[index].filled);
    return buffers_[index].extent;
}
void Queue::free(const uint8_t* address) {
    const int index = find(address);
    if (index < 0 || !buffers_[index].is_taken) return report("synccheck", "FreeTensor of what is not allocated");
    --core->taken_tensors[position_];
    buffers_[index].is_taken = false;
    buffers_[index].drained = release(drains_);
    free_.push_back(index);
}
void Queue::end() const {
    if (!waiting_.empty()) report("synccheck", "EnQue without DeQue at the end of the kernel");
}

namespace {
std::vector<uint32_t> register_times;  // of each two bytes of UB, when a vector function stored there
uint32_t register_time = 0, loads_ordered_after = 0;
}  // namespace
void enter_vector_function() { order_register_loads(); }
void order_register_loads() { loads_ordered_after = register_time++; }
void note_register_store(const void* address, uint64_t bytes) {
    if (register_times.size() < arena_step / 2) register_times.resize(arena_step / 2);
    const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - core->ub);
    for (uint64_t i = offset / 2; i < (offset + bytes + 1) / 2; ++i) register_times[i] = register_time;
}
void check_register_load(const void* address, uint64_t bytes) {
    if (register_times.empty() || assumed(registers_keep_order)) return;
    const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - core->ub);
    for (uint64_t i = offset / 2; i < (offset + bytes + 1) / 2; ++i) {
        if (register_times[i] > loads_ordered_after) return report("racecheck", "a vector function loads what it stored before, no LocalMemBar between", address, " (assumption registers_keep_order is off)");
    }
}

void run_threads(dim3 threads, const std::function<void()>& body) {
    begin(Pipe::vector, "a SIMT function", Site("", 0));
    const uint32_t count = threads.x * threads.y * threads.z;
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    uint64_t random = launch->thread_seed;
    for (uint32_t i = count; random && i > 1; --i) std::swap(order[i - 1], order[mix(random) % i]);
    blockDim = threads, gridDim = dim3(launch->blocks), blockIdx = dim3(core->index);
    uint32_t next = 0, ended = 0;
    const auto enter = [&](uint32_t thread) {
        thread_number = thread;
        threadIdx = dim3(thread % threads.x, thread / threads.x % threads.y, thread / threads.x / threads.y);
    };
    const auto work = [&] {
        while (next < count) {
            enter(order[next++]);
            body();
            ++ended;
        }
    };
    std::vector<std::pair<Fiber*, uint32_t>> waiting, resumed;
    threads_run = true, ++thread_epoch;
    for (size_t fiber = 0; next < count; ++fiber) {
        if (fiber == thread_fibers.size()) thread_fibers.push_back(std::make_unique<Fiber>());
        thread_fibers[fiber]->start(work);
        thread_fibers[fiber]->resume();
        if (!thread_fibers[fiber]->is_done()) waiting.emplace_back(thread_fibers[fiber].get(), thread_number);
    }
    while (!waiting.empty()) {
        if (ended) report("synccheck", "__syncthreads that not every thread of the block reaches: a hang");
        ++thread_epoch;
        resumed.swap(waiting);
        waiting.clear();
        for (const auto& [fiber, thread] : resumed) {
            enter(thread);
            fiber->resume();
            if (!fiber->is_done()) waiting.emplace_back(fiber, thread);
        }
    }
    threads_run = false;
}
void sync_threads() { Fiber::yield(); }
void add_atomically(void* to, const void* value, uint32_t bytes, Addition add) {
    threads_run = false;
    access_by_thread(to, bytes, true, true);
    threads_run = true;
    if (is_in_ub(to) || find_tensor(to, bytes)) add(to, value);
    else report_outside(to, bytes, true);
}
void watch_pointer(const void* address, uint32_t bytes, bool is_store) {
    if (!threads_run) return;
    threads_run = false, core->is_pointer_access = true;
    access_by_thread(address, bytes, is_store, false);
    threads_run = true, core->is_pointer_access = false;
}

bool is_tiling_key(uint64_t key) {
    key_was_asked = true;
    key_was_found = key_was_found || key == launch->tiling_key;
    return key == launch->tiling_key;
}
void copy_tiling(void* to, const void* from, uint64_t bytes) {
    const Tensor* const tensor = find_tensor(from, bytes);
    if (!tensor) report("launchcheck", "the tiling data are shorter than the kernel's struct");
    else std::memcpy(to, from, bytes);
}
}  // namespace model

namespace AscendC {
uint32_t GetBlockIdx() { return model::core->index; }
uint32_t GetBlockNum() { return model::launch->blocks; }
}  // namespace AscendC

namespace model {
namespace {

void prepare(Core& fresh, uint32_t index) {
    std::fill(fresh.blocks.begin(), fresh.blocks.begin() + fresh.touched, 0u);
    fresh.blocks.resize(arena_step / block_bytes);
    fresh.index = index, fresh.touched = 0, fresh.used = 0, fresh.occupied = 0, fresh.operation = 0;
    fresh.ub = arena + index * arena_step;
    fresh.is_waiting = fresh.is_pointer_access = false;
    fresh.calls.assign(1, 0);
    fresh.windows.fill(1);
    for (Clock& clock : fresh.clocks) clock.fill(0);
    for (auto& from : fresh.flags) for (auto& to : from) for (Flag& flag : to) flag = Flag();
    std::fill(std::begin(fresh.taken_tensors), std::end(fresh.taken_tensors), 0);
    fresh.copies = CopyState();
    fresh.masks = MaskState();
    fresh.queues.clear();
    fresh.latest = {};
}

void finish(Core& done) {
    for (const auto& queue : done.queues) queue->end();
    for (auto& from : done.flags) for (auto& to : from) for (Flag& flag : to) {
        if (flag.is_set) add_finding("synccheck", "SetFlag without WaitFlag", "SetFlag without WaitFlag: the flag is left to the next kernel", "", -1, &done, flag.operation);
    }
}

void prepare_memory() {
    arena_step = (launch->ub_bytes + slack + 4095) / 4096 * 4096;
    if (arena_bytes < arena_step * launch->blocks) {
        std::free(arena);
        arena_bytes = arena_step * launch->blocks;
        arena = static_cast<uint8_t*>(std::aligned_alloc(4096, arena_bytes));
    }
    tensors.resize(launch->buffer_count);
    for (uint32_t i = 0; i < launch->buffer_count; ++i) {
        tensors[i].buffer = launch->buffers[i];
        const Buffer& buffer = tensors[i].buffer;
        const bool is_written = buffer.role == output || buffer.role == workspace;
        if (is_written) tensors[i].cells.resize(std::max<size_t>(tensors[i].cells.size(), buffer.bytes / std::max(1u, buffer.itemsize) + 1));
        else tensors[i].cells.clear();
    }
    while (cores.size() < launch->blocks) cores.push_back(std::make_unique<Core>());
    states.assign(1, BlockState());
    states[0].references = 1u << 30;
    free_states.clear();
}

// Outputs that hold at the end what came of bytes that were never written.
void check_outputs() {
    for (const Tensor& tensor : tensors) {
        if (tensor.buffer.role != output) continue;
        for (uint64_t i = 0; i * tensor.buffer.itemsize < tensor.buffer.bytes; ++i) {
            const Access& store = tensor.cells[i].store;
            if (store.phase < first_phase || !store.is_unknown) continue;
            add_finding("initcheck", "an output", store.is_atomic ? "an output is computed from what was never written, or is added to where it was never written" : "an output is computed from what was never written",
                        tensor.buffer.name, static_cast<int64_t>(i * tensor.buffer.itemsize), cores[store.core].get(), store.operation);
        }
    }
}

void run_blocks() {
    std::vector<uint8_t*> arguments;
    for (const Tensor& tensor : tensors) arguments.push_back(tensor.buffer.data);
    for (uint32_t i = 0; i < launch->blocks; ++i) {
        prepare(*cores[i], i);
        cores[i]->fiber.start([&] { ascendc_entry(arguments.data()); });
    }
    uint32_t ended = 0;
    while (ended < launch->blocks) {
        Core *missing = nullptr, *waits = nullptr;
        for (uint32_t k = 0; k < launch->blocks; ++k) {
            core = cores[launch->order ? launch->order[k] : k].get();
            if (!core->fiber.is_done()) {
                core->is_waiting = false;
                core->fiber.resume();
                if (core->fiber.is_done()) finish(*core), ++ended;
            }
            (core->fiber.is_done() ? missing : waits) = core;
        }
        if (missing && waits) {
            add_finding("synccheck", "a core misses", "core " + std::to_string(missing->index) + " ends without this SyncAll: the others wait for ever", "", -1, waits, waits->operation);
        }
        ++phase;
        for (uint32_t k = 0; k < launch->blocks; ++k) core = cores[k].get(), barrier_all();
    }
}

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (char c : text) (c == '"' || c == '\\' ? result += '\\' : result) += c;
    return result + '"';
}
}  // namespace
}  // namespace model

using namespace model;

extern "C" int ascendc_launch(const Launch* request) {
    launch = request;
    findings.clear();
    key_was_asked = key_was_found = false;
    first_phase = ++phase;
    prepare_memory();
    run_blocks();
    check_outputs();
    core = nullptr;
    if (key_was_asked && !key_was_found) report("launchcheck", "a tiling key that no branch serves", nullptr, (": " + std::to_string(launch->tiling_key)).c_str());
    return 0;
}

extern "C" const char* ascendc_findings() {
    findings_text = "[";
    for (const auto& [key, finding] : findings) {
        findings_text += std::string(findings_text.size() > 1 ? ",\n" : "") + "{\"kind\":" + quoted(finding.kind) + ",\"text\":" + quoted(finding.text) + ",\"tensor\":" + quoted(finding.tensor) +
                         ",\"byte\":" + std::to_string(finding.byte) + ",\"core\":" + std::to_string(finding.core) + ",\"call\":" + quoted(finding.call) + ",\"count\":" + std::to_string(finding.count) + "}";
    }
    return (findings_text += "]").c_str();
}

extern "C" const char* ascendc_assumptions() {
    static std::string text;
    text = "[";
    for (const AssumptionRow& row : table) {
        text += std::string(text.size() > 1 ? ",\n" : "") + "{\"name\":" + quoted(row.name) + ",\"on\":" + (row.is_on ? "true" : "false") + ",\"says\":" + quoted(row.says) + ",\"source\":" + quoted(row.source) + "}";
    }
    return (text += "]").c_str();
}

extern "C" int ascendc_assume(const char* name, int is_on) {
    for (AssumptionRow& row : table) {
        if (std::string(row.name) == name) return row.is_on = is_on, 0;
    }
    return 1;
}

// ---- The calls that -fsanitize=thread puts before loads and stores. ----

#define MODEL_ACCESS(bytes)                                                                        \
    void __tsan_read##bytes(void* address) { watch_pointer(address, bytes, false); }               \
    void __tsan_write##bytes(void* address) { watch_pointer(address, bytes, true); }               \
    void __tsan_unaligned_read##bytes(void* address) { watch_pointer(address, bytes, false); }     \
    void __tsan_unaligned_write##bytes(void* address) { watch_pointer(address, bytes, true); }     \
    void __tsan_read_write##bytes(void* address) { watch_pointer(address, bytes, false), watch_pointer(address, bytes, true); }
extern "C" {
MODEL_ACCESS(1) MODEL_ACCESS(2) MODEL_ACCESS(4) MODEL_ACCESS(8) MODEL_ACCESS(16)
void __tsan_read_range(void* address, unsigned long bytes) { watch_pointer(address, static_cast<uint32_t>(bytes), false); }
void __tsan_write_range(void* address, unsigned long bytes) { watch_pointer(address, static_cast<uint32_t>(bytes), true); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
