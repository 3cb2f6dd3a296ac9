#include "cache.h"

#include <algorithm>
#include <cstdlib>

#include "../ascendcl/environment.h"

namespace emulator {
namespace {

// Default and ceiling of the real cache (executor cache of the aclnn base library).
constexpr int64_t kDefaultLimit = 10000;
constexpr int64_t kHighestLimit = 10000000;

size_t chosen_limit() {
    if (std::getenv("DISABLE_L2_CACHE") != nullptr) return 0;
    return static_cast<size_t>(std::min(environment_number("ACLNN_CACHE_LIMIT", kDefaultLimit), kHighestLimit));
}

}  // namespace

PlanCache::PlanCache() : limit_(chosen_limit()) {}

std::shared_ptr<const Plan> PlanCache::find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->second;
}

void PlanCache::insert(const std::string& key, std::shared_ptr<const Plan> plan) {
    const std::lock_guard lock(mutex_);
    if (index_.count(key) != 0) return;
    if (entries_.size() == limit_) {
        index_.erase(entries_.back().first);
        entries_.pop_back();
    }
    entries_.emplace_front(key, std::move(plan));
    index_[key] = entries_.begin();
}

void PlanCache::drop(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(key);
    if (found == index_.end()) return;
    entries_.erase(found->second);
    index_.erase(found);
}

PlanCache& plan_cache() {
    static PlanCache& instance = *new PlanCache;  // never destroyed: nothing may run after static destructors
    return instance;
}

}  // namespace emulator
