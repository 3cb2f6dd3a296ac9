#include "lowering.h"

#include <algorithm>

#include "../ascendcl/about.h"
#include "../ascendcl/product.h"
#include "../ascendcl/status.h"
#include "../ascendcl/text.h"
#include "mistimed.h"
#include "reading.h"
#include "slips.h"
#include "untidy.h"

namespace emulator {
namespace {

constexpr int64_t kWorkspaceAlignment = 32;

const aclTensor& pooled_tensor(const Call& call) { return call.tensor(call.family->is_backward ? kGradOutput : kOut); }

// What the backward tilings look at. On the windowed path nobody tells phase one of a refusal; it shows in phase two.
std::string tiling_refusal(const Call& call) {
    if (!call.family->is_backward) return "";
    const Reading reading = kernel_reading(call);
    const std::vector<int64_t>& gradient = call.tensor(kGradOutput).shape;
    const aclTensor& indices = call.tensor(kIndices);
    if (reading.leading(call.tensor(kSelf).shape) != reading.leading(gradient))
        return "N or C of self and gradOutput differ";
    if (call.family->is_adaptive) return "";
    const auto expected = pooled_shape(call, reading);
    if (!expected || reading.sizes(gradient) != reading.sizes(*expected)) {
        return "gradOutput does not have the pooled size";
    }
    if (call.family->is_mask) return "";
    if (indices.shape != gradient) return "indices and gradOutput differ in shape";
    return indices.dtype == ACL_INT8 ? "no kernel takes INT8 indices" : "";
}

Axis windowed_axis(int64_t in, int64_t out, const Attributes& list, size_t i) {
    const size_t own = seeded(Defect::dilation_of_first_axis) ? 0 : i;
    const int64_t stride = seeded(Defect::stride_of_last_axis) ? list.stride.back() : list.stride[i];
    return {in, out, list.kernel[i], stride, list.padding[i], list.dilation[own], false};
}

bool is_divisible(const std::vector<int64_t>& in, const std::vector<int64_t>& out) {
    for (size_t i = 0; i < in.size(); ++i) {
        if (in[i] % out[i] != 0) return false;
    }
    return true;
}

// On A2 and A3 an adaptive backward whose windows are all alike is a windowed one.
bool becomes_windowed(const Call& call) {
    const Reading reading = kernel_reading(call);
    return product().is_220 && call.family->is_backward && call.family->is_adaptive &&
           is_divisible(reading.sizes(call.tensor(kSelf).shape), reading.sizes(pooled_tensor(call).shape));
}

std::array<Axis, kAxes> axes_of(const Call& call) {
    const Reading reading = kernel_reading(call);
    const std::vector<int64_t> in = reading.sizes(call.tensor(kSelf).shape);
    // An adaptive output may have other dims than outputSize, as long as the count is right.
    const bool from_list = call.family->is_adaptive && !call.family->is_backward;
    const std::vector<int64_t> out = from_list ? adaptive_sizes(call) : reading.sizes(pooled_tensor(call).shape);
    std::array<Axis, kAxes> axes;
    const size_t first = kAxes - in.size();
    for (size_t i = 0; i < in.size(); ++i) {
        if (!call.family->is_adaptive) {
            axes[first + i] = windowed_axis(in[i], out[i], attributes_of(call), i);
        } else if (becomes_windowed(call)) {
            axes[first + i] = {in[i], out[i], in[i] / out[i], in[i] / out[i], 0, 1, false};
        } else {
            axes[first + i] = {in[i], out[i], 1, 1, 0, 1, true};
        }
    }
    return axes;
}

// Kernels for int64 indices exist on the 950 only, and not for the adaptive 2-D backward. DOUBLE is computed by
// the host-like cores, which take any index type.
bool needs_narrow_indices(const Call& call) {
    if (call.family->is_mask || call.tensor(kIndices).dtype != ACL_INT64) return false;
    if (call.family->is_backward) return call.family->is_adaptive && call.family->spatial_rank == 2;
    return !product().is_950 && call.tensor(kSelf).dtype != ACL_DOUBLE;
}

Problem problem_of(const Call& call) {
    Problem problem;
    const Reading reading = kernel_reading(call);
    const std::vector<int64_t> leading = reading.leading(call.tensor(kSelf).shape);
    problem.axes = axes_of(call);
    problem.batch = leading[0];
    problem.channels = leading[1];
    problem.spatial_rank = call.family->spatial_rank;
    problem.channels_last = reading.channels_last();
    problem.value = call.tensor(kSelf).dtype;
    const bool is_int32 = call.family->is_mask || needs_narrow_indices(call);
    problem.index = is_int32 ? ACL_INT32 : call.tensor(kIndices).dtype;
    problem.deterministic = call.determinism > 0;
    return problem;
}

Route route_of(const Call& call, const Problem& problem) {
    if (uses_bit_mask(call)) return route_bits(call);
    if (!call.family->is_backward) return route_forward(call, problem);
    const bool adaptive = call.family->is_adaptive && !becomes_windowed(call);
    if (product().is_220) return adaptive ? route_220_adaptive(problem) : route_220_windowed(problem);
    if (adaptive) return route_950_adaptive(problem);
    return call.family->spatial_rank == 3 ? route_950_windowed_3d(problem) : route_950_windowed_2d(problem);
}

class Workspace {
  public:
    explicit Workspace(uint64_t reserved) : size_(static_cast<int64_t>(reserved)) {}
    int64_t reserve(int64_t bytes) {
        const int64_t start = size_;
        size_ += align(bytes, kWorkspaceAlignment);
        return start;
    }
    uint64_t size() const { return static_cast<uint64_t>(size_); }

