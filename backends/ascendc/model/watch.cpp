// The watch: every access is held against what is known of its bytes, and what is wrong becomes a finding.
#include "watch.h"
#include "simt.h"

namespace model {

const Launch* launch = nullptr;
uint32_t launch_number = 0, phase = 0, first_phase = 0;
std::vector<Tensor> tensors;
std::vector<Core> cores;
std::deque<Operation> operations;
std::map<std::string, Finding> findings;
Core* core = nullptr;
Tensor ub_of_threads;
uint64_t ub_step = 0;
uint32_t thread_epoch = 0;
uint16_t thread_number = 0;
bool is_watched = false, memory_is_short = false;

namespace {

// ---- What is assumed where no document decides, or where one document is relied on against the practice of others. ----

struct AssumptionRow {
    const char* name;
    bool is_on;
} table[assumption_count] = {
    // Vector instructions follow each other without PipeBarrier<PIPE_V>. Source: intra-core synchronisation, key features: on
    // 950 by hardware, on A2 and A3 by the compiler under --cce-auto-sync. Kernels of the library are compiled without it, and
    // lack barriers in places; what a card does there is open.
    {"vector_pipe_in_order", true},
    // What the scalar unit waited for is done before any instruction that it issues later. Source: principles of TPipe-TQue
    // programming: the scalar unit issues all instructions, in program order.
    {"scalar_wait_holds_issue", true},
    // Within a vector function a load waits for the stores before it without LocalMemBar. Source: LocalMemBar: only where both
    // use the same register, which the compiler decides, not the source.
    {"registers_keep_order", false},
    // Narrowing to half or bfloat16 gives the largest value for infinities and 0 for NaN. Source: SetCtrlSpr: CTRL[48]
    // saturates at reset; CANN 8.5, set_device_sat_mode: A2 and A3 run in Inf/NaN mode.
    {"infinities_saturate", false},
    // A cast to an integer that does not hold the value gives the nearest bound. Source: precision conversion: overflow
    // saturates; SetCtrlSpr: CTRL[59] is 0 and CTRL[60] 1 at reset.
    {"integers_saturate", true},
    // Max, Min and ReduceMax give NaN where an operand is NaN; Max and Min order -0.0 below +0.0. Source: none for these; Reg
    // Reduce: max(-0, +0) is +0, a maximum with NaN is NaN.
    {"maximum_is_ieee", true},
};
// Not to be switched: SyncAll waits for all pipes of all cores, and holds all of them. Source: SyncAll, table 1: the default
// of 950 is {PIPE_ALL, PIPE_ALL}; for A2 and A3 the page names no pipe.

bool is_watching = false;  // what the watch itself does is not watched

// ---- Findings. ----

bool is_in_ub(const void* address, uint64_t bytes) {
    const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - core->ub);
    return offset < ub_step && bytes <= ub_step - offset;
}
std::string describe(uint32_t operation) {
    const Operation& call = operations[operation];
    const std::string file = call.site.file, line = std::to_string(call.site.line);
    return std::string(call.name) + (call.site.line ? " (" + file.substr(file.rfind('/') + 1) + ":" + line + ")" : "");
}
}  // namespace

void add_finding(const char* kind, const std::string& text, const void* address, uint32_t operation, bool is_of_ub) {
    Finding fresh{kind, text, "", describe(operation), -1, operations[operation].core, 0};
    int64_t nearest = INT64_MAX;
    const auto consider = [&](const char* name, const uint8_t* data, uint64_t bytes) {
        const int64_t offset = reinterpret_cast<int64_t>(address) - reinterpret_cast<int64_t>(data);
        const int64_t distance = std::max({-offset, offset - static_cast<int64_t>(bytes) + 1, int64_t{0}});
        if (distance < nearest) nearest = distance, fresh.tensor = name, fresh.byte = offset;
    };
    if (address && core && (is_of_ub || is_in_ub(address, 0))) consider("UB", core->ub, launch->ub_bytes);
    else if (address) for (const Tensor& tensor : tensors) consider(tensor.buffer.name, tensor.buffer.data, tensor.buffer.bytes);
    ++findings.emplace(fresh.kind + '|' + text + '|' + fresh.tensor + '|' + fresh.call, fresh).first->second.count;
}

