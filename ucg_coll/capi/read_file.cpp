#include "ucg_coll/capi/read_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace ucg::capi {

Result<std::string> read_file(const std::string& path, std::string_view what, std::size_t bytes_max,
                              int& error) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                               std::fclose);
    constexpr std::size_t kChunk = 1 << 13; // Not on the stack: a thread's may be short.
    std::string text;
    std::size_t count = 1;
    while (file != nullptr && count > 0 && text.size() <= bytes_max) {
        const std::size_t before = text.size();
        text.resize(before + kChunk);
        count = std::fread(text.data() + before, 1, kChunk, file.get());
        text.resize(before + count);
    }
    const bool failed = file == nullptr || std::ferror(file.get()) != 0;
    error = failed ? errno : 0;
    if (failed) {
        return failure(Code::io_error, "{}: cannot read {}: {}", path, what, std::strerror(error));
    }
    if (text.size() > bytes_max) {
        return failure(Code::invalid_argument, "{}: expected {}, found more than {} bytes", path,
                       what, bytes_max);
    }
    return text;
}

} // namespace ucg::capi
