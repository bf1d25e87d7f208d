// A file descriptor with one owner.
#pragma once

#include <unistd.h>
#include <utility>

namespace ucg::shm {

class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() { reset(); }

    /// -1 when there is none.
    int get() const { return fd_; }
    bool valid() const { return fd_ >= 0; }
    void reset() {
        if (valid()) {
            ::close(std::exchange(fd_, -1));
        }
    }

  private:
    int fd_ = -1;
};

} // namespace ucg::shm
