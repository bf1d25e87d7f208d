// The one main of every Catch2 test program. Catch 2 exits with the number of failed assertions,
// and Meson reads 77 as "skipped" and 99 as "error": so only 0 and 1 leave here.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int main(int argc, char* argv[]) {
    return Catch::Session().run(argc, argv) == 0 ? 0 : 1;
}
