// What a launch does on the device: stage the inputs, run the kernel, deliver the outputs.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "../ascendcl/heap.h"
#include "../ascendcl/product.h"
#include "../ascendcl/status.h"
#include "kernel.h"
#include "lowering.h"

namespace emulator {
namespace {

// The overflow mode of the cores, which a launch should leave as it found it.
std::atomic<bool> saturation_is_left_on{false};

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
        if (seeded(Defect::shared_inputs_mistaken) && shares_inputs()) return status::kSuccess;
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
        if (seeded(Defect::scratch_not_reported) && plan_.scratch >= 0 && !owns_scratch()) return false;
        const size_t workspace = plan_.workspace_size;
        return workspace == 0 || heap().contains(workspace_, workspace);
    }

    // Whether two inputs overlap, as those of a call in place would.
    bool shares_inputs() const {
        const auto first = [&](size_t i) { return at(addresses_[i], plan_.operands[i].view.first_byte()); };
        for (size_t i = 1; i < plan_.family->inputs.size(); ++i) {
            const View &one = plan_.operands[0].view, &other = plan_.operands[i].view;
            if (first(0) < first(i) + other.extent_bytes() && first(i) < first(0) + one.extent_bytes()) return true;
        }
        return false;
    }

    bool owns_scratch() const {
        const int64_t sums = plan_.problem.planes() * plan_.problem.cells();
        return workspace_ != nullptr &&
               heap().contains(at(workspace_, plan_.scratch), static_cast<size_t>(sums) * sizeof(float));
    }

    void stage(size_t i) const {
        const Operand& operand = plan_.operands[i];
        if (operand.staging >= 0) copy_in(operand, addresses_[i]);
        if (operand.narrow < 0) return;
        const auto* wide = reinterpret_cast<const int64_t*>(dense(i));
        auto* narrow = reinterpret_cast<int32_t*>(at(workspace_, operand.narrow));
        for (int64_t k = 0; k < operand.view.count(); ++k) narrow[k] = static_cast<int32_t>(wide[k]);
    }

    void copy_in(const Operand& operand, const void* address) const {
        char* const target = at(workspace_, operand.staging);
        if (seeded(Defect::staging_leaked)) leak();
        const bool ignores_strides = (operand.role == kGradOutput && seeded(Defect::gradient_strides_ignored)) ||
                                     (operand.role == kIndices && seeded(Defect::indices_strides_ignored));
        if (ignores_strides) {
            const int64_t bytes = std::min(operand.view.count() * operand.view.item, operand.view.extent_bytes());
            std::memcpy(target, static_cast<const char*>(address) + operand.view.first_byte(),
                        static_cast<size_t>(bytes));
            return;
        }
        View view = operand.view;
        if (seeded(Defect::batch_gap_ignored) && view.shape.size() > 3) {
            view.strides[0] = std::min(view.strides[0], view.strides[1] * view.shape[1]);
        }
        if (seeded(Defect::zero_stride_advances)) std::replace(view.strides.begin(), view.strides.end(), 0L, 1L);
        if (seeded(Defect::expanded_plane_ignored)) keep_stored_cells(view);
        if (seeded(Defect::plane_gap_ignored)) close_plane_gap(view);
        if (seeded(Defect::narrowed_rows_lost)) forget_whole_rows(view);
        gather(view, address, target);
    }

    // A plane is copied as it is stored, once for every cell that it repeats: the others stay what was there.
    void keep_stored_cells(View& view) const {
        for (size_t axis = view.shape.size() - plan_.family->spatial_rank; axis < view.shape.size(); ++axis) {
            if (view.strides[axis] == 0) view.shape[axis] = 1;
        }
    }

    // Planes whose cells lie side by side are taken to do so, too.
    void close_plane_gap(View& view) const {
        const size_t channel = view.shape.size() - plan_.family->spatial_rank - 1;
        int64_t dense = 1;
        for (size_t axis = view.shape.size() - 1; axis > channel; --axis) {
            if (view.shape[axis] > 1 && view.strides[axis] != dense) return;
            dense *= view.shape[axis];
        }
        if (view.strides[channel] > 0) view.strides[channel] = dense;
    }

    // A view that begins with a row is taken to begin with the first.
    static void forget_whole_rows(View& view) {
        const int64_t row = view.strides[view.shape.size() - 2];
        if (row > 1 && view.offset % row == 0) view.offset = 0;
    }

    static void leak_on_host() {
        static void* volatile lost = nullptr;
        lost = std::malloc(16);
    }

