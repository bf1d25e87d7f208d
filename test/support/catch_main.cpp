// The main() of every Catch2 test program. Catch 2 exits with the number of failed assertions, and
// Meson takes 77 for "skipped" and 99 for "error", so this one exits with 0 or 1 only.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int main(int argc, char* argv[]) {
    return Catch::Session().run(argc, argv) == 0 ? 0 : 1;
}
