#include "shm/host.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace ucg::shm {
namespace {

/// The inode of a namespace, which names it as long as a process is in it.
std::uint64_t namespace_inode(const char* path) {
    struct stat info = {};
    return ::stat(path, &info) == 0 ? static_cast<std::uint64_t>(info.st_ino) : 0;
}

} // namespace

Result<HostFacts> read_host_facts() {
    HostFacts facts;
    std::ifstream boot("/proc/sys/kernel/random/boot_id");
    std::getline(boot, facts.boot);
    facts.network_namespace = namespace_inode("/proc/self/ns/net");
    facts.ipc_namespace = namespace_inode("/proc/self/ns/ipc");
    facts.user = ::geteuid();
    if (facts.boot.empty() || facts.network_namespace == 0 || facts.ipc_namespace == 0) {
        return failure(Code::io_error,
                       "cannot tell which processes share this host: /proc is not readable: {}",
                       std::strerror(errno));
    }
    return facts;
}

std::uint64_t identity(const HostFacts& facts) {
    const std::uint64_t digest = Hash()
                                     .bytes(facts.boot)
                                     .value(facts.network_namespace)
                                     .value(facts.ipc_namespace)
                                     .value(facts.user)
                                     .digest();
    return digest == 0 ? 1 : digest;
}

std::uint64_t machine_identity(const HostFacts& facts) {
    const std::uint64_t digest = Hash().bytes(facts.boot).digest();
    return digest == 0 ? 1 : digest;
}

} // namespace ucg::shm
