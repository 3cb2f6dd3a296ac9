// Who owns which part of UB, and what a queue synchronises: TPipe hands out buffers one after another, a queue passes each of
// its buffers from the pipe that fills it to the pipe that drains it and back. It knows no tensor's values.
#pragma once
#include <deque>
#include <vector>

#include "pipes.h"

namespace model {

// [TPipe-TQue programming: data dependence and synchronisation]: EnQue is a SetFlag of the filling pipe for which DeQue waits
// on the draining one; FreeTensor is one of the draining pipe for which the next AllocTensor of that buffer waits.
struct QueueBuffer {
    Extent extent;
    bool is_taken = false;
    Clock filled{}, drained{};
};
struct Queue {
    std::vector<QueueBuffer> buffers;
    std::deque<QueueBuffer*> free, waiting;

    QueueBuffer* find(const uint8_t* address) {
        for (QueueBuffer& buffer : buffers) {
            if (buffer.extent.begin == address) return &buffer;
        }
        return nullptr;
    }
    static QueueBuffer* take(std::deque<QueueBuffer*>& from) {
        QueueBuffer* const buffer = from.front();
        from.pop_front();
        return buffer;
    }
};
// What the core's TPipe has handed out.
struct Buffers {
    uint64_t used = 0;  // bytes
    std::vector<uint8_t*> ends;
    std::deque<Queue> queues;
    int taken[16] = {};  // tensors by position
};
Buffers& buffers_of_core();
Extent take_buffer(uint64_t bytes);

inline void end_queues() {
    for (const Queue& queue : buffers_of_core().queues) {
        if (!queue.waiting.empty()) report("synccheck", "EnQue without DeQue at the end of the kernel");
    }
    buffers_of_core() = Buffers();
}
}  // namespace model

