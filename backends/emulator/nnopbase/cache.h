// The executor cache: a second identical phase one neither validates nor plans again.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "plan.h"

namespace emulator {

// Least recently used plans leave first. ACLNN_CACHE_LIMIT bounds their number, DISABLE_L2_CACHE set to anything
// turns the cache off; both are read at first use.
class PlanCache {
  public:
    PlanCache();

    bool is_on() const { return limit_ > 0; }
    std::shared_ptr<const Plan> find(const std::string& key);
    void insert(const std::string& key, std::shared_ptr<const Plan> plan);
    void drop(const std::string& key);

  private:
    using Entry = std::pair<std::string, std::shared_ptr<const Plan>>;

    size_t limit_;
    std::mutex mutex_;
    std::list<Entry> entries_;  // most recently used first
    std::unordered_map<std::string, std::list<Entry>::iterator> index_;
};

PlanCache& plan_cache();

}  // namespace emulator
