#include "shm/segment.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/guarded_room.h"
#include "shm/process_heap.h"
#include "shm/sealed_file.h"

namespace ucg::shm {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr std::uint64_t kReserveStep = std::uint64_t{8} << 20;
constexpr int kPopulateWrite = 23; // MADV_POPULATE_WRITE, newer than some headers.

Status system_failure(const char* what) {
    const Code code = errno == ENOMEM || errno == ENOSPC ? Code::out_of_memory : Code::io_error;
    return failure(code, "shared memory: {} failed: {}", what, std::strerror(errno));
}

/// Returns whether the system gives pages to what is mapped from now on before it is touched, since
/// the program has all of it locked in memory (mlockall(MCL_FUTURE)).
bool maps_are_backed() {
    void* page =
        ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return false;
    }
    unsigned char is_there = 0;
    const bool backed = ::mincore(page, page_bytes(), &is_there) == 0 && (is_there & 1U) != 0;
    ::munmap(page, page_bytes());
    return backed;
}

/// Maps the file's first `bytes` over what is at `base`. Returns null, or the system call that
/// failed.
const char* map_over(std::byte* base, std::uint64_t bytes, int file) {
    constexpr int kAccess = PROT_READ | PROT_WRITE;
    // Memory that is locked and can be touched gets pages at once, holes and all. So it is mapped
    // without access until it is unlocked. Otherwise it has access from the beginning: when access
    // changes, valgrind goes through the bytes one by one, which takes seconds.
    const bool backed = maps_are_backed();
    if (::mmap(base, bytes, backed ? PROT_NONE : kAccess, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
               file, 0) == MAP_FAILED) {
        return "mmap";
    }
    // If it were locked, all of it would count against the limit of locked memory, even if only
    // what is touched gets pages (MCL_ONFAULT).
    ::munlock(base, bytes);
    return backed && ::mprotect(base, bytes, kAccess) != 0 ? "mprotect" : nullptr;
}

/// Returns whether the preloaded library gives its segment; says so, once, if the program prevents
/// it. The library has told of other reasons.
bool gives(int error) {
    static std::atomic_flag told;
    if (error == EBADF && !told.test_and_set()) {
        log(LogLevel::warn, "the program closed the descriptor of its preloaded heap: peers cannot "
                            "read what it allocates");
    }
    return error == 0;
}

} // namespace

