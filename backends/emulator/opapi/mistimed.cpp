#include "mistimed.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "../ascendcl/defects.h"
#include "../ascendcl/heap.h"
#include "../ascendcl/text.h"

namespace emulator {
namespace {

// What a stretch of device memory held at some moment.
struct Held {
    char* address;
    std::vector<char> bytes;

    bool is_there() const { return heap().contains(address, bytes.size()); }
};

using Memory = std::vector<Held>;

void read(Memory& memory) {
    for (Held& held : memory) {
        if (held.is_there()) std::memcpy(held.bytes.data(), held.address, held.bytes.size());
    }
}

void write(const Memory& memory) {
    for (const Held& held : memory) {
        if (held.is_there()) std::memcpy(held.address, held.bytes.data(), held.bytes.size());
    }
}

template <class Chosen>
Memory hold(const PoolPlan& plan, const std::vector<void*>& addresses, Chosen is_chosen) {
    Memory memory;
    for (size_t i = 0; i < plan.operands.size(); ++i) {
        const View& view = plan.operands[i].view;
        if (!is_chosen(i)) continue;
        char* const first = static_cast<char*>(addresses[i]) + view.first_byte();
        memory.push_back({first, std::vector<char>(static_cast<size_t>(view.extent_bytes()))});
    }
    read(memory);
    return memory;
}

// The task finds its inputs as they were when it was enqueued.
Stream::Task on_stale(const Memory& stale, Stream::Task task) {
    return [stale, task = std::move(task)] {
        Memory present = stale;
        read(present);
        write(stale);
        const int status = task();
        write(present);
        return status;
    };
}

// Inputs at the addresses of the last call, with the same views, are taken to be those of the last call.
Memory kept(const PoolPlan& plan, const std::vector<void*>& addresses, Memory own) {
    static auto& last = *new std::pair<std::string, Memory>;
    static auto& mutex = *new std::mutex;
    std::string key = text(plan.family->name, '|', plan.route);
    for (size_t i = 0; i < plan.operands.size(); ++i) {
        const View& view = plan.operands[i].view;
        key += text('|', reinterpret_cast<uintptr_t>(addresses[i]), view.shape, view.strides, view.offset);
    }
    const std::lock_guard lock(mutex);
    if (last.first != key) last = {key, std::move(own)};
    return last.second;
}

// The results arrive when the stream has nothing left to do, not when its next task begins.
Stream::Task with_late_results(const Memory& before, Stream::Task task) {
    return [before, task = std::move(task)] {
        Memory earlier = before;
        read(earlier);
        const int status = task();
        Memory results = before;
        read(results);
        write(earlier);
        Stream::finish_late([results] { write(results); });
        return status;
    };
}

}  // namespace

Stream::Task mistimed(const PoolPlan& plan, const std::vector<void*>& addresses, Stream::Task task) {
    const auto is_input = [&](size_t i) { return i < plan.family->inputs.size() && plan.operands[i].is_touched; };
    const auto is_strided = [&](size_t i) { return is_input(i) && plan.operands[i].staging >= 0; };
    const auto is_result = [&](size_t i) { return i >= plan.family->inputs.size(); };
    if (seeded(Defect::inputs_read_at_the_call)) return on_stale(hold(plan, addresses, is_input), std::move(task));
    if (seeded(Defect::inputs_kept))
        return on_stale(kept(plan, addresses, hold(plan, addresses, is_input)), std::move(task));
    if (seeded(Defect::strided_inputs_copied_at_once))
        return on_stale(hold(plan, addresses, is_strided), std::move(task));
    if (seeded(Defect::result_written_late))
        return with_late_results(hold(plan, addresses, is_result), std::move(task));
    return task;
}

}  // namespace emulator
