// By which options the latest groups of a process share memory.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::capi {

/// The options of the latest group of each size, for a few sizes: the next group of a size is most
/// often like the latest. Whoever uses it holds the context's maker().
class LatestOptions {
  public:
    /// Returns the options by which the latest group of so many ranks shares memory, if all were on
    /// one host.
    std::optional<transport::ShmOptions> of(std::size_t ranks) const;
    void set(std::size_t ranks, const transport::ShmOptions& options);
    /// To be called when the latest group of so many ranks has them on several hosts, or shares no
    /// memory.
    void forget(std::size_t ranks);

  private:
    static constexpr std::size_t kMost = 8;

    std::vector<std::pair<std::size_t, transport::ShmOptions>> options_; ///< The oldest first.
};

} // namespace ucg::capi
