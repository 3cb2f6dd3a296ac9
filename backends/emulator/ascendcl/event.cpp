// Events: marks in a stream, with the time at which the stream passed them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>

#include "census.h"
#include "context.h"
#include "defects.h"
#include "errors.h"

namespace emulator {
namespace {

using Clock = std::chrono::steady_clock;

struct Event {
    std::mutex mutex;
    std::condition_variable passed;
    uint64_t recorded = 0;
    uint64_t reached = 0;
    uint64_t forgotten = 0;         // the latest record when it was reset
    bool is_passed_before = false;  // what a query answers where there is no record
    Clock::time_point time;
    std::atomic<int> waits{0};  // that streams have not carried out
};

struct Events {
    std::mutex mutex;
    std::map<aclrtEvent, std::shared_ptr<Event>> living;
};

Events& events() {
    static Events& instance = *new Events;  // never destroyed: worker threads may outlive static destructors
    return instance;
}

std::shared_ptr<Event> find(aclrtEvent handle) {
    const std::lock_guard lock(events().mutex);
    const auto found = events().living.find(handle);
    return found == events().living.end() ? nullptr : found->second;
}

// A mark in a stream. It is passed when the stream lets go of it, whether it ran what came before, skipped it in a
// poisoned context or was abandoned: nobody who waits for an event waits for ever.
class Mark {
  public:
    Mark(std::shared_ptr<Event> event, uint64_t record) : event_(std::move(event)), record_(record) {}
    ~Mark() {
        const std::lock_guard lock(event_->mutex);
        event_->time = Clock::now();
        event_->reached = std::max(event_->reached, record_);
        event_->passed.notify_all();
    }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

  private:
    std::shared_ptr<Event> event_;
    uint64_t record_;
};

void wait_for(Event& event, uint64_t record) {
    std::unique_lock lock(event.mutex);
    event.passed.wait(lock, [&] { return event.reached >= record; });
}

// A wait that a stream has been given. It is over when the stream lets go of it, as a mark.
class Wait {
  public:
    explicit Wait(std::shared_ptr<Event> event) : event_(std::move(event)) { ++event_->waits; }
    ~Wait() { --event_->waits; }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

