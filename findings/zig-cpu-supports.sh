#!/usr/bin/env bash
# A C program that Zig links is told by __builtin_cpu_supports that the processor has nothing.
#
# Seen with ziglang 0.17.1 of PyPI (Clang 22), CPython 3.11 on Linux x86-64, a processor with AVX-512:
#
#   After __builtin_cpu_init(), __builtin_cpu_supports answers 0 for "sse2", "sse4.2", "avx2" and for
#   the levels "x86-64-v2" and "x86-64-v3", in a Debug and in a release build, and whatever glibc -target
#   names. Nothing warns. GCC and Clang with their own runtimes answer 1. So a library that chooses its
#   loops by these words is right, and slow, once Zig has linked it. ziglang 0.13 to 0.16 refuse the
#   same program: __cpu_indicator_init, __cpu_model and __cpu_features2 are undefined symbols.
#
# The output seen, line by line:
#
#   ziglang 0.17.1
#   /proc/cpuinfo has sse4_2: 1
#   sse2 0, sse4.2 0, avx2 0, x86-64-v2 0, x86-64-v3 0
#   as described
#
# What to write instead: the bits of `cpuid` and `xgetbv`, by <cpuid.h>, which Zig has.
#
# Exit status: 0 if Zig behaves so; 1 if it does not any more; 2 if the packages cannot be had.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
    ziglang==0.17.1 || exit 2

cat >"$place/asks.c" <<'PROGRAM'
#include <stdio.h>

int main(void) {
    __builtin_cpu_init();
    printf("sse2 %d, sse4.2 %d, avx2 %d, x86-64-v2 %d, x86-64-v3 %d\n",
           !!__builtin_cpu_supports("sse2"), !!__builtin_cpu_supports("sse4.2"),
           !!__builtin_cpu_supports("avx2"), !!__builtin_cpu_supports("x86-64-v2"),
           !!__builtin_cpu_supports("x86-64-v3"));
    return 0;
}
PROGRAM
export ZIG_GLOBAL_CACHE_DIR="$place/global" ZIG_LOCAL_CACHE_DIR="$place/local"
"$place/venv/bin/python" -m ziglang cc -O1 "$place/asks.c" -o "$place/asks"
echo "ziglang $("$place/venv/bin/python" -m ziglang version)"
echo "/proc/cpuinfo has sse4_2: $(grep -c -m 1 -w sse4_2 /proc/cpuinfo || true)"
said=$("$place/asks")
echo "$said"
if [ "$said" = "sse2 0, sse4.2 0, avx2 0, x86-64-v2 0, x86-64-v3 0" ]; then
    echo "as described"
else
    echo "changed"
    exit 1
fi
