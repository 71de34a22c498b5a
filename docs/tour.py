"""The whole system again, small: nodes, rules, names, views, walk, reference device, canonical
sums, fused loops.

Read it downward. Each part is a few lines of plain Python that say what the real part means; after
each the real one is asked the same question and must give the same answer. Run: python
docs/tour.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

import tenfold as tn


def heading(text: str) -> None:
    print(f"\n== {text}")


# -------------------------------------------------------------------------------------------------
heading("1. A Type says everything about a value but the value; an Op is one declaration")


@dataclass(frozen=True)
class Type:
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Op:
    name: str
    rule: Callable[..., Type]  # from the inputs' Types and the params: run once per combination
    reference: Callable[..., np.ndarray]  # NumPy's meaning, which the reference device runs


def elementwise_rule(*types: Type) -> Type:
    shape = np.broadcast_shapes(*(type_.shape for type_ in types))
    return Type(shape, str(np.result_type(*(type_.dtype for type_ in types))))


ADD = Op("add", elementwise_rule, np.add)
MULTIPLY = Op("multiply", elementwise_rule, np.multiply)

print(ADD.rule(Type((2, 1), "int32"), Type((3,), "float32")))
real = tn.zeros((2, 1), dtype=tn.int32) + tn.zeros(3, dtype=tn.float32)
assert Type(real.shape, str(real.dtype)) == ADD.rule(Type((2, 1), "int32"), Type((3,), "float32"))


# -------------------------------------------------------------------------------------------------
heading("2. A Node is immutable: an op, its inputs, its Type; a leaf holds a value")


@dataclass(eq=False)
class Node:
    op: Op | None
    inputs: tuple[Node, ...]
    type: Type
    params: tuple[Any, ...] = ()
    value: np.ndarray | None = None  # set once, when computed; then the inputs are dropped


memo: dict[tuple[Op, tuple[Type, ...], tuple[Any, ...]], Type] = {}


def make(op: Op, *inputs: Node, params: tuple[Any, ...] = ()) -> Node:
    key = (op, tuple(node.type for node in inputs), params)
    if key not in memo:
        memo[key] = op.rule(*key[1], *params)  # a mistake raises here, at the line that wrote it
    return Node(op, inputs, memo[key], params)


def leaf(values: np.ndarray) -> Node:
    return Node(None, (), Type(values.shape, str(values.dtype)), value=values)


a = leaf(np.arange(3.0))
expression = make(ADD, make(MULTIPLY, a, a), a)
print(expression.op.name, expression.type, "- nothing is computed, everything is checked")
try:
    make(ADD, a, leaf(np.zeros(4)))
except ValueError as error:
    print("ours:   ", error)
try:
    tn.asarray(np.arange(3.0)) + tn.zeros(4)
except ValueError as error:
    print("tenfold:", error)


# -------------------------------------------------------------------------------------------------
heading("3. An Array is a name for a Node; a view is a name seen through a movement")

INDEX = Op(
    "index",
    lambda type_, start: Type((type_.shape[0] - start,), type_.dtype),
    lambda values, start: values[start:],
)


@dataclass
class Array:
    node: Node | None = None
    base: Array | None = None
    movement: tuple[Op, tuple[Any, ...]] | None = None

    def current(self) -> Node:
        """A view reads its base's present value."""
        if self.base is None or self.movement is None:
            assert self.node is not None
            return self.node
        op, params = self.movement
        return make(op, self.base.current(), params=params)

    def __add__(self, other: Array) -> Array:
        return Array(make(ADD, self.current(), other.current()))

    def __iadd__(self, other: Array) -> Array:
        self.node = make(ADD, self.current(), other.current())  # rebinding; values never change
        return self

    def tail(self) -> Array:
        return Array(base=self, movement=(INDEX, (1,)))


# -------------------------------------------------------------------------------------------------
heading("4. Walk: inputs before users, each node once, no recursion")


def walk(output: Node) -> list[Node]:
    order: list[Node] = []
    seen: set[int] = set()
    stack = [(output, False)]
    while stack:
        node, inputs_done = stack.pop()
        if inputs_done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((each, False) for each in reversed(node.inputs))
    return order


print([node.op.name if node.op else "leaf" for node in walk(expression)])
x = tn.asarray(np.arange(3.0))
print(tn.explain(x * x + x, stage="expression"))


# -------------------------------------------------------------------------------------------------
heading("5. The reference device computes node by node; a computed node forgets its inputs")


def evaluate(output: Node) -> np.ndarray:
    for node in walk(output):
        if node.value is None and node.op is not None:
            node.value = node.op.reference(*(i.value for i in node.inputs), *node.params)
            node.inputs = ()
    assert output.value is not None
    return output.value


