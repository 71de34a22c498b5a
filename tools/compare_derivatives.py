"""Compares derivatives at kinks and degenerate points with those of other libraries, as observed.

Takes the points of `points` below and the pinned packages of PEERS. Makes a virtual environment for
each peer in a temporary folder, runs this file there, and writes the table of the results between
the markers of docs/derivatives.md. Nothing is typed by hand; where a package cannot be installed or
a library lacks an operation, the table says so. It downloads about 1 GB, so CI does not run it.

    python tools/compare_derivatives.py            write the table
    python tools/compare_derivatives.py --ours     write the column of Tenfold alone, without peers
    python tools/compare_derivatives.py --rows jax print the rows of one library as JSON, here
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from functools import partial
from importlib import import_module as load
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "derivatives.md"
BEGIN, END = "<!-- table of tools/compare_derivatives.py -->", "<!-- end of the table -->"
PEERS: dict[str, tuple[str, ...]] = {
    "jax": ("jax==0.10.2", "jaxlib==0.10.2"),
    "torch": ("torch==2.13.0", "numpy==2.4.6"),
    "autograd": ("autograd==1.9.1", "scipy==1.17.1"),
    "pytensor": ("pytensor==3.0.7",),
    "mlx": ("mlx[cpu]==0.32.4",),
    "casadi": ("casadi==3.8.2",),
}
"""The pinned packages of a peer; the first is the library."""
INF = float("inf")


def points(m: Any) -> dict[str, Callable[[], Any]]:
    """The points: a title, and the derivative there in a library `m`."""
    g = partial(partial, m.grad)
    return {
        "`abs(x)`, x = 0": g(lambda x: m.abs(x), 0.0),
        "`sign(x)`, x = 0": g(lambda x: m.sign(x), 0.0),
        "`relu(x)`, x = 0": g(lambda x: m.relu(x), 0.0),
        "`maximum(x, 1)`, x = 1": g(lambda x: m.maximum(x, m.array(1.0)), 1.0),
        "`max(x)`, x = [2, 2]": g(lambda x: m.max(x), [2.0, 2.0]),
        "`max(x)`, x = [2, 2, 2]": g(lambda x: m.max(x), [2.0] * 3),
        "`clip(x, -1, 1)`, x = 1": g(lambda x: m.clip(x, -1.0, 1.0), 1.0),
        "`clip(x, lower, upper)`, arrays": g(lambda x: m.clip(x, m.array(-1.0), m.array(1.0)), 1.0),
        "`x**0`, x = 0": g(lambda x: x**0, 0.0),
        "`x**y` by x, x = 0, array y = 0": g(lambda x: m.power(x, m.array(0.0)), 0.0),
        "`0**x`, x = 2": g(lambda x: m.power(m.array(0.0), x), 2.0),
        "`norm(x)`, x = [0, 0]": g(lambda x: m.norm(x), [0.0, 0.0]),
        "`hypot(x, y)`, [0, 0]": g(lambda x: m.hypot(x[0], x[1]), [0.0, 0.0]),
        "`atan2(x, y)`, [0, 0]": g(lambda x: m.atan2(x[0], x[1]), [0.0, 0.0]),
        "`where(x > 0, sqrt(x), 0)`, x = 0": g(lambda x: m.where(x > 0, m.sqrt(x), 0.0 * x), 0.0),
        "`hypot(x, 1)`, second, x = 1": partial(m.second, lambda x: m.hypot(x, m.array(1.0)), 1.0),
        "`sinc(x)`, second, x = 0": partial(m.second, lambda x: m.sinc(x), 0.0),
        "`det`, [[1, 2], [2, 4]]": g(lambda x: m.det(x), [[1.0, 2.0], [2.0, 4.0]]),
        "`det`, ones of 3 x 3": g(lambda x: m.det(x), [[1.0] * 3] * 3),
        "`prod(x)`, x = [0, 2, 3]": g(lambda x: m.prod(x), [0.0, 2.0, 3.0]),
        "`prod(x)`, x = [0, 0, 3]": g(lambda x: m.prod(x), [0.0, 0.0, 3.0]),
        "`sum(cumprod(x))`, [0, 2, 3]": g(lambda x: m.sum(m.cumprod(x)), [0.0, 2.0, 3.0]),
        "`std(x)`, x = [1, 1]": g(lambda x: m.std(x), [1.0, 1.0]),
        "`logsumexp(x)`, [-inf, -inf]": g(lambda x: m.logsumexp(x), [-INF, -INF]),
        "`k * k / 2`, integer k = 3": g(lambda k: k * k / 2, 3),
        "`sort(x)[0]`, x = [1, 1]": g(lambda x: m.sort(x)[0], [1.0, 1.0]),
        "`median(x)`, x = [1, 2, 3]": g(lambda x: m.median(x), [1.0, 2.0, 3.0]),
        "`median(x)`, x = [1, 2, 3, 4]": g(lambda x: m.median(x), [1.0, 2.0, 3.0, 4.0]),
        "`sum(eigvalsh(x))`, identity": g(lambda x: m.sum(m.eigvalsh(x)), [[1.0, 0.0], [0.0, 1.0]]),
        "`sum(svdvals(x))`, identity": g(lambda x: m.sum(m.svdvals(x)), [[1.0, 0.0], [0.0, 1.0]]),
        "`cholesky(x)[1, 0]`, [[1, 0], [0, 1]]": g(
            lambda x: m.cholesky(x)[1, 0], [[1.0, 0.0], [0.0, 1.0]]
        ),
        "`abs(z)**2`, z = 1 + 2i": g(lambda z: m.abs(z) ** 2, 1 + 2j),
        "`floor(x)`, x = 1.5": g(lambda x: m.floor(x), 1.5),
        "`round(x)`, x = 1.2": g(lambda x: m.round(x), 1.2),
        "`arccos(x)`, x = 1": g(lambda x: m.arccos(x), 1.0),
    }


ALIASES = {"arccos": "acos", "cumprod": "cumulative_prod", "power": "pow", "atan2": "arctan2"}
"""Other names of functions."""


def library(*modules: Any, **functions: Any) -> SimpleNamespace:
    """The functions of a library by name: those given, else those of its modules."""
    m = SimpleNamespace()
    for module in reversed(modules):
        vars(m).update({name: getattr(module, name) for name in dir(module)})
    for name, other in ALIASES.items():
        if not hasattr(m, name) and hasattr(m, other):
            setattr(m, name, getattr(m, other))
    vars(m).update(functions)
    return m


def functional(grad: Any, array: Any) -> dict[str, Any]:
    """The derivatives of a library whose `grad` takes and returns functions."""

    def derivative(f: Any, x: Any, order: int) -> Any:
        for _ in range(order):
            f = grad(f)
        return f(array(x)).tolist()

    return {
        "array": array,
        "grad": partial(derivative, order=1),
        "second": partial(derivative, order=2),
    }


def symbolic(variable: Any, grad: Any, value: Any) -> dict[str, Any]:
    """The derivatives of a library of expressions: of a variable like x, and their values at x."""

    def derivative(f: Any, x: Any, order: int) -> Any:
        symbol = variable(x)
        y = f(symbol)
        for _ in range(order):
            y = grad(y, symbol)
        return value(symbol, y, x).tolist()

    return {"grad": partial(derivative, order=1), "second": partial(derivative, order=2)}


def _tenfold() -> SimpleNamespace:
    tn, tnp = load("tenfold"), load("tenfold.numpy")
    return library(tn, tnp, tn.linalg, **functional(tn.grad, tn.asarray))


def _jax() -> SimpleNamespace:
    jax, jnp, nn = load("jax"), load("jax.numpy"), load("jax.nn")
    jax.config.update("jax_enable_x64", True)
    return library(
        *(jnp, jnp.linalg),
        relu=nn.relu,
        logsumexp=nn.logsumexp,
        svdvals=lambda x: jnp.linalg.svd(x, compute_uv=False),
        **functional(jax.grad, jnp.asarray),
    )


def _torch() -> SimpleNamespace:
    torch = load("torch")
    torch.set_default_dtype(torch.float64)

    def derivative(f: Any, x: Any, order: int) -> Any:
        x = torch.tensor(x, requires_grad=True)
        y = f(x)
        for left in reversed(range(order)):
            (y,) = torch.autograd.grad(y, x, create_graph=left > 0)
        return y.tolist()

    return library(
        *(torch, torch.linalg),
        array=torch.tensor,
        grad=partial(derivative, order=1),
        second=partial(derivative, order=2),
        std=lambda x: torch.std(x, correction=0),
        cumprod=lambda x: torch.cumprod(x, 0),
        logsumexp=lambda x: torch.logsumexp(x, 0),
        sort=lambda x: torch.sort(x).values,
    )


def _autograd() -> SimpleNamespace:
    ag, np, special = load("autograd"), load("autograd.numpy"), load("autograd.scipy.special")
    return library(
        *(np, np.linalg),
        relu=lambda x: np.maximum(x, 0.0),
        logsumexp=special.logsumexp,
        eigvalsh=lambda x: np.linalg.eigh(x)[0],
        svdvals=lambda x: np.linalg.svd(x, compute_uv=False),
        **functional(ag.grad, np.array),
    )


def _pytensor() -> SimpleNamespace:
    pytensor, pt, np = load("pytensor"), load("pytensor.tensor"), load("numpy")
    derivatives = symbolic(
        lambda x: pt.tensor("x", shape=np.shape(x), dtype=str(np.asarray(x).dtype)),
        pytensor.grad,
        lambda symbol, y, x: pytensor.function([symbol], y)(np.asarray(x)),
    )
    return library(
        *(pt, pt.linalg),
        array=pt.as_tensor,
        where=pt.switch,
        relu=lambda x: pt.maximum(x, 0.0),
        eigvalsh=lambda x: pt.linalg.eigh(x)[0],
        svdvals=lambda x: pt.linalg.svd(x, compute_uv=False),
        **derivatives,
    )


def _mlx() -> SimpleNamespace:
    mx, nn = load("mlx.core"), load("mlx.nn")
    mx.set_default_device(mx.cpu)
    svdvals = partial(mx.linalg.svd, compute_uv=False)
    return library(mx, mx.linalg, relu=nn.relu, svdvals=svdvals, **functional(mx.grad, mx.array))


def _casadi() -> SimpleNamespace:
    ca, np = load("casadi"), load("numpy")
    derivatives = symbolic(
        lambda x: ca.MX.sym("x", *np.shape(x)),
        ca.gradient,
        lambda symbol, y, x: np.reshape(
            ca.Function("f", [symbol], [y])(np.asarray(x)), np.shape(x)
        ),
    )
    return library(
        ca,
        array=ca.MX,
        abs=ca.fabs,
        maximum=ca.fmax,
        relu=lambda x: ca.fmax(x, 0.0),
        max=ca.mmax,
        norm=ca.norm_2,
        where=ca.if_else,
        cholesky=lambda x: ca.chol(x).T,
        **derivatives,
    )


LIBRARIES: dict[str, tuple[str, Callable[[], SimpleNamespace]]] = {
    "tenfold": ("Tenfold", _tenfold),
    "jax": ("JAX", _jax),
    "torch": ("PyTorch", _torch),
    "autograd": ("autograd", _autograd),
    "pytensor": ("PyTensor", _pytensor),
    "mlx": ("MLX", _mlx),
    "casadi": ("CasADi", _casadi),
}


def text(value: Any) -> str:
    """A number, or a nested list of them, in four digits."""
    if isinstance(value, list):
        return f"[{', '.join(map(text, value))}]"
    if isinstance(value, complex):
        return f"{value.real:.4g}{value.imag:+.4g}i"
    return f"{value + 0.0:.4g}"


def rows_of(name: str) -> dict[str, str]:
    """The derivative of a library at each point, as text; an error by its class."""
    found = {}
    for title, derivative in points(LIBRARIES[name][1]()).items():
        try:
            found[title] = text(derivative())
        except AttributeError:
            found[title] = "no such function"
        except Exception as error:  # noqa: BLE001  # what the library does there is the answer
            found[title] = type(error).__name__
    return found


def rows_of_peer(name: str, folder: Path) -> tuple[str, dict[str, str]]:
    """The version of a peer, and its rows, in an environment of its own."""
    place, packages = folder / name, PEERS[name]
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, *packages], check=False).returncode:
        return "not installed", {}
    program = [str(python), "-W", "ignore", __file__, "--rows", name]
    out = subprocess.run(program, check=True, capture_output=True, text=True, cwd=folder).stdout
    version, rows = json.loads(out.splitlines()[-1])
    return version.partition("+")[0], rows


def table(columns: dict[str, tuple[str, dict[str, str]]]) -> str:
    """The table in Markdown; points at which all agree are in it, too."""
    titles = list(columns["tenfold"][1])
    heads = [f"{LIBRARIES[name][0]} {version}".strip() for name, (version, _) in columns.items()]
    lines = [f"| Derivative of | {' | '.join(heads)} |", f"|{'---|' * (len(heads) + 1)}"]
    for title in titles:
        cells = [rows.get(title, "not installed") for _, rows in columns.values()]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def with_our_column(lines: str) -> str:
    """The same table with the rows of Tenfold as they are now; its points are those of before."""
    ours, cells = rows_of("tenfold"), [line.split(" | ") for line in lines.strip().splitlines()]
    for row in cells[2:]:
        row[1] = ours[row[0].removeprefix("| ")]
    return "\n".join(map(" | ".join, cells))


def main(arguments: list[str]) -> int:
    """Write the table, or print the rows of one library."""
    if arguments[:1] == ["--rows"]:
        version = "" if arguments[1] == "tenfold" else importlib.metadata.version(arguments[1])
        print(json.dumps([version, rows_of(arguments[1])]))
        return 0
    before, rest = PAGE.read_text().split(BEGIN)
    old, after = rest.split(END)
    if arguments == ["--ours"]:
        new = with_our_column(old)
    else:
        columns = {"tenfold": ("", rows_of("tenfold"))}
        with tempfile.TemporaryDirectory() as folder:
            for name in PEERS:
                columns[name] = rows_of_peer(name, Path(folder))
                print(name, columns[name][0])
        new = table(columns)
    PAGE.write_text(f"{before}{BEGIN}\n\n{new}\n\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
