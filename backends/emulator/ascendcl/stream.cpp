#include "stream.h"

#include <chrono>
#include <utility>
#include <vector>

#include "status.h"

namespace emulator {
namespace {

thread_local std::vector<std::function<void()>> late;  // of the worker's own stream

void finish_what_is_late() {
    for (const auto& rest : std::exchange(late, {})) rest();
}

}  // namespace

Stream::Stream(std::shared_ptr<std::atomic<int>> fault)
    : queue_(std::make_shared<Queue>(std::move(fault))), worker_(work, queue_) {}

Stream::~Stream() {
    {
        const std::lock_guard lock(queue_->mutex);
        queue_->closing = true;
    }
    queue_->changed.notify_all();
    if (worker_.joinable()) worker_.join();
}

void Stream::enqueue(Task task) {
    {
        const std::lock_guard lock(queue_->mutex);
        queue_->tasks.push_back(std::move(task));
    }
    queue_->changed.notify_all();
}

int Stream::synchronize(int milliseconds) {
    const auto idle = [this] { return queue_->tasks.empty() && !queue_->busy; };
    std::unique_lock lock(queue_->mutex);
    if (milliseconds < 0) {
        queue_->changed.wait(lock, idle);
    } else if (!queue_->changed.wait_for(lock, std::chrono::milliseconds(milliseconds), idle)) {
        return status::kRtStreamSyncTimeout;
    }
    return queue_->fault->load();
}

void Stream::abandon() {
    bool busy = false;
    {
        const std::lock_guard lock(queue_->mutex);
        queue_->tasks.clear();
        busy = queue_->busy;
    }
    if (busy) worker_.detach();
}

void Stream::finish_late(std::function<void()> rest) { late.push_back(std::move(rest)); }

void Stream::work(const std::shared_ptr<Queue>& queue) {
    std::unique_lock lock(queue->mutex);
    while (true) {
        queue->changed.wait(lock, [&] { return queue->closing || !queue->tasks.empty(); });
        if (queue->tasks.empty()) return;
        Task task = std::move(queue->tasks.front());
        queue->tasks.pop_front();
        queue->busy = true;
        lock.unlock();
        if (queue->fault->load() == status::kSuccess) {
            const int result = task();
            int healthy = status::kSuccess;
            if (result != status::kSuccess) queue->fault->compare_exchange_strong(healthy, result);
        }
        task = nullptr;  // what the task holds is released before anyone is told that it is done
        lock.lock();
        if (!late.empty() && queue->tasks.empty()) {
            lock.unlock();
            finish_what_is_late();
            lock.lock();
        }
        queue->busy = false;
        queue->changed.notify_all();
    }
}

}  // namespace emulator
