// Work that callbacks of UCX find, and that is done once they have returned.
#pragma once

#include <utility>
#include <vector>

namespace ucg::transport::ucx {

/// A list of such work, in the order in which it was found. It keeps its memory, so that it
/// allocates only where more work is due than ever before.
template <typename T>
class Due {
  public:
    bool empty() const { return items_.empty(); }
    void add(T item) { items_.push_back(std::move(item)); }

    /// Removes the items for which `condition` is true. Must not be called from within take_all().
    template <typename Condition>
    void drop_if(Condition condition) {
        std::erase_if(items_, condition);
    }

    /// Removes all items and calls `visit` for each. Items that are added meanwhile stay for the
    /// next call.
    template <typename Visit>
    void take_all(Visit visit) {
        std::vector<T> taken = std::exchange(items_, std::move(spare_));
        for (const T& item : taken) {
            visit(item);
        }
        taken.clear();
        spare_ = std::move(taken);
    }

  private:
    std::vector<T> items_;
    std::vector<T> spare_; ///< Empty, but with memory reserved.
};

} // namespace ucg::transport::ucx
