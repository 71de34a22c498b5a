"""The snippets of `docs/how-to/files.md` that need another library, and the traps they avoid."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "files.md"
BLOCKS = [
    block
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    if not block.startswith(">>>")
]
LIBRARIES = ["zarr", "h5py", "safetensors"]


def test_page_has_a_snippet_for_each_library() -> None:
    assert len(BLOCKS) == len(LIBRARIES)


@pytest.mark.parametrize("name", LIBRARIES)
def test_snippet_of_the_page_runs(name: str, tmp_path: Path) -> None:
    pytest.importorskip(name)
    (block,) = [block for block in BLOCKS if re.search(rf"^(import|from) {name}", block, re.M)]
    x = tn.reshape(tn.arange(6.0), (2, 3)) * 2
    half = tn.asarray([0.1, 2.0], dtype=tn.bfloat16)
    exec(block, {"np": np, "tn": tn, "path": tmp_path, "x": x, "half": half})


def test_safetensors_takes_every_layout_in_c_order(tmp_path: Path) -> None:
    files = pytest.importorskip("safetensors.numpy")
    x = tn.asarray(np.arange(12.0).reshape(3, 4))
    views = {
        "T": x.T,
        "step": x[:, ::2],
        "row": x[1],
        "back": x[::-1],
        "one": x[0, 0],
        "sum": x + 1,
    }
    files.save_file({k: np.asarray(v, order="C") for k, v in views.items()}, tmp_path / "x")
    found = files.load_file(tmp_path / "x")
    assert {k: v.tolist() for k, v in found.items()} == {k: v.tolist() for k, v in views.items()}


def test_safetensors_is_told_what_to_pass(tmp_path: Path) -> None:
    files = pytest.importorskip("safetensors.numpy")
    with pytest.raises(AttributeError, match=r"use np.asarray\(x, order='C'\)"):
        files.save_file({"x": tn.ones((2, 3)).T}, tmp_path / "x")


def test_memory_maps_are_read_and_written_without_a_copy(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(2, 3))
    x = tn.asarray(np.load(tmp_path / "x.npy", mmap_mode="r"))
    out = np.lib.format.open_memmap(tmp_path / "out.npy", mode="w+", dtype=np.float64, shape=(2, 3))
    with tn.profile() as p:
        tn.wrap(out)[...] = x * 2
    assert p.copies == 0
    out.flush()
    assert np.load(tmp_path / "out.npy").tolist() == [[0, 2, 4], [6, 8, 10]]