namespace {

// ---- Order. ----

bool is_ordered(Pipe earlier, uint32_t window) {
    if (window <= core->clocks[static_cast<int>(core->pipe)][static_cast<int>(earlier)]) return true;
    if (earlier != core->pipe || earlier != Pipe::vector) return earlier == core->pipe && earlier == Pipe::scalar;
    return !core->in_vector_function && assumed(vector_pipe_in_order);
}

// Whether an access of the core's own pipes is ordered before the present one; if not: a finding, or the flags that the compiler
// adds under --cce-auto-sync between S and V, MTE2, MTE3. [intra-core synchronisation: key features, table 3]
void check_order(Pipe earlier, uint32_t window, uint32_t operation, bool was_store, bool is_store, const void* address) {
    if (is_ordered(earlier, window) || operation == core->operation) return;
    static const char* const names[] = {"S", "V", "MTE2", "MTE3"};
    std::string what = std::string(is_store ? "store" : "load") + " by " + names[static_cast<int>(core->pipe)]
        + " is not ordered after the " + (was_store ? "store" : "load") + " by " + names[static_cast<int>(earlier)];
    const bool is_within_vector = earlier == Pipe::vector && core->pipe == Pipe::vector;
    if (is_within_vector && core->in_vector_function && assumed(vector_pipe_in_order)) {
        if (!was_store || is_store || window != window_of(Pipe::vector) || assumed(registers_keep_order)) return;
        what = "a vector function loads what it stored before, no LocalMemBar between (assumption registers_keep_order is off)";
    } else if (is_within_vector) {
        what += ", no PipeBarrier between (assumption vector_pipe_in_order is off)";
    } else if (earlier == Pipe::scalar || core->pipe == Pipe::scalar) {
        if (launch->auto_sync) return acquire(core->pipe, release(earlier));
        what += ", and the compiler adds no flags (auto_sync is off)";
    }
    add_finding("racecheck", what + ": " + describe(operation) + " before it", address, core->operation);
}

// ---- UB. ----

// Each block that holds some of the bytes, with a bit for each of those and the place of the first.
template <class Visit> void each_block(const void* address, uint64_t bytes, Visit visit) {
    const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - core->ub), end = offset + bytes;
    for (uint64_t begin = offset / block_bytes * block_bytes; bytes && begin < end; begin += block_bytes) {
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
            if (!common || is_ordered(static_cast<Pipe>(pipe), stamp.window)) return;
            const uint8_t* const at = address + __builtin_ctz(common) - __builtin_ctz(bytes);
            check_order(static_cast<Pipe>(pipe), stamp.window, stamp.operation, was_store, is_store, at);
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
    const uint8_t *const end = at + bytes, *const ub_end = core->ub + launch->ub_bytes;
    const bool is_outside = !is_in_ub(at, bytes), is_beyond = end > ub_end;
    const bool is_foreign = buffer.begin && (at < buffer.begin || end > buffer.end);
    if (is_outside || is_beyond || is_foreign) {
        const std::string what = is_store ? "store" : "load";
        const uint8_t* const last = is_foreign ? at < buffer.begin ? at : buffer.end : ub_end;
        const char* const where = is_outside ? " outside of UB" : is_beyond ? " beyond the end of UB" : " beyond the buffer of the tensor";
        add_finding("memcheck", what + where, is_outside ? at : std::max(at, last), core->operation, true);
    }
    if (is_store && core->occupied && core->pipe != Pipe::mte3 && !is_ordered(Pipe::mte3, core->occupied)) {
        core->occupied = 0;
        report("racecheck", "UB is used while InitGlobalMemory still copies from it", address);
    }
    return !is_outside;
}

// ---- GM. ----

uint32_t bytes_inside(const Tensor* tensor, const uint8_t* address, uint32_t bytes) {
    if (!tensor) return 0;
    return static_cast<uint32_t>(std::min<uint64_t>(bytes, tensor->buffer.bytes - static_cast<uint64_t>(address - tensor->buffer.data)));
}

void check_access(const Access& earlier, const Access& now, const void* address) {
    if (earlier.phase != now.phase || (earlier.is_atomic && now.is_atomic)) return;
    const bool of_cores = earlier.core != now.core || earlier.is_of_cores;
    const bool same_window = earlier.thread && earlier.pipe == now.pipe && earlier.window == now.window;
    if (!of_cores && !(same_window && (earlier.thread != now.thread || earlier.is_of_threads))) {
        return check_order(earlier.pipe, earlier.window, earlier.operation, earlier.is_store, now.is_store, address);
    }
    const auto kind = [](const Access& access) { return access.is_atomic ? "atomic addition" : access.is_store ? "store" : "load"; };
    const char* const who = of_cores ? " of two cores, no SyncAll between: " : " of two threads, no __syncthreads between: ";
    add_finding("racecheck", std::string(kind(now)) + " and " + kind(earlier) + who + describe(earlier.operation) + " before it",
                address, now.operation);
}

// Answers whether what is read was written in this launch.
bool note_access(Tensor& tensor, const void* address, uint64_t bytes, uint32_t in_phase, bool is_store, bool is_atomic, bool is_known) {
    bool all_known = true;
    const uint64_t offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - tensor.buffer.data), size = tensor.buffer.itemsize;
    for (uint64_t i = offset / size; tensor.is_written && i * size < offset + bytes; ++i) {
        auto& [store, load] = tensor.cells[i];
        Access now{in_phase, window_of(core->pipe), core->operation, static_cast<uint16_t>(core->index), thread_number,
                   core->pipe, is_store, is_atomic, false, false, false};
        const bool is_defined = store.phase >= first_phase && !store.is_unknown;
        all_known = all_known && is_defined;
        check_access(store, now, tensor.buffer.data + i * size);
        if (is_store) {
            check_access(load, now, tensor.buffer.data + i * size);
            now.is_unknown = !is_known || (is_atomic && !is_defined);
            const bool is_same_part = store.phase == in_phase && (!thread_number || store.window == now.window);
            now.is_atomic = is_atomic && (store.is_atomic || !is_same_part);  // a copy before it is not forgotten
        } else if (load.phase == in_phase) {
            now.is_of_cores = load.is_of_cores || load.core != now.core;
            now.is_of_threads = load.window == now.window && (load.is_of_threads || load.thread != now.thread);
        }
        (is_store ? store : load) = now;
    }
    return all_known;
}

