#include "tools/vcluster_links/tap.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace ucg::tools {

namespace {

constexpr const char* kDevice = "/dev/net/tun";

Status why_not_open(int error) {
    const char* remedy = error == ENOENT || error == ENODEV || error == ENXIO
                             ? "load the kernel's module tun (modprobe tun); a container needs the "
                               "device too (docker run --device /dev/net/tun)"
                             : "its mode should be 0666; a container needs the device among those "
                               "allowed (docker run --device /dev/net/tun)";
    return failure(Code::unsupported, "links with latency or loss need {}: {}: {}", kDevice,
                   std::strerror(error), remedy);
}

} // namespace

OwnedDescriptor::~OwnedDescriptor() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

Result<OwnedDescriptor> make_tap(const std::string& name) {
    if (name.empty() || name.size() >= IFNAMSIZ) {
        return failure(Code::invalid_argument, "a device's name has 1 to {} characters; found '{}'",
                       IFNAMSIZ - 1, name);
    }
    OwnedDescriptor tap(::open(kDevice, O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!tap.valid()) {
        return why_not_open(errno);
    }
    ifreq request = {};
    std::memcpy(request.ifr_name, name.c_str(), name.size() + 1);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (::ioctl(tap.get(), TUNSETIFF, &request) != 0) {
        const int error = errno;
        return failure(Code::unsupported, "cannot make the network device {}: {}{}", name,
                       std::strerror(error),
                       error == EPERM ? ": this needs CAP_NET_ADMIN in the network namespace; run "
                                        "as root, or by vcluster in a user namespace"
                                      : "");
    }
    return tap;
}

} // namespace ucg::tools
