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

extern "C" aclError aclrtSynchronizeDevice() {
    const std::shared_ptr<Context> context = current_context();
    if (context == nullptr) return fail(status::kRtNoContext, "this thread has no context");
    const int result = synchronize_device(context->device());
    return result == status::kSuccess ? result : fail(result, "the device did not complete its tasks");
}
