// What all parts of a worker share: what it was started with, and how it is. Every part has a
// reference to one or both, and changes nothing of the former.
//
// Threading, here and in all parts: whoever calls holds the worker's lock (UcxCore::mutex()).
#pragma once

#include <utility>

#include <ucp/api/ucp.h>

#include "ucg_coll/transport/ucx/address.hpp"
#include "ucg_coll/transport/ucx/exhaustion.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::transport::ucx {

/// Constant as long as the worker lives.
struct Setup {
    UcxOptions options;
    ucp_worker_h worker = nullptr;
    ProcessAddress self; ///< This process's, without the short lane's interfaces.
    bool detects_failures = false;
};

class WorkerState {
  public:
    /// False from the moment at which the worker begins to part from its peers: no connection is
    /// made again then, and no lane.
    bool running() const { return running_; }
    void stop() { running_ = false; }

    /// Runs work that may allocate, within a callback or as its consequence. Returns false if
    /// memory runs out: then something is lost, and UcxCore::run_deferred() fails all peers.
    template <typename Work>
    bool attempt(Work work) {
        if (suffices(work)) {
            return true;
        }
        lost_ = true;
        return false;
    }

    /// Notes that memory ran out in UCX, as attempt() does where it ran out here.
    void note_loss() { lost_ = true; }
    bool take_loss() { return std::exchange(lost_, false); }

    /// Why nothing more is sent or received, and no more groups are taken; ok while they are.
    const Status& broken() const { return broken_; }
    void break_down(const Status& why) { broken_ = why; }

  private:
    bool running_ = true;
    Status broken_;
    bool lost_ = false; ///< Since take_loss() was last called.
};

} // namespace ucg::transport::ucx
