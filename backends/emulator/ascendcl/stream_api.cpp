// Streams as callers see them: handles that belong to the context in which they were made.
#include "context.h"
#include "errors.h"

namespace emulator {
namespace {

int with_stream(aclrtStream handle, std::shared_ptr<Stream>* stream) {
    const std::shared_ptr<Context> context = current_context();
    if (context == nullptr) return fail(status::kRtNoContext, "this thread has no context");
    *stream = context->stream(handle);
    return *stream == nullptr ? fail(status::kRtStreamContext, "the stream is not one of the current context")
                              : status::kSuccess;
}

int synchronize(aclrtStream handle, int milliseconds) {
    std::shared_ptr<Stream> stream;
    const int status = with_stream(handle, &stream);
    if (status != status::kSuccess) return status;
    const int result = stream->synchronize(milliseconds);
    return result == status::kSuccess ? result : fail(result, "the stream did not complete its tasks");
}

int destroy(aclrtStream handle, bool force) {
    if (handle == nullptr) return fail(status::kInvalidParam, "aclrtDestroyStream: stream is null");
    const std::shared_ptr<Context> context = current_context();
    if (context == nullptr) return fail(status::kRtNoContext, "this thread has no context");
    if (context->destroy_stream(handle, force)) return status::kSuccess;
    return fail(status::kRtStreamContext, "the stream is not one of the current context");
}

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" aclError aclrtCreateStreamWithConfig(aclrtStream* handle, uint32_t, uint32_t) {
    if (handle == nullptr) return fail(status::kInvalidParam, "aclrtCreateStream: stream is null");
    std::shared_ptr<Context> context;
    const int status = require_context(&context);
    if (status == status::kSuccess) *handle = context->create_stream();
    return status;
}

extern "C" aclError aclrtCreateStream(aclrtStream* handle) { return aclrtCreateStreamWithConfig(handle, 0, 0); }

extern "C" aclError aclrtDestroyStream(aclrtStream handle) { return destroy(handle, false); }

extern "C" aclError aclrtDestroyStreamForce(aclrtStream handle) { return destroy(handle, true); }

extern "C" aclError aclrtSynchronizeStream(aclrtStream handle) { return synchronize(handle, -1); }

extern "C" aclError aclrtSynchronizeStreamWithTimeout(aclrtStream handle, int32_t milliseconds) {
    if (milliseconds < -1) return fail(status::kInvalidParam, text("a timeout of ", milliseconds, " ms"));
    return synchronize(handle, milliseconds);
}

extern "C" aclError aclrtSynchronizeDeviceWithTimeout(int32_t milliseconds) {
    if (milliseconds < -1) return fail(status::kInvalidParam, text("a timeout of ", milliseconds, " ms"));
    const std::shared_ptr<Context> context = current_context();
    if (context == nullptr) return fail(status::kRtNoContext, "this thread has no context");
    const int result = synchronize_device(context->device(), milliseconds);
    return result == status::kSuccess ? result : fail(result, "the device did not complete its tasks");
}

extern "C" aclError aclrtSynchronizeDevice() { return aclrtSynchronizeDeviceWithTimeout(-1); }

extern "C" aclError aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus* result) {
    if (result == nullptr) return fail(status::kInvalidParam, "aclrtStreamQuery: status is null");
    std::shared_ptr<Stream> stream;
    const int status = with_stream(handle, &stream);
    if (status != status::kSuccess) return status;
    const int state = stream->synchronize(0);
    const bool is_busy = state == status::kRtStreamSyncTimeout;
    if (!is_busy && state != status::kSuccess) return fail(state, "an exception has ended the tasks of the stream");
    *result = is_busy ? ACL_STREAM_STATUS_NOT_READY : ACL_STREAM_STATUS_COMPLETE;
    return status::kSuccess;
}

// The switch is kept and has no effect: kernels of this family raise no overflow.
extern "C" aclError aclrtSetStreamOverflowSwitch(aclrtStream handle, uint32_t flag) {
    if (flag > 1) return fail(status::kInvalidParam, text("aclrtSetStreamOverflowSwitch: ", flag, " is not 0 or 1"));
    std::shared_ptr<Stream> stream;
    const int status = with_stream(handle, &stream);
    if (status == status::kSuccess) stream->overflow_switch = flag;
    return status;
}

extern "C" aclError aclrtGetStreamOverflowSwitch(aclrtStream handle, uint32_t* flag) {
    if (flag == nullptr) return fail(status::kInvalidParam, "aclrtGetStreamOverflowSwitch: flag is null");
    std::shared_ptr<Stream> stream;
    const int status = with_stream(handle, &stream);
    if (status == status::kSuccess) *flag = stream->overflow_switch;
    return status;
}

// Streams stop at the first exception in either mode: 0 goes on after one, 1 stops.
extern "C" aclError aclrtSetStreamFailureMode(aclrtStream handle, uint64_t mode) {
    if (mode > 1) return fail(status::kRtInvalidValue, text("aclrtSetStreamFailureMode: no mode ", mode));
    std::shared_ptr<Stream> stream;
    return with_stream(handle, &stream);
}
