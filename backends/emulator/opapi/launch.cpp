// What a launch does on the device: stage the inputs, run the kernel, deliver the outputs.
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "../ascendcl/heap.h"
#include "../ascendcl/product.h"
#include "../ascendcl/status.h"
#include "kernel.h"
#include "lowering.h"

namespace emulator {
namespace {

char* at(void* base, int64_t offset) { return static_cast<char*>(base) + offset; }

// Cores report their end in the last words of the runtime's own part of the workspace.
class CompletionMarks {
  public:
    CompletionMarks(const PoolPlan& plan, void* workspace)
        : count_(product().system_workspace == 0 ? 0 : plan.branch.cores),
          words_(reinterpret_cast<int64_t*>(at(workspace, static_cast<int64_t>(product().system_workspace))) - count_) {
        for (int64_t core = 0; core < count_; ++core) words_[core] = -1;
    }
    void finish() const {
        for (int64_t core = 0; core < count_; ++core) words_[core] = core;
    }
    bool are_complete() const {
        for (int64_t core = 0; core < count_; ++core) {
            if (words_[core] != core) return false;
        }
        return true;
    }

  private:
    int64_t count_;
    int64_t* words_;
};

class Launch {
  public:
    Launch(const PoolPlan& plan, const std::vector<void*>& addresses, void* workspace, bool saturate)
        : plan_(plan), addresses_(addresses), workspace_(workspace), saturate_(saturate) {}

    int run() const {
        if (!reaches_only_its_memory()) return status::kRtDeviceMemoryError;
        misbehave();
        for (size_t i = 0; i < plan_.operands.size(); ++i) {
            if (is_input(i)) stage(i);
        }
        const CompletionMarks marks(plan_, workspace_);
        const int status = run_kernel();
        if (status != status::kSuccess) return status;
        marks.finish();
        for (size_t i = 0; i < plan_.operands.size(); ++i) {
            if (!is_input(i)) deliver(i);
        }
        return marks.are_complete() ? status::kSuccess : status::kRtDeviceMemoryError;
    }

  private:
    bool is_input(size_t i) const { return i < plan_.family->inputs.size(); }

    // A device has no bounds; here an access outside the blocks that were allocated is a device memory error.
    bool reaches_only_its_memory() const {
        for (size_t i = 0; i < plan_.operands.size(); ++i) {
            const Operand& operand = plan_.operands[i];
            const char* first = at(addresses_[i], operand.view.first_byte());
            const auto bytes = static_cast<size_t>(operand.view.extent_bytes());
            if (operand.is_touched && !heap().contains(first, bytes)) return false;
        }
        const size_t workspace = plan_.workspace_size;
        return workspace == 0 || heap().contains(workspace_, workspace);
    }

    void stage(size_t i) const {
        const Operand& operand = plan_.operands[i];
        if (operand.staging >= 0) gather(operand.view, addresses_[i], at(workspace_, operand.staging));
        if (operand.narrow < 0) return;
        const auto* wide = reinterpret_cast<const int64_t*>(dense(i));
        auto* narrow = reinterpret_cast<int32_t*>(at(workspace_, operand.narrow));
        for (int64_t k = 0; k < operand.view.count(); ++k) narrow[k] = static_cast<int32_t>(wide[k]);
    }

    void deliver(size_t i) const {
        const Operand& operand = plan_.operands[i];
        if (operand.narrow >= 0) {
            const auto* narrow = reinterpret_cast<const int32_t*>(at(workspace_, operand.narrow));
            auto* wide = reinterpret_cast<int64_t*>(dense(i));
            for (int64_t k = 0; k < operand.view.count(); ++k) wide[k] = narrow[k];
        }
        if (operand.staging >= 0) copy_out(operand, addresses_[i]);
        if (seeded(Defect::write_past_output) && operand.staging < 0) write_past(operand, addresses_[i]);
    }

    void copy_out(const Operand& operand, void* address) const {
        const char* source = at(workspace_, operand.staging);
        if (seeded(Defect::output_strides_ignored)) {
            std::memcpy(at(address, operand.view.first_byte()), source,
                        static_cast<size_t>(operand.view.count() * operand.view.item));
        } else {
            scatter(operand.view, source, address);
        }
    }

    // As a copy of whole 32-byte blocks would.
    static void write_past(const Operand& operand, void* address) {
        const int64_t bytes = operand.view.count() * operand.view.item;
        std::memset(at(address, operand.view.first_byte() + bytes), 0, static_cast<size_t>(align(bytes, 32) - bytes));
    }

    // The dense elements of a tensor: its own memory or its copy in the workspace.
    char* dense(size_t i) const {
        const Operand& operand = plan_.operands[i];
        return operand.staging >= 0 ? at(workspace_, operand.staging) : at(addresses_[i], operand.view.first_byte());
    }

    // What the kernel reads or writes for that role.
    void* data(Role role) const {
        for (size_t i = 0; i < plan_.operands.size(); ++i) {
            const Operand& operand = plan_.operands[i];
            if (operand.role == role) return operand.narrow >= 0 ? at(workspace_, operand.narrow) : dense(i);
        }
        return nullptr;
    }

    int run_kernel() const {
        const Problem& problem = plan_.problem;
        if (plan_.branch.algorithm == Template::kBits) {
            run_on_bits();
            return status::kSuccess;
        }
        const Indices indices(data(kIndices), problem.index);
        if (!plan_.family->is_backward) {
            run_forward(problem, plan_.branch,
                        {Values(data(kSelf), problem.value), Values(data(kOut), problem.value), indices});
            return status::kSuccess;
        }
        auto* scratch = plan_.scratch < 0 ? nullptr : reinterpret_cast<float*>(at(workspace_, plan_.scratch));
        return run_backward(problem, plan_.branch,
                            {Values(data(kGradOutput), problem.value), indices, Values(data(kGradInput), problem.value),
                             scratch, saturate_});
    }

    void run_on_bits() const {
        const Problem& problem = plan_.problem;
        const auto values = [&](Role role) { return Values(data(role), problem.value); };
        if (plan_.family->is_backward) {
            run_bits_backward(problem, data(kIndices), values(kGradOutput), values(kGradInput));
        } else {
            run_bits_forward(problem, data(kIndices), values(kSelf), values(kOut));
        }
    }

    void misbehave() const {
        constexpr size_t kLeak = 4096;
        void* lost = nullptr;
        if (seeded(Defect::leak_per_call)) heap().allocate(0, kLeak, &lost);
        if (seeded(Defect::crash_on_planes) && plan_.problem.planes() == 13) std::raise(SIGSEGV);
        while (seeded(Defect::hang_on_width) && plan_.problem.axes[2].in == 29) {
            std::this_thread::sleep_for(std::chrono::hours(1));
        }
    }

    const PoolPlan& plan_;
    const std::vector<void*>& addresses_;
    void* workspace_;
    const bool saturate_;
};

}  // namespace

int run_plan(const PoolPlan& plan, const std::vector<void*>& addresses, void* workspace, bool saturate) {
    return plan.is_empty ? status::kSuccess : Launch(plan, addresses, workspace, saturate).run();
}

}  // namespace emulator
