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

Clock release(Pipe pipe);                      // what the pipe knows, its own work so far included
void acquire(Pipe pipe, const Clock& clock);   // the pipe's later work begins after all of that
void barrier(Pipe pipe);
void barrier_all();
void set_flag(Pipe from, Pipe to, int id);
void wait_flag(Pipe from, Pipe to, int id);
int fetch_event(Pipe from, Pipe to, bool take);  // an event id that no AllocEventID holds
void release_event(Pipe from, Pipe to, int id);

void sync_all();

constexpr Pipe pipe_of(pipe_t pipe) {
    return pipe == PIPE_V ? Pipe::vector : pipe == PIPE_MTE2 ? Pipe::mte2 : pipe == PIPE_MTE3 ? Pipe::mte3 : Pipe::scalar;
}
}  // namespace model

namespace AscendC {
using TEventID = int8_t;

// [SetFlag/WaitFlag(ISASI): parameters]: SOURCE_DESTINATION.
enum class HardEvent : uint8_t { MTE2_V, V_MTE2, MTE3_V, V_MTE3, MTE2_S, S_MTE2, MTE3_S, S_MTE3, V_S, S_V, MTE3_MTE2, MTE2_MTE3, V_V, MAX };

constexpr model::Pipe source_of(HardEvent event) {
    constexpr model::Pipe pipes[] = {model::Pipe::mte2, model::Pipe::vector, model::Pipe::mte3, model::Pipe::vector, model::Pipe::mte2,
                                     model::Pipe::scalar, model::Pipe::mte3, model::Pipe::scalar, model::Pipe::vector, model::Pipe::scalar,
                                     model::Pipe::mte3, model::Pipe::mte2, model::Pipe::vector};
    return pipes[static_cast<int>(event)];
}
constexpr model::Pipe destination_of(HardEvent event) {
    return event == HardEvent::V_V ? model::Pipe::vector : source_of(static_cast<HardEvent>(static_cast<int>(event) ^ 1));
}

template <HardEvent event>
void SetFlag(int32_t id, model::Site site = {}) {
    model::begin(source_of(event), "SetFlag", site);
    model::set_flag(source_of(event), destination_of(event), id);
}
template <HardEvent event>
void WaitFlag(int32_t id, model::Site site = {}) {
    model::begin(destination_of(event), "WaitFlag", site);
    model::wait_flag(source_of(event), destination_of(event), id);
}
// [SetFlag/WaitFlag of TQueSync]
template <pipe_t source, pipe_t destination>
class TQueSync {
public:
    void SetFlag(TEventID id, model::Site site = {}) {
        model::begin(model::pipe_of(source), "SetFlag", site);
        model::set_flag(model::pipe_of(source), model::pipe_of(destination), id);
    }
    void WaitFlag(TEventID id, model::Site site = {}) {
        model::begin(model::pipe_of(destination), "WaitFlag", site);
        model::wait_flag(model::pipe_of(source), model::pipe_of(destination), id);
    }
};

// [PipeBarrier(ISASI): function]
template <pipe_t pipe>
void PipeBarrier(model::Site site = {}) {
    model::begin(model::pipe_of(pipe), "PipeBarrier", site);
    if (pipe == PIPE_ALL) model::barrier_all();
    else model::barrier(model::pipe_of(pipe));
}

// [DataSyncBarrier(ISASI): function]: later instructions wait until all earlier accesses are done; which memory is not told apart.
enum class MemDsbT { ALL, DDR, UB, SEQ };
template <MemDsbT memory>
void DataSyncBarrier(model::Site site = {}) {
    model::begin(model::Pipe::scalar, "DataSyncBarrier", site);
    model::barrier_all();
}

// [SyncAll]: both forms are a barrier of all cores; the software form's workspaces are not touched.
template <bool is_aiv_only = true>
void SyncAll(model::Site site = {}) {
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