def values_of(array: Array) -> list[float]:
    return evaluate(array.current()).tolist()


ours, captured_from = Array(leaf(np.arange(3.0))), Array(leaf(np.ones(3)))
captured, view = ours + captured_from, ours.tail()
ours += captured_from
theirs, ones = tn.asarray(np.arange(3.0)), tn.ones(3)
their_captured, their_view = theirs + ones, theirs[1:]
theirs += ones
for mine, real in ((ours, theirs), (captured, their_captured), (view, their_view)):
    assert values_of(mine) == real.tolist()
print("rebound", values_of(ours), "captured before", values_of(captured), "view", values_of(view))


# -------------------------------------------------------------------------------------------------
heading("6. Sums: one tree, whatever the layout, the device and the number of threads")


def pairwise(values: list[np.float32]) -> np.float32:
    while len(values) > 1:
        pairs = [values[i] + values[i + 1] for i in range(0, len(values) - 1, 2)]
        values = pairs + values[2 * len(pairs) :]
    return values[0]


def by_halves(lanes: list[np.float32]) -> np.float32:
    half = 16
    while half:
        lanes = [
            lanes[i] + lanes[i + half] if i + half < len(lanes) else lanes[i]
            for i in range(min(half, len(lanes)))
        ]
        half //= 2
    return lanes[0]


def canonical_sum(values: np.ndarray) -> np.float32:
    blocks = [values[i : i + 1024] for i in range(0, len(values), 1024)]
    return pairwise(
        [
            by_halves([pairwise(list(block[lane::32])) for lane in range(min(32, len(block)))])
            for block in blocks
        ]
    )


numbers = np.random.default_rng(0).standard_normal(5000).astype(np.float32)
left_to_right = reduce(lambda total, value: total + value, numbers)
print("left to right", left_to_right, "canonical", canonical_sum(numbers))
assert tn.sum(tn.asarray(numbers)).item() == float(canonical_sum(numbers))
assert tn.sum(tn.asarray(numbers[::-1])[::-1]).item() == float(canonical_sum(numbers))


# -------------------------------------------------------------------------------------------------
heading("7. Kernels: a chain of maps is one loop, and no array stands in between")

SIGNS = {"add": "+", "multiply": "*"}


def kernel_text(output: Node) -> str:
    """The source text of one loop over the leaves of an expression, in the order of the walk."""
    names: dict[int, str] = {}
    lines, leaves = ["def kernel(buffers, result):", "    for i in range(len(result)):"], 0
    for node in walk(output):
        names[id(node)] = f"v{len(names)}"
        if node.op is None:
            value, leaves = f"buffers[{leaves}][i]", leaves + 1
        else:
            value = f" {SIGNS[node.op.name]} ".join(names[id(each)] for each in node.inputs)
        lines.append(f"        {names[id(node)]} = {value}")
    return "\n".join([*lines, f"        result[i] = {names[id(output)]}"])


b, c = leaf(np.arange(4.0)), leaf(np.ones(4))
chain = make(MULTIPLY, make(ADD, b, c), b)
text = kernel_text(chain)
print(text)
space: dict[str, Any] = {}
exec(text, space)  # the tour's own text; the real one goes to LLVM
result = np.empty(4)
space["kernel"]([b.value, c.value], result)
x, one = tn.asarray(np.arange(4.0)), tn.ones(4)
print(tn.explain((x + one) * x, stage="scheduled"))
with tn.options(tier=1), tn.profile() as p:  # else it would run unfused while it is seen seldom
    assert ((x + one) * x).tolist() == result.tolist() == evaluate(chain).tolist()
assert (p.kernels, p.temporaries) == (1, 0)


# -------------------------------------------------------------------------------------------------
heading("8. One declaration makes an operation: function, operator, node, checks")


@tn.op
def softsign(x: tn.Array) -> tn.Array:
    """x / (1 + |x|), element by element."""
    return x / (1 + tn.abs(x))


y = softsign(tn.asarray([-1.0, 0.0, 3.0], dtype=tn.float32) * 1)
print(y.dtype, y.kind, y.tolist())
print(tn.explain(softsign(tn.asarray([1.0]))))


# -------------------------------------------------------------------------------------------------
heading("9. Seeing inside: counters are raised where the work is done")

with tn.profile() as p:
    z = tn.mean(tn.exp(tn.asarray([0.0, 1.0])))
    before = p.launches
    z.wait()
print("launches while building:", before, "- when asked for:", p.launches, "-", p)
assert before == 0
assert p.launches > 0

print("\nthe end")
