#!/usr/bin/env bash
# Installs a wheel into a fresh virtual environment, from the wheels of a folder alone, and runs
# `tenfold demo` and tests/tiny there with an empty PATH: no compiler, no git, no package index.
#   tools/check_wheel.sh dist/tenfold-*-cp311-*.whl python3.11 build/wheel/links build/wheel/source
set -euo pipefail

if [ $# -ne 4 ] || [ ! -f "$1" ]; then
    echo "usage: tools/check_wheel.sh WHEEL PYTHON LINKS SOURCE" >&2
    exit 2
fi
wheel=$(realpath "$1")
source=$(realpath "$4")

place=$(mktemp -d /tmp/tenfold-wheel.XXXXXX)
trap 'rm -rf "$place"' EXIT

"$2" -m venv "$place/venv"
python="$place/venv/bin/python"
"$python" -m pip install --quiet --no-index --find-links "$3" "$wheel" pytest pytest-xdist hypothesis
mkdir "$place/home"
cd "$place/home"
env -i PATH= HOME="$place/home" "$place/venv/bin/tenfold" demo
level="import re; from tenfold import _native
words = re.search('flags.*', open('/proc/cpuinfo').read())[0].split()
expected = 4 if 'avx512vl' in words else 3 if 'avx2' in words else 2
assert _native.processor_level() == expected, (_native.processor_level(), expected)"
env -i PATH= HOME="$place/home" "$python" -c "$level" # a build may detect x86-64 alone
cd "$source"
env -i PATH= HOME="$place/home" "$python" -m pytest --numprocesses=0 -p no:cacheprovider tests/tiny
echo "check_wheel: $(basename "$wheel") runs its demo and tests/tiny with an empty PATH"
