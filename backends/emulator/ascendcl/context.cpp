#include "context.h"

#include <algorithm>

#include "census.h"
#include "environment.h"
#include "errors.h"
#include "heap.h"

namespace emulator {
namespace {

// All contexts of the process. A device's default context lives from the first aclrtSetDevice to the last
// aclrtResetDevice; the others until their own destruction.
struct Registry {
    struct Default {
        int references = 0;
        aclrtContext context = nullptr;
    };
    std::mutex mutex;
    std::map<aclrtContext, std::shared_ptr<Context>> contexts;
    std::map<int, Default> defaults;
};

Registry& registry() {
    static Registry& instance = *new Registry;  // never destroyed: worker threads may outlive static destructors
    return instance;
}

thread_local std::weak_ptr<Context> current;

aclrtContext adopt(const std::shared_ptr<Context>& context) {
    registry().contexts[context.get()] = context;
    return context.get();
}

bool is_device(int device) { return device >= 0 && device < device_count(); }

int no_such_device(int device) {
    return fail(status::kRtInvalidDevice, text("device ", device, " is not one of the ", device_count(), " there are"));
}

// Takes the context out of the registry; its streams are drained when the last user lets go of it.
std::shared_ptr<Context> remove(aclrtContext handle) {
    const auto found = registry().contexts.find(handle);
    if (found == registry().contexts.end()) return nullptr;
    std::shared_ptr<Context> context = found->second;
    registry().contexts.erase(found);
    return context;
}

int reset_device(int device, bool force) {
    if (!is_device(device)) return no_such_device(device);
    std::shared_ptr<Context> removed;
    {
        const std::lock_guard lock(registry().mutex);
        Registry::Default& entry = registry().defaults[device];
        if (entry.references == 0) return fail(status::kRtInvalidDevice, text("device ", device, " is not set"));
        entry.references = force ? 0 : entry.references - 1;
        if (entry.references > 0) return status::kSuccess;
        removed = remove(entry.context);
        entry.context = nullptr;
    }
    if (force) removed->abandon_streams();
    removed.reset();
    heap().release_all(device);
    return status::kSuccess;
}

}  // namespace

Context::Context(int device) : device_(device) { born(Kind::kContext); }

Context::~Context() {
    for (size_t i = 0; i < streams_.size(); ++i) gone(Kind::kStream);
    gone(Kind::kContext);
}

aclrtStream Context::create_stream() {
    auto stream = std::make_shared<Stream>(fault_);
    const std::lock_guard lock(mutex_);
    streams_[stream.get()] = stream;
    born(Kind::kStream);
    return stream.get();
}

std::shared_ptr<Stream> Context::stream(aclrtStream handle) {
    const std::lock_guard lock(mutex_);
    if (handle == nullptr) {
        if (default_stream_ == nullptr) default_stream_ = std::make_shared<Stream>(fault_);
        return default_stream_;
    }
    const auto found = streams_.find(handle);
    return found == streams_.end() ? nullptr : found->second;
}

bool Context::destroy_stream(aclrtStream handle, bool force) {
    std::shared_ptr<Stream> stream;
    {
        const std::lock_guard lock(mutex_);
        const auto found = streams_.find(handle);
        if (found == streams_.end()) return false;
        stream = found->second;
        streams_.erase(found);
    }
    gone(Kind::kStream);
    if (force) stream->abandon();
    return true;
}

std::vector<std::shared_ptr<Stream>> Context::all_streams() {
    std::vector<std::shared_ptr<Stream>> all;
    const std::lock_guard lock(mutex_);
    for (const auto& [handle, stream] : streams_) all.push_back(stream);
    if (default_stream_ != nullptr) all.push_back(default_stream_);
    return all;
}

void Context::abandon_streams() {
    for (const auto& stream : all_streams()) stream->abandon();
}

bool Context::synchronize(const std::optional<std::chrono::steady_clock::time_point>& deadline) {
    for (const auto& stream : all_streams()) {
        int left = -1;
        if (deadline) {
            const auto rest = *deadline - std::chrono::steady_clock::now();
            left = std::max(0, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(rest).count()));
        }
        if (stream->synchronize(left) == status::kRtStreamSyncTimeout) return false;
    }
    return true;
}

std::shared_ptr<Context> current_context() { return current.lock(); }

int require_context(std::shared_ptr<Context>* context) {
    *context = current_context();
    if (*context == nullptr) return fail(status::kRtNoContext, "this thread has no context: call aclrtSetDevice first");
    const int fault = (*context)->fault();
    return fault == status::kSuccess ? fault : fail(fault, "an earlier exception has poisoned this context");
}

