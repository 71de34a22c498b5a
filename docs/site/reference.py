"""Writes the API reference as Markdown: one page for each section of the public names.

Takes the installed package and `tenfold.namespace.api_sections`, hands on the text of each page by
its name. The directives are those of Sphinx's Python domain.
"""

from __future__ import annotations

import ast
import inspect
import re
import typing
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType, GenericAlias, MappingProxyType, ModuleType, UnionType
from typing import Any

import numpy as np

import tenfold
from tenfold.core.op import OPS
from tenfold.core.public_signature import public_annotation
from tenfold.namespace.api_sections import API_SECTIONS, ApiSection, names_by_section

WORD = re.compile(r"[A-Za-z_][\w.]*")
ALIASES = (UnionType, GenericAlias, type(typing.Callable[..., int]), type(typing.Literal[0]))
SPECIAL = re.compile(r"([\\*_<\[\]$])")
PAGE_NAME = re.compile(r"\bdocs/([\w/-]+)\.md\b")
MADE_INSIDE = ("Array", "Match", "Profile")
"""Classes whose instances functions return. `numpy.ndarray(shape)` is for scripts that call it."""
STANDARD = "https://data-apis.org/array-api/2025.12/API_specification/"


def pages() -> dict[str, str]:
    """Return the text of each page of the reference by its name, the index first."""
    names = names_by_section()
    written = {section.key: page(section, names[section.key]) for section in API_SECTIONS}
    return {"index": index(), **written}


def index() -> str:
    """Return the page that lists the sections."""
    standard = [section for section in API_SECTIONS if section.standard]
    own = [section for section in API_SECTIONS if not section.standard]
    return "\n".join(
        [
            "# API reference",
            "",
            "Every public name of `tenfold`, by section. The signatures and the texts are those",
            "that `help` shows.",
            "",
            "## The array API standard",
            "",
            f"The sections are those of the [array API standard 2025.12]({STANDARD}); names that",
            "only Tenfold has stand in the section that they belong to.",
            "",
            *_contents(standard),
            "",
            "## Tenfold's own",
            "",
            *_contents(own),
            "",
        ]
    )


def _contents(sections: list[ApiSection]) -> list[str]:
    rows = [f"| [{each.title}]({each.key}.md) | {each.about} |" for each in sections]
    tree = ["```{toctree}", ":hidden:", "", *(each.key for each in sections), "```"]
    return ["| Section | Content |", "|---|---|", *rows, "", *tree]


def page(section: ApiSection, names: list[str]) -> str:
    """Return the page of one section: a table of its names, then an entry for each."""
    full = [f"tenfold.{name}" for name in names if name not in section.modules]
    known = {*names, *also_names()}
    of_modules = [f"{m}.{name}" for m in section.modules for name in module_names(value_of(m))]
    full += [f"tenfold.{name}" for name in of_modules if name not in known]
    rows = [f"| {{py:obj}}`{name}` | {_first_sentence(name)} |" for name in full]
    parts = [
        f"# {section.title}",
        section.about,
        "\n".join(["| Name | Summary |", "|---|---|", *rows]),
    ]
    return "\n\n".join([*parts, *(entry(name) for name in full)]) + "\n"


def also_names() -> dict[str, str]:
    """Return the second names of what stands at the top too, such as linalg.matmul: matmul."""
    modules = [module for section in API_SECTIONS for module in section.modules]
    return {
        f"{module}.{name}": name
        for module in modules
        for name in module_names(value_of(module))
        if vars(tenfold).get(name) is value_of(f"{module}.{name}")
    }