// What a thread does by a plain pointer, or atomically. Outside of UB and all tensors lie variables of its own.
void access_by_thread(void* address, uint32_t bytes, bool is_store, bool is_atomic) {
    bool is_known = true;
    if (is_in_ub(address, bytes)) {
        ub_of_threads.buffer.data = core->ub;
        const auto offset = static_cast<uint64_t>(static_cast<uint8_t*>(address) - core->ub);
        bool is_repeated = !is_store;  // of what many threads load, two loads say all
        for (uint64_t i = offset / 2; i * 2 < offset + bytes; ++i) {
            const auto& [store, load] = ub_of_threads.cells[i];
            is_repeated = is_repeated && load.phase == thread_epoch && load.is_of_threads && store.phase != thread_epoch;
        }
        if (is_repeated || !reach(address, bytes, {}, is_store)) return;
        each_block(address, bytes, [&](Block& block, uint32_t mask, const uint8_t* first) {
            is_known = is_known && (block.defined & mask) == mask;
            touch(block, mask, first, is_store);
        });
        note_access(ub_of_threads, address, bytes, thread_epoch, is_store, is_atomic, true);
    } else if (Tensor* const tensor = find_tensor(address, bytes)) {
        if (is_store && !tensor->is_written) return report("memcheck", "store to an input", address);
        is_known = note_access(*tensor, address, bytes, phase, is_store, is_atomic, true);
    }
    if (!is_store || is_atomic) require_defined(is_known, "a thread reads what was never written", address);
}

}  // namespace

// ---- What the headers declare. ----

Tensor* find_tensor(const void* address, uint64_t bytes) {
    for (Tensor& tensor : tensors) {
        if (tensor.holds(address, bytes)) return &tensor;
    }
    return nullptr;
}

bool assumed(Assumption assumption) { return table[assumption].is_on; }
void begin(Pipe pipe, const char* name, Site site) {
    core->pipe = pipe;
    constexpr size_t most = 1u << 28;  // 8.6 GB of them
    if (operations.size() == most) throw std::bad_alloc();
    core->operation = static_cast<uint32_t>(operations.size());
    operations.push_back({name, site, core->index});
}
uint32_t current_operation() { return core->operation; }
void report(const char* kind, const char* what, const void* address) {
    const bool is_of_ub = core->pipe == Pipe::vector && !thread_number;  // of an instruction of V, however wild
    add_finding(kind, what, address, core->operation, is_of_ub);
}
void require_alignment(const void* address, uint32_t bytes) {
    if (reinterpret_cast<uint64_t>(address) % bytes == 0) return;
    report("memcheck", ("an operand in UB is not aligned to " + std::to_string(bytes) + " bytes").c_str(), address);
}

