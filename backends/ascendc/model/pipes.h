// What orders the pipes of one core: flags, barriers, and the waits of the scalar unit, as vector clocks. A pipe's work is
// cut into windows, closed whenever the pipe makes its progress known; an access is ordered before another if its window
// is known to be complete to the other's pipe. Memory asks; who waits for whom in a queue stands in queues.h.
#pragma once
#include <array>

#include "memory.h"

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

namespace model {

using Clock = std::array<uint32_t, pipe_count>;  // of each pipe, the last window that is known to be complete

Clock release(Pipe pipe);                     // what the pipe knows, its own work so far included
void acquire(Pipe pipe, const Clock& clock);  // the pipe's later work begins after all of that
void barrier_all();
void sync_all();

struct Flag {
    bool is_set = false, is_taken = false;  // taken: by AllocEventID
    Clock clock{};
    uint32_t operation = 0;
};
struct Event {
    Pipe from, to;
};
Flag* flags_of(Event event);  // eight of them
uint32_t current_operation();

// [SetFlag/WaitFlag(ISASI): constraints]
inline void set_flag(Event event, int id, Site site) {
    begin(event.from, "SetFlag", site);
    Flag& flag = flags_of(event)[id & 7];
    if (id < 0 || id > 7) report("synccheck", "an event id is not in 0 to 7");
    if (flag.is_set) report("synccheck", "SetFlag of a flag that is set already: no WaitFlag between");
    flag.is_set = true, flag.clock = release(event.from), flag.operation = current_operation();
}
inline void wait_flag(Event event, int id, Site site) {
    begin(event.to, "WaitFlag", site);
    Flag& flag = flags_of(event)[id & 7];
    if (!flag.is_set) return report("synccheck", "WaitFlag of a flag that nothing sets: the pipe hangs");
    flag.is_set = false;
    acquire(event.to, flag.clock);
}
inline int8_t free_event(Event event, bool take) {
    Flag* const flags = flags_of(event);
    for (int8_t id = 0; id < 8; ++id) {
        if (!flags[id].is_taken) return flags[id].is_taken = take, id;
    }
    return report("synccheck", "no event id is left"), 0;
}

constexpr Pipe pipe_of(pipe_t pipe) {
    return pipe == PIPE_V ? Pipe::vector : pipe == PIPE_MTE2 ? Pipe::mte2 : pipe == PIPE_MTE3 ? Pipe::mte3 : Pipe::scalar;
}
}  // namespace model

namespace AscendC {
using TEventID = int8_t;

// [SetFlag/WaitFlag(ISASI): parameters]: SOURCE_DESTINATION.
enum class HardEvent : uint8_t {
    MTE2_V, V_MTE2, MTE3_V, V_MTE3, MTE2_S, S_MTE2, MTE3_S, S_MTE3, V_S, S_V, MTE3_MTE2, MTE2_MTE3
};
constexpr model::Event event_of(HardEvent event) {
    constexpr model::Pipe S = model::Pipe::scalar, V = model::Pipe::vector, in = model::Pipe::mte2, out = model::Pipe::mte3;
    constexpr model::Event events[] = {{in, V}, {V, in}, {out, V}, {V, out}, {in, S}, {S, in},
                                       {out, S}, {S, out}, {V, S}, {S, V}, {out, in}, {in, out}};
    return events[static_cast<int>(event)];
}

template <HardEvent event> void SetFlag(int32_t id, model::Site site = {}) { model::set_flag(event_of(event), id, site); }
template <HardEvent event> void WaitFlag(int32_t id, model::Site site = {}) { model::wait_flag(event_of(event), id, site); }

// [PipeBarrier(ISASI): function]
template <pipe_t pipe> void PipeBarrier(model::Site site = {}) {
    model::begin(model::pipe_of(pipe), "PipeBarrier", site);
    if (pipe == PIPE_ALL) model::barrier_all();
    else model::acquire(model::pipe_of(pipe), model::release(model::pipe_of(pipe)));
}

// [DataSyncBarrier(ISASI): function]: later instructions wait until all earlier accesses are done, of whatever memory.
enum class MemDsbT { ALL, DDR, UB, SEQ };
template <MemDsbT memory> void DataSyncBarrier(model::Site site = {}) { PipeBarrier<PIPE_ALL>(site); }

// [SyncAll]: a barrier of all cores; the software form's workspaces are not touched.
template <bool is_aiv_only = true> void SyncAll(model::Site site = {}) {
    model::begin(model::Pipe::scalar, "SyncAll", site);
    model::sync_all();
}
template <bool is_aiv_only = true, class Global, class Local>
void SyncAll(const Global&, const Local&, int32_t = 0, model::Site site = {}) { SyncAll<is_aiv_only>(site); }

// [DataCacheCleanAndInvalid]: no cache is modelled.
enum class CacheLine : uint64_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE };
enum class DcciDst : uint64_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
template <class T, CacheLine line, DcciDst destination = DcciDst::CACHELINE_ALL, class Tensor>
void DataCacheCleanAndInvalid(const Tensor&) {}
}  // namespace AscendC