  private:
    int64_t size_;
};

// The int32 indices that the first bytes of a mask hold. The library takes the mask's storage address, so the
// view's own offset and strides have no say.
View mask_view(const Problem& problem) {
    View view;
    view.shape = {problem.planes() * problem.windows()};
    view.strides = {1};
    view.item = item_size(ACL_INT32);
    return view;
}

// All bytes of a mask of bits, from its storage address on as well.
View bits_view(const Call& call) {
    View view;
    view.shape = {element_count(call.tensor(kIndices).shape)};
    view.strides = {1};
    view.item = 1;
    return view;
}

View view_of(const Call& call, Role role, const Problem& problem) {
    if (role != kIndices || !call.family->is_mask) return View(call.tensor(role));
    return uses_bit_mask(call) ? bits_view(call) : mask_view(problem);
}

Operand operand_of(const Call& call, Role role, const Problem& problem, Workspace& workspace) {
    Operand operand;
    operand.role = role;
    operand.view = view_of(call, role, problem);
    if (role == kIndices && seeded(Defect::offset_ignored)) operand.view.offset = 0;
    operand.is_touched = !(call.family->is_backward && role == kSelf) || seeded(Defect::argmax_recomputed);
    if (!operand.is_touched) return operand;
    const int64_t count = operand.view.count();
    if (!operand.view.is_dense()) operand.staging = workspace.reserve(count * operand.view.item);
    if (role == kIndices && needs_narrow_indices(call))
        operand.narrow = workspace.reserve(count * item_size(ACL_INT32));
    return operand;
}

// The library lets some calls pass whose out cannot hold the windows; what a device makes of them is not known.
bool holds_no_windows(const Call& call, const Problem& problem) {
    if (call.family->is_backward) return false;
    const std::vector<int64_t>& out = call.tensor(kOut).shape;
    const bool has_length = *std::min_element(out.begin(), out.end()) > 0;
    return !has_length || element_count(out) != problem.planes() * problem.windows();
}

}  // namespace

std::shared_ptr<const PoolPlan> empty_plan(const Call& call) {
    auto plan = std::make_shared<PoolPlan>();
    plan->family = call.family;
    plan->is_empty = true;
    plan->route = "nothing to compute";
    return plan;
}

std::shared_ptr<const PoolPlan> make_plan(const Call& call) {
    auto plan = std::make_shared<PoolPlan>();
    plan->family = call.family;
    if (uses_bit_mask(call) && !product().is_220) {
        plan->refusal = "no kernel: the order of the bits in this mask is not published, so it is not emulated";
        plan->refusal_status = status::kKernelNotFound;
        plan->route = "refused: bit mask";
        return plan;
    }
    plan->refusal = has_defects ? unfit_for_kernels(call) : "";
    if (plan->refusal.empty()) plan->refusal = tiling_refusal(call);
    if (!plan->refusal.empty()) {
        plan->refuses_early = call.family->is_adaptive && !becomes_windowed(call);
        plan->route = text("refused by tiling: ", plan->refusal);
        return plan;
    }
    plan->problem = problem_of(call);
    if (holds_no_windows(call, plan->problem)) return empty_plan(call);
    plan->branch = route_of(call, plan->problem);
    plan->route = plan->branch.describe();
    Workspace workspace(product().system_workspace);
    for (const Role role : call.roles()) plan->operands.push_back(operand_of(call, role, plan->problem, workspace));
    if (plan->branch.has_scratch) {
        plan->scratch = workspace.reserve(plan->problem.planes() * plan->problem.cells() * item_size(ACL_FLOAT));
    }
    plan->workspace_size = workspace.size();
    if (seeded(Defect::scratch_not_reported) && plan->scratch >= 0) {
        plan->workspace_size = static_cast<uint64_t>(plan->scratch);
    }
    if (seeded(Defect::workspace_underreported) && plan->workspace_size > 32) plan->workspace_size -= 32;
    return plan;
}

Stream::Task PoolPlan::bind(std::vector<void*> addresses, void* workspace) const {
    Stream::Task task = [plan = shared_from_this(), addresses, workspace, saturate = saturates()] {
        return run_plan(*plan, addresses, workspace, saturate);
    };
    if (!has_defects) return task;
    leave_behind(*this);
    return mistimed(*this, addresses, std::move(task));
}

}  // namespace emulator
