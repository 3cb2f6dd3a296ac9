// Who owns which part of UB, and what a queue synchronises: TPipe hands out buffers one after another, a queue passes each of
// its buffers from the pipe that fills it to the pipe that drains it and back. It knows no tensor's values.
#pragma once
#include <deque>
#include <vector>

#include "pipes.h"

namespace model {

Extent take_buffer(uint64_t bytes);  // the next free bytes of UB
void reset_buffers();

// [TPipe-TQue programming: data dependence and synchronisation]: EnQue is a SetFlag of the filling pipe for which DeQue waits
// on the draining one; FreeTensor is one of the draining pipe for which the next AllocTensor of that buffer waits.
class Queue {
public:
    Queue(Pipe fills, Pipe drains, int position, int depth) : fills_(fills), drains_(drains), position_(position), depth_(depth) {}

    void add(Extent buffer) { buffers_.push_back({buffer}), free_.push_back(static_cast<int>(buffers_.size()) - 1); }
    Extent allocate();
    bool enqueue(const uint8_t* address) { return enqueue(address, fills_); }
    bool enqueue(const uint8_t* address, Pipe fills);
    Extent dequeue() { return dequeue(drains_); }
    Extent dequeue(Pipe drains);
    void free(const uint8_t* address);
    bool has_idle() const { return !free_.empty(); }
    bool is_empty() const { return waiting_.empty(); }
    void end() const;  // the kernel is done: nothing may be left inside

private:
    struct Buffer {
        Extent extent;
        bool is_taken = false;
        Clock filled{}, drained{};
    };
    int find(const uint8_t* address) const;
    Extent first() const { return buffers_.empty() ? Extent() : buffers_[0].extent; }

    Pipe fills_, drains_;
    int position_, depth_;
    std::vector<Buffer> buffers_;
    std::deque<int> free_, waiting_;
};

Queue* make_queue(Pipe fills, Pipe drains, int position, int depth);  // lives as long as the core's launch

}  // namespace model

namespace AscendC {

constexpr model::Pipe filler_of(TPosition source) {
    return source == TPosition::GM || source == TPosition::VECIN ? model::Pipe::mte2 : model::Pipe::vector;
}
constexpr model::Pipe drainer_of(TPosition destination) {
    return destination == TPosition::GM || destination == TPosition::VECOUT ? model::Pipe::mte3 : model::Pipe::vector;
}

// [TQueBind], [TQue]: the data path decides the pipes.
template <TPosition source, TPosition destination, int32_t depth, auto mask = 0>
class TQueBind {
public:
    template <class T>
    LocalTensor<T> AllocTensor(model::Site site = {}) {
        model::begin(model::Pipe::scalar, "AllocTensor", site);
        return tensor<T>(queue_->allocate());
    }
    template <class T>
    void AllocTensor(LocalTensor<T>& tensor, model::Site site = {}) { tensor = AllocTensor<T>(site); }
    template <class T>
    bool EnQue(const LocalTensor<T>& tensor, model::Site site = {}) {
        model::begin(model::Pipe::scalar, "EnQue", site);
        return queue_->enqueue(tensor.buffer().begin);
    }
    template <TPosition from, TPosition to, class T>
    bool EnQue(const LocalTensor<T>& tensor, model::Site site = {}) {
        model::begin(model::Pipe::scalar, "EnQue", site);
        return queue_->enqueue(tensor.buffer().begin, filler_of(from));
    }
    template <class T>
    LocalTensor<T> DeQue(model::Site site = {}) {
        model::begin(model::Pipe::scalar, "DeQue", site);
        return tensor<T>(queue_->dequeue());
    }
    template <class T>
    void DeQue(LocalTensor<T>& tensor, model::Site site = {}) { tensor = DeQue<T>(site); }
    template <TPosition from, TPosition to, class T>
    LocalTensor<T> DeQue(model::Site site = {}) {
        model::begin(model::Pipe::scalar, "DeQue", site);
        return tensor<T>(queue_->dequeue(drainer_of(to)));
    }
    template <class T>
    void FreeTensor(const LocalTensor<T>& tensor, model::Site site = {}) {
        model::begin(model::Pipe::scalar, "FreeTensor", site);
        queue_->free(tensor.buffer().begin);
    }
    bool HasIdleBuffer() const { return queue_->has_idle(); }
    bool HasTensorInQue() const { return !queue_->is_empty(); }
    void FreeAllEvent() {}

    void init(uint8_t count, uint32_t bytes) {
        const TPosition position = destination == TPosition::GM ? source : destination;
        queue_ = model::make_queue(filler_of(source), drainer_of(destination), static_cast<int>(position), depth);
        for (int i = 0; i < count; ++i) queue_->add(model::take_buffer(bytes));
    }

private:
    template <class T>
    static LocalTensor<T> tensor(model::Extent buffer) { return LocalTensor<T>(buffer.begin, buffer); }

    model::Queue* queue_ = nullptr;
};

template <TPosition position>
constexpr TPosition source_of_queue = position == TPosition::VECIN ? TPosition::GM : position;
template <TPosition position>
constexpr TPosition end_of_queue = position == TPosition::VECOUT ? TPosition::GM : position;

template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<source_of_queue<position>, end_of_queue<position>, depth, mask> {};

// [TBuf]
template <TPosition position = TPosition::VECCALC>
class TBuf {
public:
    template <class T>
    LocalTensor<T> Get() { return LocalTensor<T>(buffer_.begin, buffer_); }
    template <class T>
    LocalTensor<T> Get(uint32_t count) { return GetWithOffset<T>(count, 0); }
    template <class T>
    LocalTensor<T> GetWithOffset(uint32_t count, uint32_t bytes) {
        LocalTensor<T> tensor(buffer_.begin + bytes, buffer_);
        tensor.SetSize(count);
        return tensor;
    }
    void init(uint32_t bytes) { buffer_ = model::take_buffer(bytes); }

private:
    model::Extent buffer_;
};

// [TPipe]. What it hands out belongs to the core, so that a copy of it is as good as itself.
class TPipe {
public:
    template <class Queue>
    bool InitBuffer(Queue& queue, uint8_t count, uint32_t bytes, model::Site site = {}) {
        model::begin(model::Pipe::scalar, "InitBuffer", site);
        queue.init(count, bytes);
        return true;
    }
    template <TPosition position>
    bool InitBuffer(TBuf<position>& buffer, uint32_t bytes, model::Site site = {}) {
        model::begin(model::Pipe::scalar, "InitBuffer", site);
        buffer.init(bytes);
        return true;
    }
    void Init() {}
    void Reset() { model::reset_buffers(); }
    void Destroy() { model::reset_buffers(); }
    TEventID FetchEventID(HardEvent event) { return static_cast<TEventID>(model::fetch_event(source_of(event), destination_of(event), false)); }
    template <HardEvent event>
    TEventID FetchEventID() { return FetchEventID(event); }
    template <HardEvent event>
    TEventID AllocEventID() { return static_cast<TEventID>(model::fetch_event(source_of(event), destination_of(event), true)); }
    template <HardEvent event>
    void ReleaseEventID(TEventID id) { model::release_event(source_of(event), destination_of(event), id); }
};

inline TPipe* GetTPipePtr() {
    static TPipe pipe;
    return &pipe;
}
}  // namespace AscendC
