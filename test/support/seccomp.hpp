// Makes the kernel refuse system calls, as it does in some containers.
#pragma once

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace ucg::test {

namespace detail {

template <std::size_t Size>
bool filter_calls(sock_filter (&program)[Size]) {
    sock_fprog filter = {Size, program};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// From now on `call` has this outcome, one of SECCOMP_RET_*. False if this cannot be arranged.
inline bool filter_call(std::uint32_t call, std::uint32_t outcome) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, outcome),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return filter_calls(program);
}

/// The same where the argument of that index has this value.
inline bool filter_call_with(std::uint32_t call, std::size_t index, std::uint32_t value,
                             std::uint32_t outcome) {
    static_assert(std::endian::native == std::endian::little, "the low half of the argument");
    const auto offset = offsetof(seccomp_data, args) + index * sizeof(seccomp_data::args[0]);
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, outcome),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return filter_calls(program);
}

} // namespace detail

/// From now on process_vm_readv fails in this process. False if this cannot be arranged.
inline bool refuse_process_vm_readv(std::uint32_t error = EPERM) {
    return detail::filter_call(SYS_process_vm_readv, SECCOMP_RET_ERRNO | error);
}

/// From now on process_vm_writev kills this process. False if this cannot be arranged.
inline bool die_at_process_vm_writev() {
    return detail::filter_call(SYS_process_vm_writev, SECCOMP_RET_KILL_PROCESS);
}

/// Like refuse_process_vm_readv(), for the memory of one process.
inline bool refuse_process_vm_readv_of(std::uint32_t process) {
    return detail::filter_call_with(SYS_process_vm_readv, 0, process, SECCOMP_RET_ERRNO | EPERM);
}

/// From now on madvise() with this advice fails; EINVAL is the error of a kernel that does not know
/// the advice.
inline bool refuse_advice(std::uint32_t advice, std::uint32_t error = EINVAL) {
    return detail::filter_call_with(SYS_madvise, 2, advice, SECCOMP_RET_ERRNO | error);
}

/// From now on each system call raises SIGSYS, except those for writing, for ending, and for
/// telling the time where the processor's clock is not used. False if this cannot be arranged.
inline bool refuse_most_calls() {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_yield, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return detail::filter_calls(program);
}

} // namespace ucg::test