  private:
    std::shared_ptr<Event> event_;
};

aclError create(aclrtEvent* handle, bool is_passed_before) {
    if (handle == nullptr) return fail(status::kInvalidParam, "aclrtCreateEvent: event is null");
    const auto event = std::make_shared<Event>();
    event->is_passed_before = is_passed_before;
    const std::lock_guard lock(events().mutex);
    events().living[event.get()] = event;
    *handle = event.get();
    born(Kind::kEvent);
    return status::kSuccess;
}

int not_an_event() { return fail(status::kRtInvalidHandle, "no such event"); }

int find_stream(aclrtStream handle, std::shared_ptr<Stream>* stream) {
    std::shared_ptr<Context> context;
    const int status = require_context(&context);
    if (status != status::kSuccess) return status;
    *stream = context->stream(handle);
    return *stream == nullptr ? fail(status::kRtStreamContext, "the stream is not one of the current context")
                              : status::kSuccess;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" aclError aclrtCreateEvent(aclrtEvent* handle) { return create(handle, false); }

extern "C" aclError aclrtCreateEventWithFlag(aclrtEvent* handle, uint32_t) { return create(handle, false); }

// The newer kind of event, which counts as passed before its first record.
extern "C" aclError aclrtCreateEventExWithFlag(aclrtEvent* handle, uint32_t) { return create(handle, true); }

extern "C" aclError aclrtDestroyEvent(aclrtEvent handle) {
    const std::lock_guard lock(events().mutex);
    if (events().living.erase(handle) == 0) return not_an_event();
    gone(Kind::kEvent);
    return status::kSuccess;
}

extern "C" aclError aclrtRecordEvent(aclrtEvent handle, aclrtStream stream_handle) {
    const std::shared_ptr<Event> event = find(handle);
    if (event == nullptr) return not_an_event();
    std::shared_ptr<Stream> stream;
    const int status = find_stream(stream_handle, &stream);
    if (status != status::kSuccess) return status;
    uint64_t record = 0;
    {
        const std::lock_guard lock(event->mutex);
        record = ++event->recorded;
    }
    stream->enqueue([mark = std::make_shared<Mark>(event, record)] { return status::kSuccess; });
    return status::kSuccess;
}

// What the stream is given from now on runs after all that the event's latest record has captured; at once where
// there is no record.
extern "C" aclError aclrtStreamWaitEvent(aclrtStream stream_handle, aclrtEvent handle) {
    const std::shared_ptr<Event> event = find(handle);
    if (event == nullptr) return not_an_event();
    std::shared_ptr<Stream> stream;
    const int status = find_stream(stream_handle, &stream);
    if (status != status::kSuccess) return status;
    uint64_t record = 0;
    {
        const std::lock_guard lock(event->mutex);
        record = seeded(Defect::event_wait_ignored) ? 0 : event->recorded;
    }
    stream->enqueue([event, record, wait = std::make_shared<Wait>(event)] {
        wait_for(*event, record);
        return status::kSuccess;
    });
    return status::kSuccess;
}

extern "C" aclError aclrtSynchronizeEvent(aclrtEvent handle) {
    const std::shared_ptr<Event> event = find(handle);
    if (event == nullptr) return not_an_event();
    std::unique_lock lock(event->mutex);
    event->passed.wait(lock, [&] { return event->reached >= event->recorded; });
    return status::kSuccess;
}

extern "C" aclError aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus* result) {
    if (handle == nullptr || result == nullptr) return fail(status::kInvalidParam, "query event: an argument is null");
    const std::shared_ptr<Event> event = find(handle);
    if (event == nullptr) return not_an_event();
    const std::lock_guard lock(event->mutex);
    const bool has_record = event->recorded > event->forgotten;
    const bool is_passed = has_record ? event->reached >= event->recorded : event->is_passed_before;
    *result = is_passed ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return status::kSuccess;
}

extern "C" aclError aclrtQueryEventWaitStatus(aclrtEvent handle, aclrtEventWaitStatus* result) {
    if (handle == nullptr || result == nullptr) return fail(status::kInvalidParam, "query event: an argument is null");
    const std::shared_ptr<Event> event = find(handle);
    if (event == nullptr) return not_an_event();
    *result = event->waits == 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    return status::kSuccess;
}

extern "C" aclError aclrtResetEvent(aclrtEvent handle, aclrtStream stream_handle) {
    if (handle == nullptr) return fail(status::kInvalidParam, "aclrtResetEvent: event is null");
    const std::shared_ptr<Event> event = find(handle);
    if (event == nullptr) return not_an_event();
    std::shared_ptr<Stream> stream;
    const int status = find_stream(stream_handle, &stream);
    if (status != status::kSuccess) return status;
    stream->enqueue([event] {
        const std::lock_guard lock(event->mutex);
        event->forgotten = event->reached;
        return status::kSuccess;
    });
    return status::kSuccess;
}

extern "C" aclError aclrtEventElapsedTime(float* milliseconds, aclrtEvent start_handle, aclrtEvent end_handle) {
    const std::shared_ptr<Event> start = find(start_handle);
    const std::shared_ptr<Event> end = find(end_handle);
    if (milliseconds == nullptr) return fail(status::kInvalidParam, "aclrtEventElapsedTime: ms is null");
    if (start == nullptr || end == nullptr) return not_an_event();
    Clock::time_point times[2];
    int next = 0;
    for (Event* event : {start.get(), end.get()}) {
        const std::lock_guard lock(event->mutex);
        if (event->reached == 0) return fail(status::kRtInvalidValue, "an event that no stream has passed has no time");
        times[next++] = event->time;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(times[1] - times[0]).count();
    return status::kSuccess;
}
