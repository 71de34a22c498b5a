"""`tenfold eval` and `tenfold explain`: what they compute, write and refuse."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tenfold.cli import compute
from tenfold.cli.main import program
from tenfold.io import archive

A = np.arange(1.0, 7.0).reshape(2, 3)
Command = Callable[..., object]


def test_the_example_of_the_readme(folder: Path, tenfold: Command) -> None:
    done = tenfold("eval", "sqrt(x**2 + y**2) / mean(x)", "x=a.npy", "y=b.npz:one", "-o", "out.npy")
    assert (done.code, done.out, done.err) == (0, "", "")
    np.testing.assert_allclose(np.load("out.npy"), np.sqrt(A**2 + (2 * A) ** 2) / A.mean())
    assert sorted(p.name for p in folder.iterdir()) == ["a.npy", "b.npz", "n.npy", "out.npy"]


def test_large_result_is_written_in_parts(
    folder: Path, tenfold: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PART_BYTES", "MIN_SOURCE_BYTES"):
        monkeypatch.setattr(compute, name, 1)
    monkeypatch.setattr(compute, "available_memory", lambda: 50)
    monkeypatch.setattr("tenfold.out_of_core.chunk_sources.TARGET_BYTES", 16)
    x = np.arange(30.0).reshape(10, 3)
    np.save("x.npy", x)
    done = tenfold("eval", "x - mean(x, axis=0)", "x=x.npy", "-o", "out.npy")
    assert (done.code, done.err) == (0, "")
    np.testing.assert_array_equal(np.load("out.npy"), x - x.mean(axis=0))
    assert tenfold("eval", "x.T", "x=x.npy", "-o", "columns.npy").code == 4


def test_several_results_share_names_and_become_an_archive(folder: Path, tenfold: Command) -> None:
    words = ["-e", "s=x + y", "-e", "d = s - 2*y", "x=a.npy", "y=b.npz:two"]
    assert tenfold("eval", *words, "-o", "both.npz").code == 0
    with np.load("both.npz") as found:
        assert list(found) == ["s", "d"]
        np.testing.assert_array_equal(found["s"], A + A * 3)
        np.testing.assert_array_equal(found["d"], A + A * 3 - 2 * (A * 3))
    assert tenfold("eval", *words, "-o", "again").code == 0
    assert Path("again.npz").exists()


def test_suffix_is_added_where_there_is_none(folder: Path, tenfold: Command) -> None:
    assert tenfold("eval", "x + 1", "x=a.npy", "-o", "out").code == 0
    np.testing.assert_array_equal(np.load("out.npy"), A + 1)


def test_one_result_in_an_archive_is_called_result(folder: Path, tenfold: Command) -> None:
    assert tenfold("eval", "x + 1", "x=a.npy", "-o", "out.npz").code == 0
    with np.load("out.npz") as found:
        np.testing.assert_array_equal(found["result"], A + 1)


def test_without_an_output_the_result_is_printed(folder: Path, tenfold: Command) -> None:
    assert tenfold("eval", "x * 2", "x=a.npy").out == "[[ 2.,  4.,  6.],\n [ 8., 10., 12.]]\n"
    assert tenfold("eval", "1 + 2").out == "3\n"
    assert tenfold("eval", "-e", "a=1", "-e", "b=a+1").out == "a = 1\nb = 2\n"


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128", "bool", "uint8"])
def test_dtype_converts_the_result(folder: Path, tenfold: Command, dtype: str) -> None:
    assert tenfold("eval", "x * 2", "x=a.npy", "--dtype", dtype, "-o", "out.npy").code == 0
    assert np.load("out.npy").dtype == dtype


def test_explain_is_printed_beside_the_result(folder: Path, tenfold: Command) -> None:
    done = tenfold("eval", "sqrt(x) * 2", "x=a.npy", "--explain", "-o", "out.npy")
    assert done.code == 0
    assert "sqrt" in done.out
    np.testing.assert_array_equal(np.load("out.npy"), np.sqrt(A) * 2)


def test_explain_shows_the_stages_and_writes_nothing(folder: Path, tenfold: Command) -> None:
    done = tenfold("explain", "sqrt(x) * 2", "x=a.npy")
    assert done.code == 0
    assert "sqrt" in done.out
    done = tenfold("explain", "sqrt(x) * 2", "x=a.npy", "--format", "dot")
    assert done.code == 0
    assert "digraph" in done.out
    assert sorted(p.name for p in folder.iterdir()) == ["a.npy", "b.npz", "n.npy"]


def test_explain_shows_one_stage_and_what_each_step_took(folder: Path, tenfold: Command) -> None:
    done = tenfold("explain", "sqrt(x) * 2", "x=a.npy", "--stage", "scheduled", "--analyze")
    assert done.code == 0
    assert done.out.startswith("scheduled: 1 kernel")
    assert "measured: " in done.out


def test_the_output_may_be_an_input(folder: Path, tenfold: Command) -> None:
    assert tenfold("eval", "x[::-1] + x", "x=a.npy", "-o", "a.npy").code == 0
    np.testing.assert_array_equal(np.load("a.npy"), A[::-1] + A)


def test_an_input_may_be_called_like_a_function(folder: Path, tenfold: Command) -> None:
    assert tenfold("eval", "sum(sum)", "sum=a.npy").out == "21.\n"


def test_expression_that_begins_with_a_minus(
    folder: Path, tenfold: Command, refused: Command
) -> None:
    assert "goes in parentheses" in str(refused(2, "eval", "-x", "x=a.npy"))
    assert tenfold("eval", "(-x)[0, 0]", "x=a.npy").out == "-1.\n"
    assert tenfold("eval", "--", "-x[0, 0]", "x=a.npy").out == "-1.\n"
    assert tenfold("eval", "-e", "y=-x[0, 0]", "x=a.npy").out == "y = -1.\n"


def test_unaligned_and_deep_inputs_are_computed(folder: Path, tenfold: Command) -> None:
    np.save("deep.npy", np.ones((1,) * 20))
    assert tenfold("eval", "sum(x)", "x=deep.npy").out == "1.\n"
    np.save("empty.npy", np.ones((0, 3)))
    assert tenfold("eval", "x + 1", "x=empty.npy", "-o", "out.npy").code == 0
    assert np.load("out.npy").shape == (0, 3)


USAGE = [
    (["eval"], "no expression was given"),
    (["eval", "x"], "unknown name 'x'; the inputs are: none"),
    (["eval", "x", "a.npy"], "'a.npy' is not NAME=FILE"),
    (["eval", "x", "1x=a.npy"], "is not NAME=FILE"),
    (["eval", "x", "_x=a.npy"], "is not NAME=FILE"),
    (["eval", "x", "lambda=a.npy"], "is not NAME=FILE"),
    (["eval", "x", "x="], "nothing stands after x="),
    (["eval", "x", "x=a.npy", "x=n.npy"], "the name x is given twice"),
    (["eval", "-e", "x=1", "-e", "x=2"], "the name x is given twice"),
    (["eval", "-e", "x=1", "x=a.npy"], "the name x is given twice"),
    (["eval", "-e", "x + 1", "x=a.npy"], "is not NAME=EXPR"),
    (["eval", "x + 1", "x=a.npy", "-o", "out.txt"], "ends with .txt; it must be .npy or .npz"),
    (["eval", "-e", "a=1", "-e", "b=2", "-o", "o.npy"], "holds one array, not 2"),
    (["eval", "x", "x=a.npy", "--dtype", "float23"], "unknown dtype 'float23'"),
    (["eval", "x", "x=a.npy", "--nonsense"], "No such option"),
    (["eval", "x", "x=a.npy", "-o"], "requires an argument"),
    (["eval", "x.__class__", "x=a.npy"], "names beginning with _"),
    (["eval", "__import__('os')", "x=a.npy"], "names beginning with _"),
    (["eval", "9**9**9**9"], "64 bits"),
    (["eval", "x and x", "x=a.npy"], "use & and |"),
    (["eval", "x +", "x=a.npy"], "invalid syntax"),
    (["eval", ""], "it is empty"),
    (["eval", "x" * 20_000], "20,000 characters"),
    (["eval", "(" * 500 + "1" + ")" * 500], "expression"),
    (["eval", "linalg.svd(x)", "x=a.npy"], "pick one, as in svd(x)[0]"),
    (["eval", "x.shape", "x=a.npy"], "result: gives 2 values"),
    (["eval", "x.dtype", "x=a.npy"], "not an array"),
    (["eval", "float32"], "not an array"),
    (["eval", "sqrrt(x)", "x=a.npy"], "did you mean sqrt?"),
    (["explain"], "no expression was given"),
    (["explain", "x", "x=a.npy", "--format", "html"], "html"),
    (["explain", "x", "x=a.npy", "--stage", "nonsense"], "nonsense"),
    (["nonsense"], "No such command"),
    (["--nonsense"], "No such option"),
]


@pytest.mark.parametrize(("words", "reason"), USAGE, ids=lambda value: str(value)[:50])
def test_wrong_command_line_is_one_line_and_code_2(
    folder: Path, refused: Command, words: list[str], reason: str
) -> None:
    assert reason in str(refused(2, *words))
    assert sorted(p.name for p in folder.iterdir()) == ["a.npy", "b.npz", "n.npy"]


def damage(folder: Path) -> None:
    """Files that are wrong in each way."""
    (folder / "empty.npy").write_bytes(b"")
    (folder / "text.npy").write_text("1 2 3")
    (folder / "pickle.npy").write_bytes(pickle.dumps(A))
    np.save(folder / "objects.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    whole = (folder / "a.npy").read_bytes()
    (folder / "short.npy").write_bytes(whole[:-1])
    (folder / "lying.npy").write_bytes(whole.replace(b"(2, 3)", b"(2, 9)"))
    (folder / "huge.npy").write_bytes(whole.replace(b"(2, 3), }        ", b"(2, 30000000000)}"))
    (folder / "cut.npz").write_bytes((folder / "b.npz").read_bytes()[:-40])
    np.save(folder / "text_array.npy", np.array(["a", "b"]))


INPUT = [
    ("missing.npy", "cannot be read: No such file or directory"),
    (".", "not a regular file"),
    ("empty.npy", "the file is empty"),
    ("text.npy", "neither a .npy nor a .npz file"),
    ("pickle.npy", "a pickle, which is never loaded"),
    ("objects.npy", "holds Python objects (a pickle)"),
    ("short.npy", "truncated"),
    ("lying.npy", "truncated: float64 of shape (2, 9) is 144 bytes, the file holds 48"),
    ("huge.npy", "truncated: float64 of shape (2, 30000000000) is 480,000,000,000 bytes"),
    ("cut.npz:one", "damaged archive"),
    ("text_array.npy", "is not one of ours"),
    ("b.npz", "holds several arrays; name one, as in b.npz:one"),
    ("b.npz:three", "has no array named 'three'; there are: one, two"),
    ("a.npy:one", "holds one array without a key"),
]


@pytest.mark.parametrize(("file", "reason"), INPUT, ids=lambda value: value[:30])
def test_unusable_input_is_one_line_and_code_3(
    folder: Path, refused: Command, file: str, reason: str
) -> None:
    damage(folder)
    (folder / "out.npy").write_bytes(b"old")
    assert reason in str(refused(3, "eval", "x + 1", f"x={file}", "-o", "out.npy"))
    assert (folder / "out.npy").read_bytes() == b"old"


def test_bomb_is_code_3(folder: Path, refused: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed("bomb.npz", zeros=np.zeros(1 << 20))
    monkeypatch.setattr(archive, "available_memory", lambda: 1 << 20)
    assert "would unpack to 8,388," in str(refused(3, "eval", "x", "x=bomb.npz"))


FAILED = [
    ("x + n[:2]", "column 1, operator +: ShapeError: add: shapes"),
    ("x @ x", "column 1, operator @: ShapeError"),
    ("x & 1", "column 1, operator &: DTypeError"),
    ("x[7]", "column 1, subscript: IndexError"),
    ("sum(x, axis=5)", "column 1, sum:"),
    ("reshape(x, (4, 4))", "column 1, reshape: ShapeError"),
    ("n ** -1", "column 1, operator **: ValueError"),
    ("astype(n, uint8) + 300", "OverflowError"),
    ("max(x[:0])", "column 1, max:"),
    ("linalg.inv(x)", "column 1, linalg.inv:"),
    ("linalg.inv(zeros((2, 2)))", "inv: Singular matrix"),
    ("1 / 0", "ZeroDivisionError"),
    ("zeros((1000000, 1000000, 10))", "bytes, more than"),
    ("zeros(10**12)", "bytes, more than"),
    ("arange(10**13)", "bytes, more than"),
    ("ones((2**40, 2**40))", "ones"),
    ("repeat(x, 10**13)", "bytes, more than"),
    ("sin(x, x, x)", "column 1, sin: TypeError"),
]


@pytest.mark.parametrize(("text", "reason"), FAILED, ids=lambda value: value[:30])
def test_failed_computation_is_one_line_and_code_4(
    folder: Path, refused: Command, text: str, reason: str
) -> None:
    (folder / "out.npy").write_bytes(b"old")
    message = str(refused(4, "eval", text, "x=a.npy", "n=n.npy", "-o", "out.npy"))
    assert reason in message
    assert "written at" not in message
    assert (folder / "out.npy").read_bytes() == b"old"


@pytest.mark.parametrize("text", ["n ** (-n)", "linalg.inv(zeros((2, 2)))", "take(x, n, axis=0)"])
def test_failure_while_measuring_is_one_line_and_code_4(
    folder: Path, refused: Command, text: str
) -> None:
    message = str(refused(4, "explain", text, "x=a.npy", "n=n.npy", "--analyze"))
    assert "Error: " in message
    assert "written at" not in message


def test_results_larger_than_memory_are_refused(
    folder: Path, refused: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compute, "available_memory", lambda: 50)
    assert "the results have 96 bytes" in str(
        refused(4, "eval", "-e", "a=x+1", "-e", "b=x+2", "x=a.npy")
    )


def test_running_out_of_memory_is_code_4(
    folder: Path, refused: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*names: object) -> None:
        raise MemoryError("8 bytes")

    monkeypatch.setattr(compute.tn, "eval", exhausted)
    assert "not enough memory: 8 bytes" in str(refused(4, "eval", "x", "x=a.npy"))


def test_defect_of_tenfold_is_one_line_and_code_1(
    folder: Path, refused: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*names: object) -> None:
        raise AssertionError("impossible\nreally")

    monkeypatch.setattr(compute.tn, "eval", broken)
    message = str(refused(1, "eval", "x", "x=a.npy"))
    assert (
        "a defect of tenfold itself: AssertionError: impossible; really; please report" in message
    )


def test_defect_is_shown_whole_when_debugging(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*names: object) -> None:
        raise AssertionError("impossible")

    monkeypatch.setattr(compute.tn, "eval", broken)
    monkeypatch.setenv("TENFOLD_DEBUG", "1")
    result = CliRunner().invoke(program, ["eval", "x", "x=a.npy"])
    assert isinstance(result.exception, AssertionError)


def test_interrupt_is_one_line_and_code_130(
    folder: Path, refused: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*names: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compute.tn, "eval", interrupted)
    assert "interrupted" in str(refused(130, "eval", "x", "x=a.npy", "-o", "out.npy"))


def test_unwritable_output_is_code_5_before_anything_is_read(
    folder: Path, refused: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("folder.npy").mkdir()
    Path("device.npy").symlink_to("/dev/null")

    def read(*names: object) -> None:
        pytest.fail("read before the output was checked")

    monkeypatch.setattr(compute, "read_array", read)
    for output, reason in (
        ("missing/out.npy", "directory does not exist"),
        ("folder.npy", "not a regular file"),
        ("device.npy", "not a regular file"),
        ("a.npy/out.npy", "directory does not exist"),
        ("x" * 300 + ".npy", "File name too long"),
    ):
        assert reason in str(refused(5, "eval", "x + 1", "x=a.npy", "-o", output))


def test_result_without_a_name_in_files_is_code_5(folder: Path, refused: Command) -> None:
    words = ["eval", "x", "x=a.npy", "--dtype", "bfloat16", "-o", "out.npy"]
    assert "bfloat16, which .npy files have no name for" in str(refused(5, *words))
    assert not Path("out.npy").exists()


@pytest.mark.parametrize(
    "expression",
    [
        "unstack(arange(10**7))",
        "unstack(zeros((2, 10**7)), axis=-1)",
        "split(arange(10**7), 10**7)",
    ],
)
def test_results_without_number_are_refused_before_they_are_made(
    refused: Command, expression: str
) -> None:
    assert "gives more than 10,000 arrays" in str(refused(4, "eval", expression))


def test_few_results_of_a_long_array_are_given(tenfold: Command) -> None:
    done = tenfold("eval", "unstack(zeros((10**6, 2)), axis=1)[0].shape[0] + 0")
    assert (done.code, done.out) == (0, "1000000\n")


def test_an_output_without_a_name_is_a_wrong_command_line(refused: Command) -> None:
    assert "-o names no file" in str(refused(2, "eval", "arange(3)", "-o", ""))
