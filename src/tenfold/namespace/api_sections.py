"""API sections: groups the public names by page of the array API standard. Table.

Takes the op table, hands on the names of each section, for the reference and for `tenfold.__doc__`.
An operation belongs to the section of its page in `tenfold.ops`, or to the one it declares.

>>> [section.title for section in API_SECTIONS][:2]
['Creation', 'Data types']
>>> names_by_section()["sorting"]
['argsort', 'segment_sort', 'sort', 'sort_by_key']
"""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from tenfold.core.op import OPS, Operation
from tenfold.dtypes import DTYPES
from tenfold.namespace.array_api_info import API_CONSTANTS


class ApiSection(NamedTuple):
    """One page of the reference."""

    key: str
    title: str
    about: str
    """One sentence."""
    pages: str = ""
    """The modules of `tenfold.ops` whose operations belong to it."""
    names: tuple[str, ...] = ()
    """Its public names that are not operations."""
    modules: tuple[str, ...] = ()
    """Its public submodules, which the page lists in full."""
    standard: bool = False
    """Whether it is a page of the array API standard."""


def _standard(key: str, title: str, about: str, pages: str = "", names: str = "") -> ApiSection:
    return ApiSection(key, title, about, pages, tuple(names.split()), standard=True)


API_SECTIONS = (
    _standard(
        "creation",
        "Creation",
        "Arrays from lists, buffers, DLPack, ranges and constants; copies to another device.",
        "arange create device_copy",
        "asarray from_dlpack",
    ),
    _standard(
        "data-types",
        "Data types",
        "The dtypes, their limits, conversion and promotion.",
        "cast",
        f"{' '.join(DTYPES)} can_cast finfo iinfo isdtype result_type",
    ),
    _standard("constants", "Constants", "Numbers and `newaxis`.", names=" ".join(API_CONSTANTS)),
    _standard(
        "elementwise",
        "Elementwise functions",
        "Functions of the elements at one index of broadcast operands.",
        "activation arithmetic bitwise comparison complex elementary fused predicates rounding "
        "selection",
    ),
    _standard(
        "indexing",
        "Indexing functions",
        "Elements at given indices: read, replaced, summed.",
        "assignment gathering indexing labels segment_reductions segment_sum",
    ),
    _standard(
        "linear-algebra",
        "Linear algebra",
        "Products, decompositions, solves and norms; most stand in `tn.linalg`.",
        "assume banded_solve contract diagonal_tril_triu eigenvalues einsum factors linalg "
        "lu_and_triangular matrix_functions norm powers scipy_linalg svd_eig",
        "linalg.cg",
    )._replace(modules=("linalg",)),
    _standard(
        "manipulation",
        "Manipulation functions",
        "Shapes, axes, joins and repetition; values stay as they are.",
        "joining movement pad reshaping tile_repeat_roll",
    ),
    _standard(
        "fourier", "Fourier transforms", "Transforms of any axes, in `tn.fft`.", "fft"
    )._replace(modules=("fft",)),
    _standard("searching", "Searching functions", "Positions of elements, and choices by masks."),
    _standard("sets", "Set functions", "Unique values and membership.", "sets"),
    _standard(
        "sorting", "Sorting functions", "Sorted values and their order.", "key_sorting sorting"
    ),
    _standard(
        "statistical",
        "Statistical functions",
        "Reductions over axes, and scans along one.",
        "cumulative reduce statistics",
    ),
    _standard("utility", "Utility functions", "Truth of elements, and differences."),
    ApiSection(
        "windows",
        "Windows",
        "Sliding windows, their columns, pooling, resampling and convolution.",
        "convolution pooling windows",
    ),
    ApiSection(
        "random",
        "Random numbers",
        "Draws of a counter-based generator, in `tn.random`.",
        "random composite_distributions distributions permutations",
        names=("random.Generator", "random.default_rng"),
        modules=("random",),
    ),
    _standard(
        "inspection",
        "Array API inspection",
        "The version of the standard, and what the namespace has.",
        names="__array_api_version__ __array_namespace_info__",
    ),
    ApiSection("array", "The array", "The lazy array and its methods.", names=("Array",)),
    ApiSection(
        "storage",
        "Storage kinds",
        "Matrices that are stored as components: diagonal, permutation, compressed rows.",
        names=("csr", "csr_from_coo", "diagonal_matrix", "permutation"),
    ),
    ApiSection(
        "evaluation",
        "Evaluation, assignment and interoperation",
        "Values on request, memory of the caller, and memory that is given back.",
        names=("assign", "eval", "from_dask", "to_dask", "trim", "wrap"),
    ),
    ApiSection(
        "functions",
        "Functions and transforms",
        "Traced functions, batching, loops and branches on values, and Python callbacks.",
        names=(
            *("blockwise", "cond", "function", "load_function", "op", "operator", "scan", "vmap"),
            "while_loop",
        ),
    ),
    ApiSection(
        "derivatives",
        "Derivatives",
        "Gradients and Jacobian products of functions and of pending graphs.",
        names=(
            *("checkpoint", "custom_jvp", "custom_vjp", "grad", "grad_of", "hessian", "hvp"),
            *("jacobian", "jvp", "linearize", "value_and_grad", "vjp", "watch"),
        ),
    ),
    ApiSection(
        "engine",
        "Engine",
        "Asynchronous operators: futures, dependencies and batches.",
        names=(
            "BatchedOperator",
            "CumulativeOperator",
            "Engine",
            "EngineObject",
            "Handle",
            "InPlaceOperator",
            "Operator",
            "engine",
            "operators",
        ),
    ),
    ApiSection(
        "rules",
        "Rewrite rules",
        "Rewrites of the user's own, written as algebra.",
        names=("Kind", "Rule", "cse"),
        modules=("rules",),
    ),
    ApiSection(
        "inspect",
        "Explain and profile",
        "How an expression is computed, and what a block of code did.",
        names=("Profile", "explain", "profile"),
    ),
    ApiSection(
        "options",
        "Options",
        "Settings of a block, of the process and of the environment.",
        names=("options", "set_options", "stream"),
    ),
    ApiSection(
        "errors",
        "Errors and testing",
        "Exceptions that name the remedy, and comparison of bits.",
        modules=("errors", "testing"),
    ),
)


BY_PAGE = {page: section.key for section in API_SECTIONS for page in section.pages.split()}


def section_of(operation: Operation[...]) -> str:
    """Return the key of an operation's section; "" for the operation of a user."""
    return operation.section or BY_PAGE.get(operation.page, "")


def names_by_section() -> dict[str, list[str]]:
    """Return the public names of each section, sorted; those of submodules with their module."""
    names = {section.key: [*section.names, *section.modules] for section in API_SECTIONS}
    for full_name, operation in OPS.items():
        names.get(section_of(operation), []).append(full_name)
    return {key: sorted(found, key=str.casefold) for key, found in names.items()}


def overview() -> str:
    """Return the names of each section as text: what `help(tenfold)` shows."""
    names = names_by_section()
    return "\n".join(
        f"{section.title}:\n" + _wrapped(", ".join(names[section.key])) for section in API_SECTIONS
    )


def _wrapped(text: str) -> str:
    indent = " " * 4
    return textwrap.fill(
        text, 79, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
