#include "ucg_coll/capi/planners.hpp"

#include <utility>

namespace ucg::capi {

/// Programs make their communicators in a few kinds: of all ranks, of each host's, of rows and
/// columns.
std::shared_ptr<Planner> Planners::of(PlanningFacts facts) {
    std::shared_ptr<Planner> found;
    std::erase_if(all_, [&](const std::weak_ptr<Planner>& known) {
        std::shared_ptr<Planner> planner = known.lock();
        const bool ended = planner == nullptr;
        if (!ended && planner->is_for(facts)) {
            found = std::move(planner);
        }
        return ended;
    });
    if (found == nullptr) {
        found = std::make_shared<Planner>(config_, phases_, remarks_, std::move(facts), threaded_);
        all_.push_back(found);
    }
    std::erase(latest_, found);
    latest_.insert(latest_.begin(), found);
    if (latest_.size() > kLatestMax) {
        latest_.pop_back();
    }
    return found;
}

} // namespace ucg::capi
