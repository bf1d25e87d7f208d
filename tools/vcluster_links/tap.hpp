// Ethernet devices whose other end is this process.
#pragma once

#include <string>
#include <utility>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

/// A file descriptor that its owner closes.
class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor();

    int get() const { return fd_; }
    bool valid() const { return fd_ >= 0; }
    void close() { *this = Descriptor(); }

  private:
    int fd_ = -1;
};

/// Makes the TAP device `name` in this process's network namespace. What the kernel sends through
/// the device can be read from the descriptor, frame by frame, and what is written to the
/// descriptor is what the device receives. The device ends with the descriptor, in whatever
/// namespace it is by then. Reading and writing do not block. Fails with unsupported, and a remedy,
/// where the kernel or the container has no such devices.
Result<Descriptor> make_tap(const std::string& name);

} // namespace ucg::tools
