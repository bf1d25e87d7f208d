#include "shm/sealed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NO_EXEC_SEAL = 0x0008 }; /* MFD_NOEXEC_SEAL, newer than some headers. */

/* Makes a memfd that cannot be executed, where the kernel knows that. */
static int anonymous_file(void) {
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    /* Systems with vm.memfd_noexec=2 refuse executable files; kernels before 6.3 refuse the flag.
     */
    int fd = memfd_create("ucg", flags | NO_EXEC_SEAL);

    return fd >= 0 || errno != EINVAL ? fd : memfd_create("ucg", flags);
}

int ucg_shm_sealed_file(uint64_t bytes, const char** step_p) {
    int fd = anonymous_file();
    int error;

    *step_p = "memfd_create";
    if (fd < 0) {
        return -1;
    }
    *step_p = "ftruncate";
    if (ftruncate(fd, (off_t)bytes) == 0) {
        *step_p = "sealing";
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
            return fd;
        }
    }
    error = errno;
    close(fd);
    errno = error;
    return -1;
}
