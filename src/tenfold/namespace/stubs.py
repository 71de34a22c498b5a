"""Stub generator: writes .pyi files from the op table, for editors and type checkers.

`python -m tenfold.namespace.stubs DIRECTORY` writes `__init__.pyi`, `fft.pyi`, `linalg.pyi`,
`operators.pyi`, `random.pyi` and `_methods.pyi` (the methods of Array beside its native ones)
there. The files are committed; a difference fails the build.

>>> annotation_text("Shape | None"), annotation_text("Mystery")
('Shape | None', 'Any')
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np

import tenfold
from tenfold._native import Array, Handle
from tenfold.array import ndarray_methods
from tenfold.core.op import OPS, Operation
from tenfold.core.public_signature import PUBLIC_TYPES
from tenfold.namespace import random_generator, surface

IMPORTS = {
    "builtins": "import builtins",
    "Any": "from typing import Any",
    "Callable": "from collections.abc import Callable",
    "Iterable": "from collections.abc import Iterable",
    "Iterator": "from collections.abc import Iterator",
    "Mapping": "from collections.abc import Mapping",
    "Sequence": "from collections.abc import Sequence",
    "np": "import numpy as np",
    "Array": "from tenfold._native import Array",
    "Derived": "from tenfold.core.op import Derived",
    "Op": "from tenfold.core.op import Op",
    "Kind": "from tenfold.core.op import Kind",
    "Axis": "from tenfold.core.shape_rules import Axis",
    "Shape": "from tenfold.core.shape_rules import Shape",
}
BUILTINS = {
    "bool",
    "int",
    "float",
    "complex",
    "str",
    "bytes",
    "object",
    "None",
    "tuple",
    "list",
    "dict",
    "type",
    "slice",
}
PYTHON_DECLARATIONS = (FunctionType, ndarray_methods.NumpyParameters)
WORD = re.compile(r"[A-Za-z_][\w.]*")


def annotation_text(annotation: object) -> str:
    """Return an annotation as text; names that a stub cannot import become Any."""
    if annotation is inspect.Parameter.empty:
        return "Any"
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    importable = BUILTINS | IMPORTS.keys()

    def checked(match: re.Match[str]) -> str:
        if match[0] == "bool":
            return "builtins.bool"  # in the stub of tenfold, `bool` is the dtype
        known = match[0].partition(".")[0] in importable
        return match[0] if known else PUBLIC_TYPES.get(match[0], "Any")

    return WORD.sub(checked, text) if "'" not in text and '"' not in text else "Any"


def parameter_text(parameter: inspect.Parameter) -> str:
    """Return one parameter with its annotation; a default is only said to be there."""
    several = {parameter.VAR_POSITIONAL.name: "*", parameter.VAR_KEYWORD.name: "**"}
    stars = several.get(parameter.kind.name, "")
    if parameter.name == "self":
        return "self"
    text = f"{stars}{parameter.name}: {annotation_text(parameter.annotation)}"
    return text if parameter.default is parameter.empty else f"{text} = ..."


def signature_text(signature: inspect.Signature, *, method: bool = False) -> str:
    """Return a signature as text; a method's first parameter is self."""
    parts: list[str] = []
    parameters = list(signature.parameters.values())
    for position, parameter in enumerate(parameters):
        previous_kind = parameters[position - 1].kind if position else None
        if previous_kind is parameter.POSITIONAL_ONLY and parameter.kind is not previous_kind:
            parts.append("/")
        starred = (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        if parameter.kind is parameter.KEYWORD_ONLY and previous_kind not in starred:
            parts.append("*")
        parts.append("self" if method and position == 0 else parameter_text(parameter))
    if parameters and parameters[-1].kind is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    result = annotation_text(signature.return_annotation)
    return f"({', '.join(parts)}) -> {result}"


def operation_text(operation: Operation[...], *, method: bool = False) -> str:
    """Return an operation as the stub of a function or method."""
    declared = inspect.signature(operation.function)
    text = signature_text(declared, method=method)
    if declared.return_annotation == "BoundCall" and getattr(operation, "result_names", ()):
        text = text.removesuffix("Array") + "Any"
    return _function(operation.name, text, operation.doc)


def _function(name: str, signature: str, doc: str, indent: str = "") -> str:
    first = doc.strip().splitlines()[0].replace("\\", "\\\\") if doc.strip() else name
    return f'{indent}def {name}{signature}:\n{indent}    """{first}"""\n'


def _headed(title: str, body: str) -> str:
    used_names = {name for name in IMPORTS if re.search(rf"\b{name}\b", body)}
    lines = sorted(
        {IMPORTS[name] for name in used_names}, key=lambda line: (line[:6] == "import", line)
    )
    note = f'"""{title}\n\nMade by `make stubs` from the op table; do not edit.\n"""\n'
    return "\n".join([note, *lines, "", body])


def in_order() -> list[Operation[...]]:
    """Return the operations by page and name: an order that no import decides."""
    return sorted(OPS.values(), key=lambda operation: (operation.page, operation.full_name))


def public_text() -> str:
    """Return the stub of `tenfold` itself."""
    lines: list[str] = []
    for name in tenfold.__all__:
        value = getattr(tenfold, name)
        if name in OPS:
            continue
        lines.append(_public_name(name, value))
    lines += [operation_text(op) for op in in_order() if not op.namespace]
    lines.append("__all__ = [")
    lines += [f'    "{name}",' for name in sorted(tenfold.__all__)]
    lines.append("]")
    return _headed("Tenfold: lazy tensor expressions, written like NumPy.", "\n".join(lines))


def _public_name(name: str, value: object) -> str:
    if value is Array or value is Handle:
        return f"from tenfold._native import {name} as {name}"
    if isinstance(value, ModuleType):
        return f"from tenfold import {name} as {name}"
    if isinstance(value, np.dtype):
        return f"{name}: np.dtype"
    module = getattr(value, "__module__", "")
    python = getattr(value, "__wrapped__", value)  # of a function with a native path
    if isinstance(python, (type, FunctionType)) and module.startswith("tenfold."):
        return f"from {module} import {python.__name__} as {name}"
    return f"{name}: {type(value).__name__}" if type(value).__name__ in BUILTINS else f"{name}: Any"


def namespace_text(namespace: str, imports: Sequence[str] = ()) -> str:
    """Return the stub of a submodule made of operations, and of names that it imports."""
    body = [operation_text(op) for op in in_order() if namespace in (op.namespace, *op.also)]
    return _headed(f"The public functions of tenfold.{namespace}.", "\n".join([*imports, *body]))


def random_text() -> str:
    """Return the stub of `tenfold.random`: operations, and the Generator."""
    module = random_generator.__name__
    imports = [f"from {module} import {name} as {name}" for name in random_generator.GENERATOR_API]
    return namespace_text("random", imports)


def operators_text() -> str:
    """Return the stub of `tenfold.operators`."""
    rows = [
        f"{name.replace('.', '_')}: {type(op).__name__}[...]" for name, op in sorted(OPS.items())
    ]
    for namespace in surface.namespaces():
        rows += ["", f"class {namespace}:", f'    """The operations of tenfold.{namespace}."""', ""]
        namespace_operators = surface.namespace_operations(namespace)
        rows += [
            f"    {name}: {type(op).__name__}[...]"
            for name, op in sorted(namespace_operators.items())
        ]
    return _headed("Every public operation itself, by name.", "\n".join(rows) + "\n")


def methods_text() -> str:
    """Return the stub of what Python gives to Array: methods of operations and of its own."""
    by_operation = {op.name: op for op in OPS.values() if op.method}
    lines = [
        "class Methods:",
        '    """The methods and properties of Array that are not native."""\n',
    ]
    for name, value in sorted(vars(Array).items()):
        if name in ndarray_methods.WIDENED:
            form = inspect.signature(ndarray_methods.WIDENED[name])
            doc = by_operation[name].doc
            lines.append(_function(name, signature_text(form, method=True), doc, "    "))
        elif name in by_operation:
            text = operation_text(by_operation[name], method=True)
            lines.append("\n".join(f"    {line}".rstrip() for line in text.splitlines()))
        elif isinstance(getattr(value, "__wrapped__", value), PYTHON_DECLARATIONS):
            signature = signature_text(inspect.signature(value), method=True)
            lines.append(_function(name, signature, inspect.getdoc(value) or "", "    "))
        elif isinstance(value, property) and value.fget and hasattr(value.fget, "__annotations__"):
            result = annotation_text(inspect.signature(value.fget).return_annotation)
            lines.append("    @property")
            doc = inspect.getdoc(value.fget) or ""
            lines.append(_function(name, f"(self) -> {result}", doc, "    "))
            if value.fset is not None:
                lines.append(f"    @{name}.setter")
                lines.append(f"    def {name}(self, value: Any) -> None: ...\n")
    return _headed("The methods of Array that are not native.", "\n".join(lines))


FILES: dict[str, Callable[[], str]] = {
    "__init__.pyi": public_text,
    "fft.pyi": lambda: namespace_text("fft"),
    "linalg.pyi": lambda: namespace_text(
        "linalg",
        [
            "from numpy.linalg import LinAlgError as LinAlgError\n",
            "from tenfold.transforms.conjugate_gradient import cg as cg",
        ],
    ),
    "random.pyi": random_text,
    "operators.pyi": operators_text,
    "_methods.pyi": methods_text,
}


def write_stubs(directory: Path) -> None:
    """Write every stub into `directory`."""
    for name, text in FILES.items():
        (directory / name).write_text(text().rstrip() + "\n", encoding="utf-8")


def main(arguments: Iterable[str]) -> None:
    """Write the stubs into the directory named."""
    write_stubs(Path(next(iter(arguments), "src/tenfold")))


if __name__ == "__main__":
    main(sys.argv[1:])
