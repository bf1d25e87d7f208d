// Ethernet devices whose other end is this process.
#pragma once

#include <string>
#include <utility>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

/// A file descriptor that its owner closes.
class OwnedDescriptor {
  public:
    OwnedDescriptor() = default;
    explicit OwnedDescriptor(int fd) : fd_(fd) {}
    OwnedDescriptor(OwnedDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~OwnedDescriptor();

    int get() const { return fd_; }
    bool valid() const { return fd_ >= 0; }
    void close() { *this = OwnedDescriptor(); }

  private:
    int fd_ = -1;
};

/// Makes the TAP device `name` in this process's network namespace. What the kernel sends through
/// the device can be read from the descriptor, frame by frame, and what is written to the
/// descriptor is what the device receives. The device ends with the descriptor, in whatever
/// namespace it is by then. Reading and writing do not block. Fails with unsupported, and a remedy,
/// where the kernel or the container has no such devices.
Result<OwnedDescriptor> make_tap(const std::string& name);

} // namespace ucg::tools
