"""Operator base classes: user-defined operators that the engine runs, and mutable engine objects.

An operator is an instance of such a class; its attributes are its parameters.

>>> class Scaled(Operator):
...     pure = True
...     def __init__(self, factor): self.factor = factor
...     def run(self, x): return x * self.factor
>>> Scaled(3)(2)
6
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from tenfold._native import Array, Handle
from tenfold.engine.engine_object import EngineObject as EngineObject
from tenfold.engine.operand_devices import on_host, run_member
from tenfold.engine.operands import contains_instance, operator_result, stored_value


class Operator:
    """An operation of your own that is opaque to tenfold: `run` is called with the GIL.

    `run(self, *inputs, **params)` gets the values of the inputs, Arrays or your objects, and the
    parameters of the push. It returns an Array, an ndarray, a number or any other object. Its
    expressions are evaluated when their values are read. It may push operators, but not wait for
    them. Of ready operators the one with the highest `priority`, an int, runs first; those that are
    batched have none. `pure = True` declares that it has no side effects: it is skipped when no
    handle and no operator needs its result.

    A call with values, `operator(x)`, runs it at once.

    >>> import tenfold as tn
    >>> class Norm(tn.Operator):
    ...     pure = True
    ...     def run(self, x): return tn.sqrt(tn.sum(x * x))
    >>> with tn.Engine() as engine:
    ...     engine.push(Norm(), tn.asarray([3.0, 4.0])).get().item()
    5.0
    """

    pure: bool = False
    """Whether it does nothing but return its result."""
    priority: int = 0
    """Of ready operators the one with the highest priority runs first; batches have none."""

    def run(self, *inputs: Any, **params: Any) -> Any:
        """Compute the result from the inputs."""
        raise NotImplementedError(f"{type(self).__name__} has no run(self, *inputs)")

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        """Run it now, on values."""
        return operator_result(run_member(self, self.run, inputs, params))


class InPlaceOperator(Operator):
    """An operator that changes its first input: `run(self, target, *inputs)`.

    It owns `target`: the object itself if it has no other references, else a copy (`copy()` of a
    `tn.EngineObject`, a deep copy of any other object). It returns the new version, or None after
    changing `target` in place. A handle of an older version keeps its value.

    >>> import tenfold as tn
    >>> class Append(tn.InPlaceOperator):
    ...     def run(self, target, value): target.append(value)
    >>> with tn.Engine() as engine:
    ...     old = engine.put([1])
    ...     new = engine.push(Append(), old, 2)
    ...     old.get(), new.get()
    ([1], [1, 2])
    """

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        """Run it now, on a copy of its first argument."""
        target, *arguments = inputs
        owned = (copy_for_update(target), *arguments)
        return operator_result(run_member(self, self.run, owned, params, updates=True))


class CumulativeOperator(Operator):
    """An operator that adds to its target: `push(operator, target, *inputs)`.

    `run(self, *inputs)` does not get the target and returns an increment; the default `run` returns
    its only input. `add(self, a, b)` adds two increments, or an increment to the target; it must
    not change either. Increments are added pairwise, as a tree, in the order of their pushes.

    A class may have `run_batch(self, inputs)`, as a `BatchedOperator`. Then one call computes the
    increments that are ready, of operators of one class with equal attributes and, if it has
    `signature(self, *inputs)`, of equal signatures.

    >>> import tenfold as tn
    >>> class Accumulate(tn.CumulativeOperator): pass
    >>> with tn.Engine() as engine:
    ...     total = engine.put(0)
    ...     for i in range(101):
    ...         total = engine.push(Accumulate(), total, i)
    ...     total.get()
    5050
    """

    def run(self, *inputs: Any, **params: Any) -> Any:
        """Compute an increment from the inputs."""
        run_batch = getattr(self, "run_batch", None)
        (increment,) = inputs if run_batch is None else run_batch([inputs], **params)
        return increment

    def add(self, a: Any, b: Any) -> Any:
        """Return the sum of two increments, or of the target and an increment."""
        return a + b

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        """Run it now: the first argument with one increment."""
        target, *arguments = inputs
        increment = operator_result(run_member(self, self.run, arguments, params))
        return operator_result(on_host(self.add, target, increment))


class BatchedOperator(Operator):
    """An operator that runs many pushes at once: `run_batch(self, inputs)`.

    `inputs` has a tuple for each push; as many outputs are returned, in a list. Pushes run
    together whose operators are of one class with equal attributes and whose
    `signature(self, *inputs)`, any hashable value, is equal.

    >>> import tenfold as tn
    >>> class Lengths(tn.BatchedOperator):
    ...     def run_batch(self, inputs): return [len(text) for (text,) in inputs]
    ...     def signature(self, text): return None
    >>> with tn.Engine() as engine, engine.hold():
    ...     lengths = [engine.push(Lengths(), text) for text in ("a", "bc")]
    ...     engine.flush()
    ...     [length.get() for length in lengths], engine.stats()["batches"]
    ([1, 2], 1)

    With `stacked = True` the inputs are arrays, and `run_batch(self, *inputs)` gets them stacked
    along a new first axis: an Array for each input, with one row for each push. It returns one
    array, whose rows are the results. Attributes of such an operator are read at its first push.

    >>> class Norms(tn.BatchedOperator):
    ...     stacked = True
    ...     def run_batch(self, x): return tn.sqrt(tn.sum(x * x, axis=1))
    >>> with tn.Engine() as engine, engine.hold():
    ...     norms = [engine.push(Norms(), tn.asarray([3.0 * i, 4.0 * i])) for i in range(3)]
    ...     engine.flush()
    ...     [norm.get().item() for norm in norms]
    [0.0, 5.0, 10.0]
    """

    stacked: bool = False
    """Whether `run_batch` takes stacked arrays, and returns one."""

    def run_batch(self, *inputs: Any, **params: Any) -> Any:
        """Compute a list of results from a list of the inputs of each, or a stack from stacks."""
        raise NotImplementedError(f"{type(self).__name__} has no run_batch(self, inputs)")

    def run(self, *inputs: Any, **params: Any) -> Any:
        """Compute one result: a batch of one."""
        if self.stacked:
            rows = [stored_value(np.asarray(x)[None]) for x in inputs]
            return operator_result(self.run_batch(*rows, **params))[0]
        (result,) = self.run_batch([inputs], **params)
        return result

    def signature(self, *inputs: Any) -> Hashable:
        """Return the batch signature of a push: the shapes and dtypes of arrays, else types."""
        return tuple((x.shape, x.dtype.str) if isinstance(x, Array) else type(x) for x in inputs)


class Gather(Operator):
    """Builds a list or tuple from its items; pushed for an input that contains handles.

    >>> Gather(tuple).run(1, 2)
    (1, 2)
    """

    pure = True

    def __init__(self, make: Callable[[Sequence[Any]], Any]) -> None:
        self.make = make

    def run(self, *inputs: Any, **_params: Any) -> Any:
        """Return the list, or tuple."""
        return self.make(inputs)


class Deferred(Operator):
    """Calls a function when its inputs are ready; pushed for a function that cannot be traced.

    >>> Deferred("twice", lambda x: 2 * x).run(1)
    2
    """

    pure = True

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function

    def run(self, *inputs: Any, **params: Any) -> Any:
        """Call the function."""
        return self.function(*inputs, **params)


def as_gather(
    value: list[Any] | tuple[Any, ...], is_tenfold_op: bool
) -> tuple[Gather, tuple[Any, ...]] | None:
    """Return the Gather operator of a list or tuple, and its items; None if it has no handles.

    For operations of tenfold (`is_tenfold_op`) Arrays and ndarrays are gathered, too.
    """
    if not contains_instance(value, (Handle, Array, np.ndarray) if is_tenfold_op else Handle):
        return None
    make = list if isinstance(value, list) else getattr(type(value), "_make", tuple)
    return Gather(make), tuple(value)


def copy_for_update(value: Any) -> Any:
    """Return a copy that an in-place operator may change."""
    if isinstance(value, Array):
        return operator_result(value)  # assignments rebind it
    return value.copy() if isinstance(value, EngineObject) else copy.deepcopy(value)
