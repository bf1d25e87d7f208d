#include "tools/files.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <unistd.h>

#include "tools/replace_file.hpp"
#include "ucg_coll/base/printable.hpp"

namespace ucg::tools {

namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// Replaces fclose() for standard streams, which this module does not own.
int keep_open(std::FILE* /*stream*/) {
    return 0;
}

} // namespace

Result<std::string> read_input(const std::string& path) {
    const bool is_standard = path == "-";
    const File file(is_standard ? stdin : std::fopen(path.c_str(), "rb"),
                    is_standard ? keep_open : std::fclose);
    if (file == nullptr) {
        return io_failure("open", path);
    }
    std::string text;
    std::array<char, 1 << 16> chunk;
    while (const std::size_t count = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
        text.append(chunk.data(), count);
    }
    if (std::ferror(file.get()) != 0) {
        return io_failure("read", is_standard ? "standard input" : path);
    }
    return text;
}

Status write_output(const std::string& path, std::string_view text) {
    if (path != "-" && path != "/dev/stdout") {
        return replace_file(path, text);
    }
    const std::string shown = printable(text);
    const bool written = std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() &&
                         std::fflush(stdout) == 0;
    return written ? Status() : io_failure("write", "standard output");
}

Status check_printed() {
    return std::fflush(stdout) == 0 && std::ferror(stdout) == 0
               ? Status()
               : failure(Code::io_error, "standard output: cannot write all of it");
}

Status check_output(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    if (path.empty() || path == "-") {
        return {};
    }
    if (fs::is_directory(path, error)) {
        return failure(Code::io_error, "{}: cannot write: it is a folder", path);
    }
    const fs::path parent = fs::path(path).parent_path();
    const std::string folder = parent.empty() ? "." : parent.string();
    if (!fs::is_directory(folder, error)) {
        return failure(Code::io_error, "{}: cannot write: there is no folder {}", path, folder);
    }
    const std::string& changed = fs::exists(path, error) ? path : folder;
    return ::access(changed.c_str(), W_OK) == 0 ? Status() : io_failure("write", path);
}

Status in_file(const std::string& path, const Status& status) {
    return failure(status.code(), "{}: {}", path == "-" ? "standard input" : path,
                   status.message());
}

} // namespace ucg::tools
