// What is known while a launch runs, shared by the watch, which asks it about every access, and by the launch, which sets it up:
// of memory, of the cores, and of the calls they make. No kernel sees it. Shadows are not cleared: blocks of UB carry the
// number of the launch that touched them, elements of GM the phase, and both only grow.
#pragma once
#include <cstdlib>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "copies.h"
#include "launch.h"
#include "queues.h"

namespace model {

class Fiber;

// Zeros that the system makes where they are first touched.
template <class T> class Zeros {
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

// Which bytes of a block of UB a pipe touched in its latest window there.
struct Stamp {
    uint32_t window, bytes, operation;
};
struct Block {
    uint32_t launch, defined;  // defined: a bit for each byte
    Stamp stores[pipe_count], loads[pipe_count];
};
// The latest access to an element of GM, or, by threads, of UB.
struct Access {
    uint32_t phase, window, operation;
    uint16_t core, thread;
    Pipe pipe;
    bool is_store, is_atomic, is_unknown;
    bool is_of_cores, is_of_threads;  // of several, in the same phase or window
};
struct Cell {
    Access store, load;
};
struct Tensor {
    Buffer buffer;
    bool is_written = false;  // may be stored to
    Zeros<Cell> cells;        // one an element, if so

    bool holds(const void* address, uint64_t bytes) const {
        const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - buffer.data);
        return offset <= buffer.bytes && bytes <= buffer.bytes - offset;
    }
};
struct Core {
    uint32_t index = 0, operation = 0;
    uint8_t* ub = nullptr;
    Zeros<Block> blocks;
    Fiber* fiber = nullptr;
    Pipe pipe = Pipe::scalar;
    Clock clocks[pipe_count] = {}, windows = {1, 1, 1, 1};
    Flag flags[pipe_count][pipe_count][8];
    uint32_t occupied = 0;  // the window of MTE3 in which InitGlobalMemory copied from UB
    bool in_vector_function = false;
    std::pair<const void*, uint32_t> loaded;  // by the latest load from UB
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
    int64_t byte = -1;
    uint32_t core = 0;
    uint64_t count = 0;
};

extern const Launch* launch;
extern uint32_t launch_number, phase, first_phase;  // phases end at SyncAll
extern std::vector<Tensor> tensors;
extern std::vector<Core> cores;
extern std::deque<Operation> operations;  // not a vector, which copies all of them to grow
extern std::map<std::string, Finding> findings;
extern Core* core;
extern Tensor ub_of_threads;    // the UB of a core while its threads run, by two bytes; its cells have epochs for phases
extern uint64_t ub_step;        // from the UB of a core to that of the next: stores behind its end can be made
extern uint32_t thread_epoch;
extern uint16_t thread_number;  // counted from 1; 0: no thread runs
extern bool is_watched;         // whether the kernel was compiled with -fsanitize=thread
extern bool memory_is_short;    // the launch was given up for it

// The address is told from the begin of UB, if it is one of its, or of the nearest tensor.
void add_finding(const char* kind, const std::string& text, const void* address, uint32_t operation, bool is_of_ub = false);
Tensor* find_tensor(const void* address, uint64_t bytes);
void check_outputs();
inline uint32_t& window_of(Pipe pipe) { return core->windows[static_cast<int>(pipe)]; }
}  // namespace model
