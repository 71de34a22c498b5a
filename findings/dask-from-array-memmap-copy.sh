#!/usr/bin/env bash
# dask.array.from_array copies a whole memory map into anonymous memory, before anything is computed.
#
# Seen with Dask 2026.8.0, NumPy 2.4.6, CPython 3.11 on Linux x86-64:
#
#   from_array calls x.copy() for whatever has a `copy` and looks like an array, so that a later
#   assignment to x does not change the Dask array. Of numpy.load(path, mmap_mode="r"), which is
#   read-only and cannot be assigned to, all elements are read and copied: a graph of a file of
#   240 MB takes 240 MB, and a file larger than memory cannot be opened so. Neither chunks=, name=
#   nor asarray=False change that. The chunks of the graph are parts of the copy, so a graph of
#   process schedulers is pickled with all elements, too.
#
# The output seen, line by line (megabytes of anonymous memory after the graph is made):
#
#   dask 2026.8.0, numpy 2.4.6
#   from_array(memory map): 240
#   from_array(memory map, name=, asarray=False): 240
#   from_array(an object with the same shape, dtype and slices): 0
#   sum of its first chunk: 1000000.0
#   as described
#
# What to write instead: tn.to_dask(memory_map), or an object of your own with shape, dtype, ndim and
# __getitem__, without `copy`, which maps the file where it is read.
#
# Exit status: 0 if Dask behaves so; 1 if it does not any more; 2 if the packages cannot be had.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
    'dask[array]==2026.8.0' numpy==2.4.6 || exit 2

"$place/venv/bin/python" -W ignore - "$place/x.npy" <<'PROGRAM'
import re
import sys
from pathlib import Path

import dask
import dask.array as da
import numpy as np

print(f"dask {dask.__version__}, numpy {np.__version__}")
path, elements, changed = sys.argv[1], 30_000_000, []
written = np.lib.format.open_memmap(path, "w+", np.float64, (elements,))
written[:] = 1
del written


def anonymous_megabytes():
    """Return the anonymous memory of this process."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"RssAnon:\s*(\d+)", status)[1]) * 1024 / 1e6


def megabytes_of(make):
    """Return the memory that a graph takes, and the graph."""
    before = anonymous_megabytes()
    graph = make()
    return round(anonymous_megabytes() - before), graph


class Slices:
    """A memory map without `copy`."""

    def __init__(self, mapped):
        self.mapped, self.shape, self.dtype = mapped, mapped.shape, mapped.dtype
        self.ndim = mapped.ndim

    def __getitem__(self, key):
        return np.asarray(self.mapped[key])


x = np.load(path, mmap_mode="r")
assert not x.flags.writeable
kept = []  # so that no memory is used again
for text, copies, make in (
    ("memory map", True, lambda: da.from_array(x, chunks=1_000_000)),
    (
        "memory map, name=, asarray=False",
        True,
        lambda: da.from_array(x, chunks=1_000_000, name="x", asarray=False),
    ),
    (
        "an object with the same shape, dtype and slices",
        False,
        lambda: da.from_array(Slices(x), chunks=1_000_000, name="y"),
    ),
):
    taken, graph = megabytes_of(make)
    kept.append(graph)
    print(f"from_array({text}): {taken}")
    if (taken > 200) != copies or (not copies and taken > 5):
        changed.append(text)
print(f"sum of its first chunk: {graph.blocks[0].sum().compute(scheduler='sync')}")
print(f"changed: {', '.join(changed)}" if changed else "as described")
sys.exit(bool(changed))
PROGRAM
