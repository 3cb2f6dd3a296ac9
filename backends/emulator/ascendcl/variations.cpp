#include "variations.h"

#include <string>
#include <utility>
#include <vector>

#include "environment.h"
#include "errors.h"

namespace emulator {
namespace {

// The value that goes with the word in an environment variable; the first one where it is not set.
template <class Value>
Value choice(const char* name, const std::vector<std::pair<const char*, Value>>& choices) {
    const std::string word = environment(name, choices.front().first);
    std::string known;
    for (const auto& [candidate, value] : choices) {
        if (word == candidate) return value;
        known += text(known.empty() ? "" : ", ", candidate);
    }
    fatal(text(name, "=", word, " is none of ", known));
}

Variations read_variations() {
    Variations chosen;
    chosen.order = choice<Order>("POOLPROOF_EMULATOR_ORDER", {{"route", Order::kOfRoute},
                                                              {"forward", Order::kForward},
                                                              {"reverse", Order::kReverse},
                                                              {"random", Order::kRandom},
                                                              {"pairwise", Order::kPairwise}});
    chosen.accumulation = choice<Accumulation>(
        "POOLPROOF_EMULATOR_ACCUMULATION",
        {{"route", Accumulation::kOfRoute}, {"acc32", Accumulation::kAcc32}, {"native", Accumulation::kNative}});
    chosen.narrowing = choice<Narrowing>("POOLPROOF_EMULATOR_NARROWING", {{"even", Narrowing::kEven},
                                                                          {"away", Narrowing::kAway},
                                                                          {"truncate", Narrowing::kTruncate},
                                                                          {"up", Narrowing::kUp},
                                                                          {"down", Narrowing::kDown}});
    chosen.flushes_subnormals = choice<bool>("POOLPROOF_EMULATOR_SUBNORMALS", {{"keep", false}, {"flush", true}});
    chosen.saturates = choice<bool>("POOLPROOF_EMULATOR_OVERFLOW", {{"inf", false}, {"saturate", true}});
    chosen.ties = choice<Ties>("POOLPROOF_EMULATOR_TIES", {{"first", Ties::kFirst}, {"last", Ties::kLast}});
    chosen.nans = choice<Nans>("POOLPROOF_EMULATOR_NANS",
                               {{"last", Nans::kLast}, {"first", Nans::kFirst}, {"ignore", Nans::kIgnore}});
    return chosen;
}

}  // namespace

const Variations variations = read_variations();

}  // namespace emulator