namespace AscendC {

constexpr model::Pipe filler_of(TPosition source) {
    return source == TPosition::GM || source == TPosition::VECIN ? model::Pipe::mte2 : model::Pipe::vector;
}
constexpr model::Pipe drainer_of(TPosition destination) {
    return destination == TPosition::GM || destination == TPosition::VECOUT ? model::Pipe::mte3 : model::Pipe::vector;
}

// [TQueBind]: the data path decides the pipes.
template <TPosition source, TPosition destination, int32_t depth, auto mask = 0> class TQueBind {
public:
    // [AllocTensor: constraints]
    template <class T> LocalTensor<T> AllocTensor(model::Site site = {}) {
        model::begin(model::Pipe::scalar, "AllocTensor", site);
        if (queue_->free.empty()) return hang<T>("AllocTensor of a queue whose buffers are all taken: a hang");
        if (++taken() > 8) model::report("synccheck", "more than 8 tensors of one position are allocated at a time");
        model::QueueBuffer* const buffer = queue_->take(queue_->free);
        buffer->is_taken = true;
        model::acquire(filler_of(source), buffer->drained);
        return {buffer->extent.begin, buffer->extent};
    }
    template <TPosition from, TPosition to, class T> bool EnQue(const LocalTensor<T>& tensor, model::Site site = {}) {
        model::begin(model::Pipe::scalar, "EnQue", site);
        model::QueueBuffer* const buffer = queue_->find(tensor.buffer().begin);
        if (!buffer) return model::report("synccheck", "EnQue of a tensor that is not of the queue"), false;
        if (queue_->waiting.size() >= std::max<size_t>(depth, 1)) model::report("synccheck", "EnQue beyond the depth of the queue");
        buffer->filled = model::release(filler_of(from));
        queue_->waiting.push_back(buffer);
        return true;
    }
    template <class T> bool EnQue(const LocalTensor<T>& tensor, model::Site site = {}) {
        return EnQue<source, destination>(tensor, site);
    }
    template <TPosition from, TPosition to, class T> LocalTensor<T> DeQue(model::Site site = {}) {
        model::begin(model::Pipe::scalar, "DeQue", site);
        if (queue_->waiting.empty()) return hang<T>("DeQue of an empty queue");
        model::QueueBuffer* const buffer = queue_->take(queue_->waiting);
        model::acquire(drainer_of(to), buffer->filled);
        return {buffer->extent.begin, buffer->extent};
    }
    template <class T> LocalTensor<T> DeQue(model::Site site = {}) { return DeQue<source, destination, T>(site); }
    template <class T> void FreeTensor(const LocalTensor<T>& tensor, model::Site site = {}) {
        model::begin(model::Pipe::scalar, "FreeTensor", site);
        model::QueueBuffer* const buffer = queue_->find(tensor.buffer().begin);
        if (!buffer || !buffer->is_taken) return model::report("synccheck", "FreeTensor of what is not allocated");
        --taken();
        buffer->is_taken = false;
        buffer->drained = model::release(drainer_of(destination));
        queue_->free.push_back(buffer);
    }
    bool HasIdleBuffer() const { return !queue_->free.empty(); }
    bool HasTensorInQue() const { return !queue_->waiting.empty(); }

    void init(uint8_t count, uint32_t bytes) {
        queue_ = &model::buffers_of_core().queues.emplace_back();
        for (int i = 0; i < count; ++i) queue_->buffers.push_back({model::take_buffer(bytes)});
        for (model::QueueBuffer& buffer : queue_->buffers) queue_->free.push_back(&buffer);
    }

private:
    template <class T> LocalTensor<T> hang(const char* what) const {
        model::report("synccheck", what);
        return {queue_->buffers[0].extent.begin, queue_->buffers[0].extent};
    }
    static int& taken() {
        return model::buffers_of_core().taken[static_cast<int>(destination == TPosition::GM ? source : destination)];
    }

    model::Queue* queue_ = nullptr;
};

// [TQue]
template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<position == TPosition::VECIN ? TPosition::GM : position,
                             position == TPosition::VECOUT ? TPosition::GM : position, depth, mask> {};

// [TBuf]
template <TPosition position = TPosition::VECCALC> class TBuf {
public:
    template <class T> LocalTensor<T> Get() { return {buffer_.begin, buffer_}; }
    template <class T> LocalTensor<T> Get(uint32_t count) { return GetWithOffset<T>(count, 0); }
    template <class T> LocalTensor<T> GetWithOffset(uint32_t count, uint32_t bytes) {
        LocalTensor<T> tensor(buffer_.begin + bytes, buffer_);
        tensor.SetSize(count);
        return tensor;
    }
    template <class T> void FreeTensor(const LocalTensor<T>&) {}
    void init(uint32_t bytes) { buffer_ = model::take_buffer(bytes); }

private:
    model::Extent buffer_;
};

// [TPipe]. What it hands out belongs to the core, so that a copy of it is as good as itself.
class TPipe {
public:
    template <class Queue> bool InitBuffer(Queue& queue, uint8_t count, uint32_t bytes, model::Site site = {}) {
        model::begin(model::Pipe::scalar, "InitBuffer", site);
        return queue.init(count, bytes), true;
    }
    template <TPosition position> bool InitBuffer(TBuf<position>& buffer, uint32_t bytes, model::Site site = {}) {
        model::begin(model::Pipe::scalar, "InitBuffer", site);
        return buffer.init(bytes), true;
    }
    void Init() {}
    void Reset() { model::end_queues(); }
    void Destroy() { model::end_queues(); }
    TEventID FetchEventID(HardEvent event) { return model::free_event(event_of(event), false); }
    template <HardEvent event> TEventID FetchEventID() { return FetchEventID(event); }
    template <HardEvent event> TEventID AllocEventID() { return model::free_event(event_of(event), true); }
    template <HardEvent event> void ReleaseEventID(TEventID id) { model::flags_of(event_of(event))[id & 7].is_taken = false; }
};

}  // namespace AscendC

inline AscendC::TPipe* GetTPipePtr() {
    static AscendC::TPipe pipe;
    return &pipe;
}