int synchronize_device(int device, int milliseconds) {
    std::optional<std::chrono::steady_clock::time_point> deadline;
    if (milliseconds >= 0) deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    std::vector<std::shared_ptr<Context>> contexts;
    {
        const std::lock_guard lock(registry().mutex);
        for (const auto& [handle, context] : registry().contexts) {
            if (context->device() == device) contexts.push_back(context);
        }
    }
    int result = status::kSuccess;
    for (const auto& context : contexts) {
        if (!context->synchronize(deadline)) return status::kRtStreamSyncTimeout;
        if (result == status::kSuccess) result = context->fault();
    }
    return result;
}

int device_count() {
    static const auto count = static_cast<int>(environment_number("POOLPROOF_EMULATOR_DEVICES", 1));
    return count;
}

}  // namespace emulator

using namespace emulator;

extern "C" aclError aclrtSetDevice(int32_t device) {
    if (!is_device(device)) return no_such_device(device);
    const std::lock_guard lock(registry().mutex);
    Registry::Default& entry = registry().defaults[device];
    if (entry.references++ == 0) entry.context = adopt(std::make_shared<Context>(device));
    current = registry().contexts[entry.context];
    return status::kSuccess;
}

extern "C" aclError aclrtResetDevice(int32_t device) { return reset_device(device, false); }

extern "C" aclError aclrtResetDeviceForce(int32_t device) { return reset_device(device, true); }

extern "C" aclError aclrtGetDevice(int32_t* device) {
    if (device == nullptr) return fail(status::kInvalidParam, "aclrtGetDevice: deviceId is null");
    const std::shared_ptr<Context> context = current_context();
    if (context == nullptr) return status::kRtNoContext;  // an answer, no error: neither a text nor a last error
    *device = context->device();
    return status::kSuccess;
}

extern "C" aclError aclrtGetDeviceCount(uint32_t* count) {
    if (count == nullptr) return fail(status::kInvalidParam, "aclrtGetDeviceCount: count is null");
    *count = static_cast<uint32_t>(device_count());
    return status::kSuccess;
}

extern "C" aclError aclrtCreateContext(aclrtContext* handle, int32_t device) {
    if (handle == nullptr) return fail(status::kInvalidParam, "aclrtCreateContext: context is null");
    if (!is_device(device)) return no_such_device(device);
    const auto context = std::make_shared<Context>(device);
    const std::lock_guard lock(registry().mutex);
    *handle = adopt(context);
    current = context;
    return status::kSuccess;
}

extern "C" aclError aclrtDestroyContext(aclrtContext handle) {
    std::shared_ptr<Context> removed;
    const std::lock_guard lock(registry().mutex);
    for (const auto& [device, entry] : registry().defaults) {
        if (handle != nullptr && handle == entry.context) {
            return fail(status::kRtInvalidValue, "a default context is destroyed by aclrtResetDevice only");
        }
    }
    removed = remove(handle);
    if (removed == nullptr) return fail(status::kRtInvalidHandle, "aclrtDestroyContext: no such context");
    return status::kSuccess;
}

extern "C" aclError aclrtSetCurrentContext(aclrtContext handle) {
    const std::lock_guard lock(registry().mutex);
    const auto found = registry().contexts.find(handle);
    if (found == registry().contexts.end()) {
        return fail(status::kRtInvalidHandle, "aclrtSetCurrentContext: no such context");
    }
    current = found->second;
    return status::kSuccess;
}

extern "C" aclError aclrtGetCurrentContext(aclrtContext* handle) {
    if (handle == nullptr) return fail(status::kInvalidParam, "aclrtGetCurrentContext: context is null");
    *handle = current_context().get();
    return *handle == nullptr ? status::kRtNoContext : status::kSuccess;  // as aclrtGetDevice
}

extern "C" aclError aclrtGetPrimaryCtxState(int32_t device, uint32_t* flags, int32_t* active) {
    if (active == nullptr) return fail(status::kInvalidParam, "aclrtGetPrimaryCtxState: active is null");
    if (flags != nullptr) return fail(status::kInvalidParam, "aclrtGetPrimaryCtxState: flags is reserved, not null");
    if (!is_device(device)) return no_such_device(device);
    const std::lock_guard lock(registry().mutex);
    *active = registry().defaults[device].references > 0 ? 1 : 0;
    return status::kSuccess;
}