// The buffer that a plain address lies in; none if it lies in none.
Extent buffer_at(const uint8_t* address) {
    const auto& ends = core->buffers.ends;
    const auto end = std::upper_bound(ends.begin(), ends.end(), address);
    if (end == ends.end() || address < core->ub) return {};
    return {end == ends.begin() ? core->ub : end[-1], *end};
}
void load(Bytes& to, uint32_t at, const void* from, uint32_t bytes, Extent buffer) {
    const auto* const place = static_cast<const uint8_t*>(from);
    uint32_t own = bytes;  // what an instruction of V loads beyond the buffer is undefined, and may be: it takes whole repeats
    if (core->pipe == Pipe::vector && !buffer.begin) buffer = buffer_at(place);
    if (core->pipe == Pipe::vector && buffer.begin && place + bytes > buffer.end && place >= buffer.begin) {
        own = static_cast<uint32_t>(std::max<int64_t>(buffer.end - place, 0)), buffer = {};
    }
    core->loaded = {from, own};
    const bool is_there = reach(from, bytes, buffer, false);
    if (!is_there) own = 0, std::memset(to.value + at, 0xa5, bytes);
    for (uint32_t byte = at + own; byte < at + bytes; ++byte) to.unknown.set(byte, 1, true);
    each_block(from, own, [&](Block& block, uint32_t mask, const uint8_t* first) {
        touch(block, mask, first, false);
        const uint32_t unknown = mask & ~block.defined;
        if (unknown) to.unknown.add(at + static_cast<uint32_t>(first - place), unknown >> __builtin_ctz(mask));
    });
    if (is_there) std::memcpy(to.value + at, from, bytes);
}
void store(void* to, const Bytes& from, uint32_t at, uint32_t bytes, Extent buffer) {
    if (!reach(to, bytes, buffer, true)) return;
    const bool all_known = !from.unknown.any();
    each_block(to, bytes, [&](Block& block, uint32_t mask, const uint8_t* first) {
        touch(block, mask, first, true);
        const uint32_t place = at + static_cast<uint32_t>(first - static_cast<uint8_t*>(to));
        if (!all_known) block.defined &= ~(mask & from.unknown.from(place) << __builtin_ctz(mask));
    });
    std::memcpy(to, from.value + at, bytes);
}
void forget_load() {
    each_block(core->loaded.first, core->loaded.second, [](Block& block, uint32_t mask, const uint8_t*) {
        Stamp& stamp = block.loads[static_cast<int>(Pipe::vector)];
        if (stamp.operation + 1 == core->operation) stamp.bytes &= ~mask;
    });
}
void load_global(Bytes& to, uint32_t at, const void* from, uint32_t bytes) {
    const auto* const place = static_cast<const uint8_t*>(from);
    Tensor* const tensor = find_tensor(from, 1);
    const uint32_t inside = bytes_inside(tensor, place, bytes);
    if (inside < bytes) report("memcheck", "load outside of every tensor", place + inside);
    std::memcpy(to.value + at, from, inside);
    std::memset(to.value + at + inside, static_cast<int>(launch->poison), bytes - inside);
    for (uint32_t byte = at + inside; byte < at + bytes; ++byte) to.unknown.set(byte, 1, true);
    for (uint32_t i = 0; i < inside && tensor->is_written; i += tensor->buffer.itemsize) {
        const uint32_t part = std::min(tensor->buffer.itemsize, inside - i);
        const bool is_known = note_access(*tensor, place + i, part, phase, false, false, true);
        for (uint32_t byte = at + i; byte < at + i + part; ++byte) to.unknown.set(byte, 1, !is_known);
    }
}
void store_global(void* to, const Bytes& from, uint32_t at, uint32_t bytes, Addition addition) {
    auto* const place = static_cast<uint8_t*>(to);
    Tensor* const tensor = find_tensor(to, 1);
    const uint32_t inside = bytes_inside(tensor, place, bytes);
    if (inside < bytes) report("memcheck", "store outside of every tensor", place + inside);
    if (inside && !tensor->is_written) return report("memcheck", "store to an input", to);
    const uint32_t size = addition.add ? addition.bytes : inside ? tensor->buffer.itemsize : 1;
    for (uint32_t i = 0; i < inside; i += size) {
        const uint32_t part = std::min(size, inside - i);
        bool is_known = true;
        for (uint32_t byte = at + i; byte < at + i + part; ++byte) is_known = is_known && !from.unknown[byte];
        note_access(*tensor, place + i, part, phase, true, addition.add, is_known);
        if (addition.add && part == size) addition.add(place + i, from.value + at + i);
    }
    if (!addition.add) std::memcpy(to, from.value + at, inside);
}

