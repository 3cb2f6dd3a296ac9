// Contexts, the devices they stand on, and which context is current in the calling thread.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "options.h"
#include "stream.h"

namespace emulator {

class Context {
  public:
    explicit Context(int device);
    ~Context();

    int device() const { return device_; }
    // Status of the exception that poisoned this context; success while it is healthy.
    int fault() const { return fault_->load(); }
    ContextOptions& options() { return options_; }

    aclrtStream create_stream();
    // Null where the handle is no stream of this context; a null handle means the default stream.
    std::shared_ptr<Stream> stream(aclrtStream handle);
    bool destroy_stream(aclrtStream handle, bool force);
    // Lets every stream forget what it has not started, so that a hanging task cannot hold up the destruction.
    void abandon_streams();
    // Waits for every stream in turn, until `deadline`, for ever where there is none; whether all are done.
    bool synchronize(const std::optional<std::chrono::steady_clock::time_point>& deadline);

  private:
    std::vector<std::shared_ptr<Stream>> all_streams();

    const int device_;
    const std::shared_ptr<std::atomic<int>> fault_ = std::make_shared<std::atomic<int>>(0);
    ContextOptions options_;
    std::mutex mutex_;
    std::map<aclrtStream, std::shared_ptr<Stream>> streams_;
    std::shared_ptr<Stream> default_stream_;
};

// The calling thread's context, null where it has none.
std::shared_ptr<Context> current_context();

// Success with `context` set, or why no device work is possible: no context, or a poisoned one.
int require_context(std::shared_ptr<Context>* context);

// Waits for every stream of every context of the device, at most that long, for ever where `milliseconds` is negative;
// the first exception among them, or success.
int synchronize_device(int device, int milliseconds);

int device_count();

}  // namespace emulator
