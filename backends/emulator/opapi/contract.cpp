// The ten APIs as data, and the judge that applies a contract.
#include "contract.h"

#include <map>

#include "../ascendcl/defects.h"
#include "../ascendcl/errors.h"

namespace emulator {
namespace {

const std::vector<Role> kBackwardInputs = {kGradOutput, kSelf, kIndices};
const std::vector<Role> kForwardOutputs = {kOut, kIndices};

struct Entry {
    Family family;
    Contract contract;
};

std::map<std::string, Entry> make_entries() {
    const auto backward = [](const char* name, bool adaptive, bool mask, int rank) {
        return Family{name, true, adaptive, mask, rank, kBackwardInputs, {kGradInput}};
    };
    const auto forward = [](const char* name, bool adaptive, bool mask, int rank) {
        return Family{name, false, adaptive, mask, rank, {kSelf}, kForwardOutputs};
    };
    const Entry entries[] = {
        {backward("aclnnMaxPool3dWithArgmaxBackward", false, false, 3), windowed_backward_3d()},
        {backward("aclnnMaxPool2dWithIndicesBackward", false, false, 2), windowed_backward_2d()},
        {backward("aclnnMaxPool2dWithMaskBackward", false, true, 2), mask_backward()},
        {backward("aclnnAdaptiveMaxPool2dBackward", true, false, 2), adaptive_backward_2d()},
        {backward("aclnnAdaptiveMaxPool3dBackward", true, false, 3), adaptive_backward_3d()},
        {forward("aclnnMaxPool3dWithArgmax", false, false, 3), windowed_forward_3d()},
        {forward("aclnnMaxPool2dWithIndices", false, false, 2), windowed_forward_2d()},
        {forward("aclnnMaxPool2dWithMask", false, true, 2), mask_forward()},
        {forward("aclnnAdaptiveMaxPool2d", true, false, 2), adaptive_forward_2d()},
        {forward("aclnnAdaptiveMaxPool3d", true, false, 3), adaptive_forward_3d()},
    };
    std::map<std::string, Entry> table;
    for (const Entry& entry : entries) table.emplace(entry.family.name, entry);
    return table;
}

const Entry& entry_of(const std::string& api) {
    static const auto& entries = *new std::map<std::string, Entry>(make_entries());
    return entries.at(api);
}

}  // namespace

const Family& family_of(const std::string& api) { return entry_of(api).family; }

const Contract& contract_of(const Family& family) { return entry_of(family.name).contract; }

Judgement judge(const Rules& rules, const Call& call) {
    for (const Rule& rule : rules) {
        const Violation why = rule.violation(call);
        if (!why) continue;
        if (rule.effect == Effect::kFinish) return {status::kSuccess, true};
        const bool is_silent = seeded(Defect::refusal_without_text) && std::string(rule.clause) == "list.length";
        if (!is_silent) report(text("E", rule.status, ": ", call.family->name, ": ", *why, " [", rule.clause, "]"));
        if (rule.effect == Effect::kRefuse) return {rule.status, false};
    }
    return {status::kSuccess, false};
}

}  // namespace emulator