void occupy_ub() {
    if (core->buffers.used) report("synccheck", "InitGlobalMemory is called after InitBuffer");
    core->occupied = window_of(Pipe::mte3);
}

Clock release(Pipe pipe) {
    Clock clock = core->clocks[static_cast<int>(pipe)];
    clock[static_cast<int>(pipe)] = window_of(pipe)++;
    return clock;
}
void acquire(Pipe pipe, const Clock& clock) {
    const bool holds_issue = pipe == Pipe::scalar && assumed(scalar_wait_holds_issue);
    for (int later = 0; later < pipe_count; ++later) {
        const bool waits = later == static_cast<int>(pipe);
        for (int i = waits ? 0 : 1; i < pipe_count && (waits || holds_issue); ++i) {  // who is held does not wait for S
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

void add_atomically(void* to, void* before, const void* term, Addition addition) {
    if (!is_in_ub(to, addition.bytes) && !find_tensor(to, addition.bytes)) {
        return report("memcheck", "store outside of every tensor", to);
    }
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

// Outputs that hold at the end what came of bytes that were never written.
void check_outputs() {
    for (const Tensor& tensor : tensors) {
        for (uint64_t at = 0; tensor.buffer.role == output && at < tensor.buffer.bytes; at += tensor.buffer.itemsize) {
            const Access& store = tensor.cells[at / tensor.buffer.itemsize].store;
            if (store.phase < first_phase || !store.is_unknown) continue;
            const char* const what = "an output is computed from, or added to, what was never written";
            add_finding("initcheck", what, tensor.buffer.data + at, store.operation);
        }
    }
}

// ---- What Python asks. ----

namespace {

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (char c : text) (c == '"' || c == '\\' ? result += '\\' : result) += c;
    return result + '"';
}
}  // namespace
}  // namespace model

using namespace model;

extern "C" {
const char* ascendc_findings() {
    static std::string text;
    text = "[";
    for (const auto& [key, it] : findings) {
        text += (text.size() > 1 ? ",\n{\"kind\":" : "{\"kind\":") + quoted(it.kind) + ",\"text\":" + quoted(it.text)
            + ",\"tensor\":" + quoted(it.tensor) + ",\"byte\":" + std::to_string(it.byte) + ",\"core\":" + std::to_string(it.core)
            + ",\"call\":" + quoted(it.call) + ",\"count\":" + std::to_string(it.count) + "}";
    }
    return (text += "]").c_str();
}

int ascendc_assume(const char* name, int is_on) {
    for (AssumptionRow& row : table) {
        if (std::string(row.name) == name) return std::exchange(row.is_on, is_on);
    }
    return -1;
}

// The calls that -fsanitize=thread puts before loads and stores.
#define MODEL_ACCESS(bytes)                                                                    \
    void __tsan_read##bytes(void* address) { watch_pointer(address, bytes, false); }           \
    void __tsan_write##bytes(void* address) { watch_pointer(address, bytes, true); }           \
    void __tsan_unaligned_read##bytes(void* address) { watch_pointer(address, bytes, false); } \
    void __tsan_unaligned_write##bytes(void* address) { watch_pointer(address, bytes, true); }
MODEL_ACCESS(1) MODEL_ACCESS(2) MODEL_ACCESS(4) MODEL_ACCESS(8) MODEL_ACCESS(16)
void __tsan_read_range(void* address, unsigned long bytes) { watch_pointer(address, bytes, false); }
void __tsan_write_range(void* address, unsigned long bytes) { watch_pointer(address, bytes, true); }
void __tsan_init() { is_watched = true; }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
