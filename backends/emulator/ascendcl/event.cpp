// Events: marks in a stream, with the time at which the stream passed them.
#include <chrono>
#include <condition_variable>

#include "census.h"
#include "context.h"
#include "errors.h"

namespace emulator {
namespace {

using Clock = std::chrono::steady_clock;

struct Event {
    std::mutex mutex;
    std::condition_variable passed;
    uint64_t recorded = 0;
    uint64_t reached = 0;
    Clock::time_point time;
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

int reach(Event& event, uint64_t record) {
    const std::lock_guard lock(event.mutex);
    event.time = Clock::now();
    event.reached = record;
    event.passed.notify_all();
    return status::kSuccess;
}

int not_an_event() { return fail(status::kRtInvalidHandle, "no such event"); }

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" aclError aclrtCreateEventWithFlag(aclrtEvent* handle, uint32_t) {
    if (handle == nullptr) return fail(status::kInvalidParam, "aclrtCreateEvent: event is null");
    const auto event = std::make_shared<Event>();
    const std::lock_guard lock(events().mutex);
    events().living[event.get()] = event;
    *handle = event.get();
    born(Kind::kEvent);
    return status::kSuccess;
}

extern "C" aclError aclrtCreateEvent(aclrtEvent* handle) { return aclrtCreateEventWithFlag(handle, 0); }

extern "C" aclError aclrtDestroyEvent(aclrtEvent handle) {
    const std::lock_guard lock(events().mutex);
    if (events().living.erase(handle) == 0) return not_an_event();
    gone(Kind::kEvent);
    return status::kSuccess;
}

extern "C" aclError aclrtRecordEvent(aclrtEvent handle, aclrtStream stream_handle) {
    const std::shared_ptr<Event> event = find(handle);
    if (event == nullptr) return not_an_event();
    std::shared_ptr<Context> context;
    const int status = require_context(&context);
    if (status != status::kSuccess) return status;
    const std::shared_ptr<Stream> stream = context->stream(stream_handle);
    if (stream == nullptr) return fail(status::kRtStreamContext, "the stream is not one of the current context");
    uint64_t record = 0;
    {
        const std::lock_guard lock(event->mutex);
        record = ++event->recorded;
    }
    stream->enqueue([event, record] { return reach(*event, record); });
    return status::kSuccess;
}

extern "C" aclError aclrtSynchronizeEvent(aclrtEvent handle) {
    const std::shared_ptr<Event> event = find(handle);
    if (event == nullptr) return not_an_event();
    std::unique_lock lock(event->mutex);
    event->passed.wait(lock, [&] { return event->reached >= event->recorded; });
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