def module_names(module: ModuleType) -> list[str]:
    """Return the public names of a public submodule: its `__all__`, or its exceptions."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed)
    found = vars(module).items()
    return sorted(k for k, v in found if isinstance(v, type) and issubclass(v, Exception))


def value_of(full_name: str) -> Any:
    """Return what a name such as tenfold.linalg.inv or linalg.inv stands for."""
    value: Any = tenfold
    for part in full_name.removeprefix("tenfold.").split("."):
        value = getattr(value, part)
    return value


def doc_of(value: Any) -> str:
    """Return the docstring; of a class of another library the first line; of data none."""
    if isinstance(value, (str, int, float, np.dtype, type(None))):
        return ""
    doc = inspect.getdoc(value) or ""
    inherited = isinstance(value, type) and not vars(value).get("__doc__")
    foreign = not str(getattr(value, "__module__", "tenfold")).startswith("tenfold")
    return doc.partition("\n")[0] if foreign or inherited else doc


def _first_sentence(full_name: str) -> str:
    value = value_of(full_name)
    if isinstance(value, (str, int, float, np.dtype, type(None))):
        return f"`{value!r}`" if not isinstance(value, np.dtype) else f"dtype, {_bytes(value)}"
    paragraph = " ".join(doc_of(value).partition("\n\n")[0].split())
    sentence = re.split(r"(?<=\.)\s", paragraph, maxsplit=1)[0].removesuffix(":")
    return escaped(sentence).replace("|", "\\|")


def _bytes(dtype: np.dtype) -> str:
    return f"{dtype.itemsize} byte{'s' if dtype.itemsize > 1 else ''} an element"


def entry(full_name: str) -> str:
    """Return the entry of one public name: its signature and its text."""
    value = value_of(full_name)
    if isinstance(value, type):
        return _class(full_name, value)
    if isinstance(value, ModuleType):
        return _directive("py:data", full_name, markdown(doc_of(value)))
    if not callable(value) or not hasattr(value, "__name__"):
        return _directive("py:data", full_name, _data(value))
    body = "\n\n".join(filter(None, (markdown(doc_of(value)), _also(full_name))))
    return _directive("py:function", full_name + signature(value), body)


def _data(value: Any) -> str:
    if isinstance(value, np.dtype):
        return f"The dtype `{value}`: {_bytes(value)}."
    doc = doc_of(value)
    return markdown(doc) if doc else f"`{value!r}`"


def _also(full_name: str) -> str:
    """Say under which other names it can be called."""
    name = full_name.removeprefix("tenfold.")
    others = [f"`tenfold.{second}`" for second, first in also_names().items() if first == name]
    if name in OPS and OPS[name].method:
        others.append(f"the method `Array.{name}`")
    return f"Also {', '.join(others)}." if others else ""


def _class(full_name: str, value: type) -> str:
    members = [
        text
        for name in _members(value)
        if (text := _member(value, name, inspect.getattr_static(value, name)))
    ]
    kind = "py:exception" if issubclass(value, Exception) else "py:class"
    shown = _constructor(value) if kind == "py:class" else ""
    body = "\n\n".join(filter(None, (markdown(doc_of(value)), _also(full_name), *members)))
    return _directive(kind, full_name + shown, body, fence=6)


def _constructor(value: type) -> str:
    """Return the signature of a class; nothing where a caller makes no instance by it."""
    native = vars(value).get("__init__") is None and "__new__" not in vars(value)
    if native or value.__name__ in MADE_INSIDE or hasattr(value, "__members__"):
        return ""
    return signature(value).partition(" ->")[0]


def _members(value: type) -> list[str]:
    """Public members of a class and of its bases in Tenfold; those of an enumeration."""
    listed = getattr(value, "__members__", None)
    if isinstance(listed, MappingProxyType):
        return list(listed)
    bases = value.__mro__[:1] if issubclass(value, Exception) else value.__mro__
    own = [base for base in bases if base.__module__.startswith("tenfold")]
    return sorted({name for base in own for name in vars(base) if name[0] != "_"})


def _member(owner: type, name: str, value: Any) -> str:
    doc = markdown(doc_of(value))
    if callable(value) and not isinstance(value, type):
        shown = _stub_signature(owner, name) or signature(value, method=True)
        operation = OPS.get(name)
        if operation is not None and operation.method and owner is tenfold.Array:
            doc = f"The method form of {{py:func}}`tenfold.{name}`."
        return _directive("py:method", name + shown, doc)
    if isinstance(value, (property, staticmethod, classmethod)) or inspect.isdatadescriptor(value):
        return _directive("py:attribute", name, doc)
    return _directive("py:attribute", name, f"`{value!r}`")


def _directive(kind: str, head: str, body: str, fence: int = 5) -> str:
    return f"{'`' * fence}{{{kind}}} {head}\n\n{body}\n{'`' * fence}"


def signature(function: Callable[..., Any], *, method: bool = False) -> str:
    """Return a signature as text, with public types alone; ValueError where there is none."""
    found = inspect.signature(function)
    names = getattr(inspect.unwrap(function), "__globals__", None)
    if names is None:
        names = vars(inspect.getmodule(function) or tenfold)
    given = [
        each.replace(
            annotation=_Text(_annotation(each.annotation, names))
            if each.annotation is not each.empty
            else each.empty,
            default=each.default if each.default is each.empty else _Text(_default(each.default)),
        )
        for each in found.parameters.values()
    ]
    result = found.return_annotation
    if result is not inspect.Signature.empty:
        result = _Text(_annotation(result, names))
    return str(inspect.Signature(given[1:] if method else given, return_annotation=result))


class _Text(str):
    """Text that a signature shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _default(value: Any) -> str:
    text = repr(value)
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return "..."
    return text


