#include "ucg_coll/capi/context_network.hpp"

#include <thread>
#include <utility>

#include "ucg_coll/capi/ucx_library.hpp"

namespace ucg::capi {

Result<transport::ProcessNetwork*> ContextNetwork::start(std::uint64_t link_bytes_per_second) {
    if (!failure_.ok()) {
        return failure_;
    }
    if (network_ == nullptr) {
        options_.link_bytes_per_second = link_bytes_per_second;
        Result<std::unique_ptr<transport::ProcessNetwork>> made = open_ucx(options_);
        if (!made.ok()) {
            failure_ = made.status();
            return failure_;
        }
        network_ = std::move(*made);
        groups_.drive_network(network_.get());
    }
    return network_.get();
}

void ContextNetwork::disconnect() {
    if (network_ != nullptr) {
        network_->begin_close();
        while (!network_->close_progress()) { // Bounded by UcxOptions::close_timeout.
            std::this_thread::yield();        // The peers may need this processor to answer.
        }
    }
}

} // namespace ucg::capi
