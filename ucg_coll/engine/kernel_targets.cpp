// Answers here what Highway's headers ask libhwy.so about the processor. Nothing else of that
// library is used, and loading it calibrates its timers, which takes some 4 ms at the start of
// every program. A target that the compiler can build for but that is not known here is not chosen.
#include <hwy/targets.h>

namespace hwy {
namespace {

#if HWY_ARCH_X86
// Each of these functions returns whether the processor has all instructions that a kernel for the
// target may use, as Highway defines the target.

bool has_ssse3() {
    return __builtin_cpu_supports("ssse3") != 0;
}

bool has_sse4() {
    return has_ssse3() && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
           __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
}

/// Kernels for AVX2 may also use lzcnt and f16c, which clang 14 cannot ask for: every processor
/// with AVX2 and BMI2 has them.
bool has_avx2() {
    return has_sse4() && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}

bool has_avx3() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512cd");
}

int64_t detect() {
    __builtin_cpu_init();
    int64_t targets = HWY_STATIC_TARGET;
    targets |= has_ssse3() ? HWY_SSSE3 : 0;
    targets |= has_sse4() ? HWY_SSE4 : 0;
    targets |= has_avx2() ? HWY_AVX2 : 0;
    targets |= has_avx3() ? HWY_AVX3 : 0;
    return targets;
}
#else
int64_t detect() {
    return HWY_STATIC_TARGET;
}
#endif

int64_t pretended = 0; // Targets that a test pretends to find; 0: none pretended.

} // namespace

int64_t SupportedTargets() {
    return pretended != 0 ? pretended : detect() & HWY_TARGETS;
}

void SetSupportedTargetsForTest(int64_t targets) {
    pretended = targets;
    GetChosenTarget().DeInit();
}

ChosenTarget& GetChosenTarget() {
    static ChosenTarget chosen;
    return chosen;
}

} // namespace hwy