std::uint64_t page_bytes() {
    static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

bool backs_pages() {
    static const bool known = ::madvise(nullptr, 0, kPopulateWrite) == 0;
    return known;
}

Status back_pages(std::byte* data, std::uint64_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(data) / page_bytes() * page_bytes();
    const std::uint64_t end = reinterpret_cast<std::uintptr_t>(data) + bytes;
    const std::uint64_t length = round_up(end - first, page_bytes());
    while (::madvise(reinterpret_cast<void*>(first), length, kPopulateWrite) != 0) {
        if (errno != EINTR && errno != EAGAIN) {
            if (errno == EINVAL) {
                return Status(Code::unsupported,
                              "shared memory: Linux 5.14 backs pages by address");
            }
            errno = errno == EFAULT ? ENOMEM : errno; // A touch would raise SIGBUS.
            return system_failure("madvise");
        }
    }
    return {};
}

Result<std::unique_ptr<SharedSegment>> SharedSegment::create(std::uint64_t bytes) {
    const char* step = nullptr;
    Descriptor file(ucg_shm_sealed_file(bytes, &step));
    if (!file.valid()) {
        return system_failure(step);
    }
    return map(std::move(file), bytes, bytes);
}

Result<std::unique_ptr<SharedSegment>> SharedSegment::adopt(Descriptor file, std::uint64_t bytes,
                                                            std::uint64_t lease_bytes) {
    auto segment = map_sealed(std::move(file), bytes, lease_bytes);
    if (segment) {
        (*segment)
            ->file_.reset(); // The mapping holds the file; hosts with many ranks need descriptors.
        // A forked child has no use for it, and would keep the memory of a job alive that has ended
        // long before.
        ::madvise((*segment)->base_, bytes, MADV_DONTFORK);
    }
    return segment;
}

Result<std::unique_ptr<SharedSegment>> SharedSegment::join(Descriptor file, std::uint64_t bytes) {
    return map_sealed(std::move(file), bytes, bytes);
}

Result<std::unique_ptr<SharedSegment>>
SharedSegment::map_sealed(Descriptor file, std::uint64_t bytes, std::uint64_t lease_bytes) {
    struct stat info = {};
    if (::fstat(file.get(), &info) != 0) {
        return system_failure("fstat");
    }
    const int seals = ::fcntl(file.get(), F_GET_SEALS);
    if (static_cast<std::uint64_t>(info.st_size) < bytes || bytes % page_bytes() != 0 ||
        lease_bytes > bytes || lease_bytes % page_bytes() != 0 || seals < 0 ||
        (seals & kSizeSeals) != kSizeSeals) {
        return Status(Code::io_error, "shared memory: a peer passed a file that is not a segment");
    }
    return map(std::move(file), bytes, lease_bytes);
}

bool SharedSegment::process_has_one() {
    return ucg_heap_can_claim_1 != nullptr && ucg_heap_claim_1 != nullptr &&
           ucg_heap_release_1 != nullptr && gives(ucg_heap_can_claim_1());
}

std::unique_ptr<SharedSegment> SharedSegment::of_process() {
    ucg_heap_segment claimed = {};
    if (!process_has_one() || !gives(ucg_heap_claim_1(&claimed))) {
        return nullptr;
    }
    std::unique_ptr<SharedSegment> segment(
        new SharedSegment(Descriptor::borrowed(claimed.descriptor),
                          static_cast<std::byte*>(claimed.base), claimed.bytes));
    segment->own_bytes_ = claimed.lease_bytes;
    segment->of_process_ = true;
    return segment;
}

Result<std::unique_ptr<SharedSegment>> SharedSegment::map(Descriptor file, std::uint64_t bytes,
                                                          std::uint64_t lease_bytes) {
    const std::uint64_t alignment = lease_bytes < bytes ? UCG_SHM_HUGE_PAGE_BYTES : page_bytes();
    auto* base = static_cast<std::byte*>(ucg_shm_guarded_room(bytes, alignment));
    if (base == nullptr) {
        return system_failure("mmap");
    }
    if (const char* step = map_over(base, bytes, file.get()); step != nullptr) {
        Status status = system_failure(step);
        ucg_shm_guarded_room_end(base, bytes);
        return status;
    }
    // A core file would back every hole with a page. Each process dumps what it has reserved.
    ::madvise(base, bytes, MADV_DONTDUMP);
    // Leases count their pages, which are few and far between.
    ::madvise(base, lease_bytes, MADV_NOHUGEPAGE);
    return std::unique_ptr<SharedSegment>(new SharedSegment(std::move(file), base, bytes));
}

SharedSegment::~SharedSegment() {
    if (of_process_) {
        ucg_heap_release_1();
    } else {
        ucg_shm_guarded_room_end(base_, bytes_);
    }
}

Status SharedSegment::reserve(std::uint64_t offset, std::uint64_t bytes) {
    // A process that was slow to let go of an earlier lease may have touched a page of it since, so
    // the range is emptied again; then every page of it is new and zero.
    discard(offset, bytes);
    if (Status status = back(offset, bytes); !status.ok()) {
        discard(offset, bytes);
        return status;
    }
    ::madvise(base_ + offset, bytes, MADV_DODUMP);
    return Status();
}

/// Gives pages to a range, by address, which is right even when the program has closed the
/// descriptor.
Status SharedSegment::back(std::uint64_t offset, std::uint64_t bytes) {
    const Status status = back_pages(base_ + offset, bytes);
    return status.code() == Code::unsupported ? allocate(offset, bytes) : status;
}

/// Gives pages to a range by the descriptor, on Linux before 5.14.
Status SharedSegment::allocate(std::uint64_t offset, std::uint64_t bytes) {
    // In steps: a signal undoes the whole of a call, and a periodic one would undo a long call
    // forever.
    for (std::uint64_t done = 0; done < bytes;) {
        const int file = file_.get();
        if (file < 0) {
            return Status(Code::io_error,
                          "shared memory: the program has closed the descriptor of the node heap, "
                          "which this version of Linux needs in order to allocate from it");
        }
        const std::uint64_t step = std::min(kReserveStep, bytes - done);
        if (::fallocate(file, 0, static_cast<off_t>(offset + done), static_cast<off_t>(step)) ==
            0) {
            done += step;
        } else if (errno != EINTR) {
            return system_failure("fallocate");
        }
    }
    return Status();
}

void SharedSegment::discard(std::uint64_t offset, std::uint64_t bytes) {
    ::madvise(base_ + offset, bytes, MADV_DONTDUMP);
    if (::madvise(base_ + offset, bytes, MADV_REMOVE) == 0) {
        return;
    }
    // MADV_REMOVE fails for memory that the program has locked.
    const int file = file_.get();
    if (file < 0 || ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
        std::memset(base_ + offset, 0, bytes);
    }
}

void SharedSegment::guard(std::uint64_t offset, std::uint64_t bytes) {
    ::mprotect(base_ + offset - page_bytes(), page_bytes(), PROT_NONE);
    ::mprotect(base_ + offset + bytes, page_bytes(), PROT_NONE);
}

} // namespace ucg::shm
