// What callbacks of UCX find that there is to do, and leave to be done once they have returned.
#pragma once

#include <utility>
#include <vector>

namespace ucg::transport::ucx {

/// In the order in which it was found. Keeps its memory, so that it allocates only where more is
/// due than ever before.
template <typename T>
class Due {
  public:
    bool empty() const { return items_.empty(); }
    void add(T item) { items_.push_back(std::move(item)); }

    /// Leaves out those that `condition` says. Not from within take_all().
    template <typename Condition>
    void drop_if(Condition condition) {
        std::erase_if(items_, condition);
    }

    /// Calls `visit` for all. What is found meanwhile is due the next time.
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
    std::vector<T> spare_; ///< Empty, with room.
};

} // namespace ucg::transport::ucx
