"""Checkpoints (`tn.checkpoint`): a function whose intermediate arrays are computed again backwards.

Takes a function, returns one whose calls are one node each: computed by itself, so that its results
alone are kept. Its derivative is a node of the same operation, which computes the function again
(`checkpoint_back` in `transforms/loop_derivatives.py`).

>>> import tenfold as tn
>>> layer = checkpoint(lambda w, x: tn.tanh(w * x))
>>> tn.grad(layer)(tn.asarray(0.0), tn.asarray(2.0)).item()
2.0
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tenfold import _native
from tenfold._native import Array
from tenfold.core.callable_signature import name_of
from tenfold.core.pytree import flatten
from tenfold.settings import checked_device
from tenfold.transforms.control_flow_ops import CHECKPOINT
from tenfold.transforms.loop_carry import checked_callable
from tenfold.transforms.trace_cache import cached_trace


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with a derivative that computes it again: less memory, more work.

    A gradient keeps the arguments and the results of each call until its backward step, and nothing
    that is made in between. So of n equal layers in sqrt(n) segments, each of them a checkpoint,
    about 2 sqrt(n) results are kept at a time; each layer is computed twice (Griewank, Walther
    2000; Chen et al. 2016). Arrays may be in trees; other arguments are constants. The function is
    traced once for each signature, and captured arrays have derivatives, as in `tn.cond`. A call is
    computed by itself: it is not fused with what surrounds it, so make segments large.

    Raises TypeError for what is not a function, UnsupportedError where it asks for values.

    The name is that of `jax.checkpoint` (Bradbury et al. 2018).

    >>> import tenfold as tn
    >>> segment = tn.checkpoint(lambda x: tn.sin(tn.exp(x)))
    >>> tn.grad(lambda x: tn.sum(segment(x)))(tn.asarray([0.0])).tolist()
    [0.5403023058681398]
    """
    operation = "tn.checkpoint"
    checked_callable(operation, function)

    def call(args: Any, kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = name_of(function)

    @wraps(function)
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        cached = cached_trace(operation, call, (args, kwargs), hoist=False)
        arrays = [x for x in flatten((args, kwargs))[0] if isinstance(x, Array)]
        inputs = (*arrays, *cached.trace.captured_arrays())
        structure = cached.trace.structure
        if not structure.leaves:
            return structure.unflatten(())
        device = inputs[0].device if inputs else checked_device(None)
        made = _native.apply(CHECKPOINT.id, inputs, (cached.callee, device))
        return structure.unflatten(made if isinstance(made, tuple) else (made,))

    return recomputed


__all__ = ["checkpoint"]