def _annotation(annotation: Any, names: dict[str, Any]) -> str:
    """Return an annotation as text; aliases are written out, modules left out."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)

    def spelled(match: re.Match[str]) -> str:
        value = names.get(match[0])
        if isinstance(value, ALIASES):
            return _annotation(re.sub(r"\b(?:\w+\.)+", "", repr(value)), names)
        return match[0].rpartition(".")[2]

    return WORD.sub(spelled, str(public_annotation(text)))


def _stub_signature(owner: type, name: str) -> str:
    """Return the signature of a native method from the stub of the native core; else nothing."""
    for base in owner.__mro__:
        if base.__module__.startswith("tenfold") and name in vars(base):
            node = native_methods().get((base.__name__, name))
            return "" if node is None or isinstance(vars(base)[name], FunctionType) else node
    return ""


@cache
def native_methods() -> dict[tuple[str, str], str]:
    """Return the signatures of native methods by class and name."""
    stub = Path(tenfold.__file__).with_name("_native.pyi").read_text(encoding="utf-8")
    found = {}
    for owner in ast.parse(stub).body:
        for node in owner.body if isinstance(owner, ast.ClassDef) else ():
            if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                names = node.args.posonlyargs or node.args.args
                del names[:1]  # self
                result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                found[owner.name, node.name] = f"({ast.unparse(node.args)}){result}"
    return found


def markdown(doc: str) -> str:
    """Return a docstring as Markdown: examples fenced, other text escaped, pages linked."""
    parts: list[str] = []
    for block in re.split(r"\n\s*\n", doc.strip()):
        lines = block.splitlines()
        start = next((i for i, line in enumerate(lines) if line.lstrip()[:3] == ">>>"), len(lines))
        if start:
            parts.append(escaped("\n".join(lines[:start])))
        if lines[start:]:
            parts.append("\n".join(["```pycon", *lines[start:], "```"]))
    return "\n\n".join(parts)


def escaped(text: str) -> str:
    """Return text with Markdown's characters escaped, except in code spans."""
    pieces = re.split(r"(`[^`]*`)", text)
    pieces[::2] = [
        PAGE_NAME.sub(lambda m: f"[{m[1]}](../{m[1]}.md)", SPECIAL.sub(r"\\\1", piece))
        for piece in pieces[::2]
    ]
    return "".join(pieces)
