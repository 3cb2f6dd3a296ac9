// A stream: a queue of tasks and the one worker thread that runs them in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace emulator {

class Stream {
  public:
    // Returns the status with which the task ended on the device.
    using Task = std::function<int()>;

    // `fault` is shared by all streams of a context: the first failing task poisons it, and nothing runs after.
    explicit Stream(std::shared_ptr<std::atomic<int>> fault);
    // Waits for the queued tasks, unless the stream was abandoned.
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    void enqueue(Task task);
    // Waits at most that long, for ever where `milliseconds` is negative.
    int synchronize(int milliseconds);
    // Forgets the tasks that have not started and does not wait for the one that has.
    void abandon();

    // What callers set last; no kernel looks at it.
    std::atomic<uint32_t> overflow_switch{0};

    // For seeded defects, called by a task: has this done when the queue is empty, after tasks that follow at once.
    static void finish_late(std::function<void()> rest);

  private:
    // Shared with the worker, which may outlive a stream that was abandoned while a task hangs.
    struct Queue {
        explicit Queue(std::shared_ptr<std::atomic<int>> shared_fault) : fault(std::move(shared_fault)) {}
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<Task> tasks;
        bool busy = false;
        bool closing = false;
        std::shared_ptr<std::atomic<int>> fault;
    };

    static void work(const std::shared_ptr<Queue>& queue);

    std::shared_ptr<Queue> queue_;
    std::thread worker_;
};

}  // namespace emulator
