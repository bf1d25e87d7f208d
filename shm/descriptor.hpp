// A file descriptor with one owner, or borrowed from its owner.
#pragma once

#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace ucg::shm {

/// An open file descriptor, closed on destruction. Remembers which file it is: a program that
/// closes descriptors which it did not open (closefrom) gives our numbers to files of its own,
/// which are not ours to read, change or close.
class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {
        struct stat info = {};
        if (fd >= 0 && ::fstat(fd, &info) == 0) {
            device_ = info.st_dev;
            inode_ = info.st_ino;
        }
    }
    /// Returns one that somebody else owns and closes.
    static Descriptor borrowed(int fd) {
        Descriptor descriptor(fd);
        descriptor.borrowed_ = true;
        return descriptor;
    }
    Descriptor(Descriptor&& other) noexcept
        : fd_(std::exchange(other.fd_, -1)), device_(other.device_), inode_(other.inode_),
          borrowed_(other.borrowed_) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(device_, other.device_);
        std::swap(inode_, other.inode_);
        std::swap(borrowed_, other.borrowed_);
        return *this;
    }
    ~Descriptor() { reset(); }

    /// Returns the descriptor for one system call; -1 when there is none, or the program has closed
    /// it.
    int get() const {
        struct stat info = {};
        const bool ours =
            valid() && ::fstat(fd_, &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
        return ours ? fd_ : -1;
    }
    /// Returns the number, to be watched by poll(2), which neither reads nor changes the file; that
    /// may be another one by now.
    int number() const { return fd_; }
    /// Returns whether there was a descriptor. The program may have closed it since.
    bool valid() const { return fd_ >= 0; }
    void reset() {
        if (const int fd = get(); fd >= 0 && !borrowed_) {
            ::close(fd);
        }
        fd_ = -1;
    }

  private:
    int fd_ = -1;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    bool borrowed_ = false; ///< Somebody else closes it.
};

} // namespace ucg::shm
