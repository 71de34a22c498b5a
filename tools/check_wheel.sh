#!/usr/bin/env bash
# Installs a wheel into a fresh virtual environment and runs `tenfold demo` there with an empty
# PATH: no compiler, no git, nothing of this checkout.
#   tools/check_wheel.sh dist/tenfold-0.1.0-cp311-cp311-manylinux_2_34_x86_64.whl [python]
set -euo pipefail

if [ $# -lt 1 ] || [ ! -f "$1" ]; then
    echo "usage: tools/check_wheel.sh WHEEL [PYTHON]" >&2
    exit 2
fi
wheel=$(realpath "$1")
python=${2:-python3}

place=$(mktemp -d /tmp/tenfold-wheel.XXXXXX)
trap 'rm -rf "$place"' EXIT

"$python" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --only-binary :all: "$wheel"
mkdir "$place/home"
cd "$place/home"
env -i PATH= HOME="$place/home" "$place/venv/bin/tenfold" demo
echo "check_wheel: $(basename "$wheel") runs its demo with an empty PATH"
