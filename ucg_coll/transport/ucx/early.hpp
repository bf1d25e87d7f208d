// The early arrivals of a worker: those of all groups, and of groups that are yet to come.
//
// Called by those who take arrivals, within UCX's callbacks too, but for discard().
#pragma once

#include <ucp/api/ucp.h>

#include "ucg_coll/transport/ucx/matching.hpp"

namespace ucg::transport::ucx {

/// An EarlyPool that gives the handles of rendezvous back to UCP.
class UcxEarlyPool : public EarlyPool {
  public:
    explicit UcxEarlyPool(ucp_worker_h worker) : worker_(worker) {}

    /// Releases early arrivals that nobody will receive. Calls UCX.
    void discard(Fifo<Early>& early) {
        while (Early* item = early.pop()) {
            if (item->rendezvous != nullptr) {
                ucp_am_data_release(worker_, item->rendezvous);
            }
            release(item);
        }
    }

  private:
    ucp_worker_h worker_;
};

} // namespace ucg::transport::ucx
