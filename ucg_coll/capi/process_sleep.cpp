#include "ucg_coll/capi/process_sleep.hpp"

namespace ucg::capi {

void ProcessSleep::sleep_by(std::shared_ptr<shm::Sleeper> sleeper) {
    const std::lock_guard lock(mutex_);
    sleeper_.swap(sleeper);
    sleeper->bell().ring(shm::Awaits::both);
}

void ProcessSleep::sleep_alone() {
    sleep_by({private_, &private_->sleeper});
}

void ProcessSleep::ring() {
    const std::lock_guard lock(mutex_);
    sleeper_->bell().ring(shm::Awaits::both);
}

} // namespace ucg::capi