    static void leak() {
        constexpr size_t kLeak = 4096;
        void* lost = nullptr;
        heap().allocate(0, kLeak, &lost);
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
        const bool is_tagged = plan_.problem.channels_last;
        if (seeded(Defect::output_strides_ignored) || (seeded(Defect::tagged_output_packed) && is_tagged)) {
            std::memcpy(at(address, operand.view.first_byte()), source,
                        static_cast<size_t>(operand.view.count() * operand.view.item));
        } else {
            if (seeded(Defect::gaps_overwritten)) {
                std::memset(at(address, operand.view.first_byte()), 0,
                            static_cast<size_t>(operand.view.extent_bytes()));
            }
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
        const bool in_bytes = operand.role == kGradOutput && seeded(Defect::offset_in_bytes);
        const bool is_unbatched = operand.view.shape.size() == static_cast<size_t>(plan_.family->spatial_rank) + 1;
        const bool is_rewrapped = operand.role == kIndices && is_unbatched;
        if (seeded(Defect::rewrapped_offset_lost) && is_rewrapped && operand.staging < 0) return at(addresses_[i], 0);
        const int64_t first = in_bytes ? operand.view.offset : operand.view.first_byte();
        return operand.staging >= 0 ? at(workspace_, operand.staging) : at(addresses_[i], first);
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
        Indices indices(data(kIndices), problem.index);
        if (!plan_.family->is_backward) {
            if (seeded(Defect::saturation_left_on) && plan_.family->is_adaptive && problem.value == ACL_FLOAT16) {
                saturation_is_left_on = true;
            }
            return run_forward(problem, plan_.branch,
                               {Values(data(kSelf), problem.value), Values(data(kOut), problem.value), indices});
        }
        auto* scratch = plan_.scratch < 0 ? nullptr : reinterpret_cast<float*>(at(workspace_, plan_.scratch));
        if (seeded(Defect::scratch_shared_by_streams) && scratch != nullptr) scratch = shared_scratch(scratch);
        std::vector<int64_t> recomputed;
        if (seeded(Defect::argmax_recomputed)) indices = recompute(recomputed);
        const int status =
            run_backward(problem, plan_.branch,
                         {Values(data(kGradOutput), problem.value), indices, Values(data(kGradInput), problem.value),
                          scratch, saturate_ || saturation_is_left_on});
        if (seeded(Defect::indices_made_global)) make_global(indices);
        return status;
    }

    // One area for the whole process, as long as it is large enough.
    float* shared_scratch(float* own) const {
        static std::vector<float> area(size_t{1} << 20);
        const auto needed = static_cast<size_t>(plan_.problem.planes() * plan_.problem.cells());
        return needed <= area.size() ? area.data() : own;
    }

    // Indices of the forward maximum of self, whatever the caller's say.
    Indices recompute(std::vector<int64_t>& indices) const {
        const Problem& problem = plan_.problem;
        const auto count = static_cast<size_t>(problem.planes() * problem.windows());
        indices.resize(count);
        std::vector<float> maxima(count);
        const Indices result(indices.data(), ACL_INT64);
        Route route;
        run_forward(problem, route, {Values(data(kSelf), problem.value), Values(maxima.data(), problem.value), result});
        return result;
    }

    // Each plane's indices counted from the first plane on, in the caller's tensor.
    void make_global(const Indices& indices) const {
        const Problem& problem = plan_.problem;
        for (int64_t i = 0; i < problem.planes() * problem.windows(); ++i) {
            indices.store(i, indices.load(i) + i / problem.windows() * problem.cells());
        }
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
        if (seeded(Defect::leak_per_call)) leak();
        if (seeded(Defect::host_leak_per_call)) leak_on_host();
        const int64_t planes = plan_.problem.planes(), cores = product().vector_cores;
        if (seeded(Defect::crash_on_uneven_cores) && planes > cores && planes % cores == 1) std::raise(SIGSEGV);
        // Cores wait for each other before the final cast; one without work never comes.
        const bool waits = plan_.branch.has_scratch && plan_.branch.cores < cores;
        while (seeded(Defect::hang_on_idle_core) && waits) std::this_thread::sleep_for(std::chrono::hours(1));
    }

    const PoolPlan& plan_;
    const std::vector<void*>& addresses_;
    void* workspace_;
    const bool saturate_;
};

}  // namespace

int run_plan(const PoolPlan& plan, const std::vector<void*>& addresses, void* workspace, bool saturate) {
    static std::atomic<bool> failed_empty{false};
    if (seeded(Defect::empty_leaves_error)) {
        if (plan.is_empty) failed_empty = true;
        if (!plan.is_empty && failed_empty.exchange(false)) return status::kRtDeviceMemoryError;
    }
    static std::atomic<bool> is_ready{false};
    if (seeded(Defect::first_launch_unready) && !plan.is_empty && !is_ready.exchange(true)) return status::kSuccess;
    return plan.is_empty ? status::kSuccess : Launch(plan, addresses, workspace, saturate).run();
}

}  // namespace emulator
