#include "ucg_coll/transport/ucx/room.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace ucg::transport::ucx {
namespace {

Status find_files(std::uint64_t bytes) {
    rlimit limit = {};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes) {
        return Status();
    }
    return failure(Code::out_of_memory,
                   "UCX is not started: its shared memory takes files of more than the {} bytes "
                   "that this process may write, which would end it: raise the limit (ulimit -f)",
                   limit.rlim_cur);
}

Status find_descriptors(unsigned count) {
    std::vector<int> taken;
    int fd = ::epoll_create1(EPOLL_CLOEXEC);
    while (fd >= 0 && taken.size() < count) {
        taken.push_back(fd);
        fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    const int error = errno;
    if (fd >= 0) {
        taken.push_back(fd);
    }
    for (const int each : taken) {
        ::close(each);
    }
    if (fd >= 0) {
        return Status();
    }
    return failure(Code::out_of_memory,
                   "UCX is not started: it takes about {} descriptors, of which {} are to be had "
                   "({}): raise the limit (ulimit -n)",
                   count, taken.size(), std::strerror(error));
}

Status find_address_space(std::uint64_t bytes) {
    void* space =
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) {
        return failure(Code::out_of_memory,
                       "UCX is not started: it takes about {} MiB of address space, which are not "
                       "to be had ({}): raise the limit (ulimit -v)",
                       bytes >> 20, std::strerror(errno));
    }
    ::munmap(space, bytes);
    return Status();
}

struct Errand {
    const std::function<Status()>& work;
    Status status;
    std::exception_ptr thrown;
};

void* run(void* arg) {
    auto& errand = *static_cast<Errand*>(arg);
    try {
        errand.status = errand.work();
    } catch (...) {
        errand.thrown = std::current_exception();
    }
    return nullptr;
}

} // namespace

Status find_room(const Room& room) {
    if (Status status = find_files(room.file_bytes); !status.ok()) {
        return status;
    }
    if (Status status = find_descriptors(room.descriptors); !status.ok()) {
        return status;
    }
    return find_address_space(room.address_bytes);
}

Status in_own_thread(const std::function<Status()>& work) {
    Errand errand = {work, Status(), nullptr};
    // The program's handlers of signals shall not run in it.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread = {};
    const int error = ::pthread_create(&thread, nullptr, run, &errand);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0) {
        return failure(Code::out_of_memory,
                       "UCX is not started: it needs a thread, which is not to be had ({}): raise "
                       "the limit (ulimit -u, pids.max)",
                       std::strerror(error));
    }
    ::pthread_join(thread, nullptr);
    if (errand.thrown != nullptr) {
        std::rethrow_exception(errand.thrown);
    }
    return errand.status;
}

} // namespace ucg::transport::ucx
