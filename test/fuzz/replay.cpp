// Feeds the files of folders to a fuzz target without libFuzzer. So inputs that a fuzzer found once
// are tested from then on, with any compiler.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void replay(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::printf("%s\n", path.c_str());
    // If a run crashes, the last name printed is that of the input that caused it.
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

} // namespace

int main(int argc, char* argv[]) {
    const bool wants_help = argc == 2 && std::strcmp(argv[1], "--help") == 0;
    if (argc < 2 || wants_help) {
        std::fprintf(wants_help ? stdout : stderr,
                     "usage: %s FOLDER...\nExit status: 0 all files survived, 1 there are none, 2 "
                     "wrong usage.\n",
                     argv[0]);
        return wants_help ? 0 : 2;
    }
    std::size_t count = 0;
    for (int i = 1; i < argc; ++i) {
        std::error_code error;
        const std::filesystem::directory_iterator files(argv[i], error);
        if (error) {
            std::fprintf(stderr, "%s: %s\n", argv[i], error.message().c_str());
            return 2;
        }
        for (const auto& entry : files) {
            replay(entry.path());
            ++count;
        }
    }
    std::printf("%zu files\n", count);
    return count > 0 ? 0 : 1;
}
