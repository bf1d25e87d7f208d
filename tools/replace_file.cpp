#include "tools/replace_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace ucg::tools {

namespace {

namespace fs = std::filesystem;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

bool is_open_here(const fs::path& file) {
    std::error_code error;
    for (const fs::directory_entry& open : fs::directory_iterator("/proc/self/fd", error)) {
        if (fs::equivalent(open.path(), file, error)) {
            return true;
        }
    }
    return false;
}

/// Returns the path of the file that can be replaced; empty if it must be written in place.
std::string replaceable(const std::string& path) {
    std::error_code error;
    if (fs::symlink_status(path, error).type() == fs::file_type::not_found) {
        return path;
    }
    const fs::path file = fs::canonical(path, error);
    const bool is_alone =
        !error && fs::is_regular_file(file, error) && fs::hard_link_count(file, error) == 1;
    return is_alone && ::access(file.c_str(), W_OK) == 0 && !is_open_here(file) ? file.string()
                                                                                : std::string();
}

/// Gives the new file the owner and mode of the file at `path`, or the mode of any new file.
bool take_attributes(int descriptor, const std::string& path) {
    struct stat old = {};
    if (::stat(path.c_str(), &old) == 0) { // In this order: a new owner costs bits of the mode.
        return ::fchown(descriptor, old.st_uid, old.st_gid) == 0 &&
               ::fchmod(descriptor, old.st_mode & 07777) == 0;
    }
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return ::fchmod(descriptor, 0666 & ~mask) == 0;
}

bool write_all(std::FILE* file, std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

Status write_in_place(const std::string& path, std::string_view text) {
    const File file(std::fopen(path.c_str(), "wb"), std::fclose);
    if (file == nullptr) {
        return io_failure("open for writing", path);
    }
    return write_all(file.get(), text) ? Status() : io_failure("write", path);
}

} // namespace

Status io_failure(std::string_view what, const std::string& path) {
    return failure(Code::io_error, "{}: cannot {}: {}", path, what, std::strerror(errno));
}

Status replace_file(const std::string& path, std::string_view text) {
    const std::string old = replaceable(path);
    std::string beside = old + ".XXXXXX";
    const int descriptor = old.empty() ? -1 : ::mkstemp(beside.data());
    if (descriptor < 0) {
        return write_in_place(path, text);
    }
    const File file(::fdopen(descriptor, "wb"), std::fclose);
    if (file == nullptr || !take_attributes(descriptor, old)) {
        ::unlink(beside.c_str());
        return write_in_place(path, text);
    }
    if (!write_all(file.get(), text) || ::fsync(descriptor) != 0 ||
        std::rename(beside.c_str(), old.c_str()) != 0) {
        Status failed = io_failure("write", path);
        ::unlink(beside.c_str());
        return failed;
    }
    return {};
}

} // namespace ucg::tools
