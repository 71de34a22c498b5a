"""Types of the native core. The operators and methods of Array are in the public stubs."""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ClassVar, type_check_only

import numpy as np

from tenfold._methods import Methods

class Type:
    """Interned (shape, dtype, device, storage kind, structure); a weak one is a Python scalar's."""

    def __init__(
        self,
        shape: Sequence[int],
        dtype: np.dtype,
        device: str,
        storage: str = "dense",
        weak: bool = False,
        structure: int = 0,
    ) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype: ...
    @property
    def device(self) -> str: ...
    @property
    def storage(self) -> str: ...
    @property
    def structure(self) -> int: ...
    def with_structure(self, structure: int) -> Type: ...
    @property
    def weak(self) -> bool: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...

class Value:
    """A Type and the buffers of its elements; exports its first buffer, unless it is a view.

    `strides` (bytes) is () in C order, `address` the element at index 0, `nbytes` the whole
    allocation's; `owner` has foreign memory, None stands for the pool's.
    """

    @property
    def type(self) -> Type: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def is_on_host(self) -> bool:
        """Whether host code may read its memory."""
    def copied_to(self, device: str) -> Value:
        """Return the same elements in memory of another device, from or to the host's."""
    @property
    def is_view(self) -> bool: ...
    @property
    def integer_range(self) -> tuple[int, int] | None:
        """The least and the greatest of integers in C order, at most the greatest int64; None for
        other Values. It is computed each time."""
    @property
    def owner(self) -> object: ...
    def view(self, type: Type, strides: Sequence[int], offset_bytes: int) -> Value:
        """Return a view of this memory, `offset_bytes` from its element at index 0.

        Raises ValueError if it leaves the memory.
        """

    @staticmethod
    def foreign(
        type: Type,
        address: int,
        nbytes: int,
        strides: Sequence[int],
        owner: object,
        offset: int = 0,
    ) -> Value:
        """Wrap memory of `owner` at `address`; element 0 is `offset` bytes after it."""

    @staticmethod
    def allocate(type: Type, nbytes: int) -> Value: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Node:
    """An operation on inputs, or a leaf; `op` is None for a leaf and for a result of a tuple."""

    @property
    def op(self) -> Any: ...
    @property
    def name(self) -> str: ...
    @property
    def params(self) -> tuple[Any, ...]: ...
    @property
    def inputs(self) -> tuple[Node, ...]: ...
    @property
    def type(self) -> Type: ...
    @property
    def types(self) -> tuple[Type, ...]: ...
    @property
    def operands(self) -> tuple[np.dtype, ...]: ...
    @property
    def kind(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def assignments(self) -> int:
        """The largest number of pending assignments on a path to a leaf."""

    @property
    def pending(self) -> bool: ...
    @property
    def is_scalar(self) -> bool: ...
    @property
    def scalar(self) -> complex: ...
    @property
    def origin(self) -> tuple[str, int] | None: ...
    @property
    def creation_number(self) -> int:
        """A number above that of each input; 0 for a number and for a placeholder."""

    @property
    def watched(self) -> bool: ...
    @property
    def is_made_of_watched(self) -> bool:
        """Whether it is watched, or was made of a node that is."""

    def watch(self, forget: bool = False) -> None:
        """Let nodes that are made of it keep their inputs when they are computed. With `forget` it
        keeps none of its own.
        """
    def stop_watching(self) -> None: ...
    def passed_through(self, mark: bool = True) -> bool:
        """Whether an evaluation has passed through it. With `mark` one does now, unless the value
        is too large to store.
        """
    @property
    def is_slice(self) -> bool:
        """Whether it is a slice of its input, by its parameters."""

    def slice_key(self, array: Type) -> list[int]:
        """Return what it slices of such an array: four numbers for each axis, then the new axes."""
    def value(self, index: int = 0) -> Value | None: ...
    def publish(self, values: Sequence[Value]) -> None: ...

class Options:
    """The options that native code reads."""

    def __init__(
        self,
        strict: bool,
        device: int,
        pending_depth: int,
        origins: bool,
        number: int,
        process_number: int,
        interprets: bool,
        target: int,
        threads: int,
        batch_limit: int,
        rules: bool,
        verify: bool,
        strict_sync: bool,
        hot_threshold: int,
    ) -> None: ...

class Array(Methods):
    """A lazy array: an expression, computed or not."""

    __array_priority__: ClassVar[float]

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype: ...
    @property
    def device(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def base(self) -> Array | None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def wait(self) -> Array:
        """Compute the values and return the array itself. Raises what the computation raises."""
    def __add__(self, other: Any, /) -> Array: ...
    def __radd__(self, other: Any, /) -> Array: ...
    def __sub__(self, other: Any, /) -> Array: ...
    def __rsub__(self, other: Any, /) -> Array: ...
    def __mul__(self, other: Any, /) -> Array: ...
    def __rmul__(self, other: Any, /) -> Array: ...
    def __truediv__(self, other: Any, /) -> Array: ...
    def __rtruediv__(self, other: Any, /) -> Array: ...
    def __floordiv__(self, other: Any, /) -> Array: ...
    def __rfloordiv__(self, other: Any, /) -> Array: ...
    def __mod__(self, other: Any, /) -> Array: ...
    def __rmod__(self, other: Any, /) -> Array: ...
    def __divmod__(self, other: Any, /) -> tuple[Array, Array]: ...
    def __pow__(self, other: Any, /) -> Array: ...
    def __rpow__(self, other: Any, /) -> Array: ...
    def __matmul__(self, other: Any, /) -> Array: ...
    def __rmatmul__(self, other: Any, /) -> Array: ...
    def __and__(self, other: Any, /) -> Array: ...
    def __rand__(self, other: Any, /) -> Array: ...
    def __or__(self, other: Any, /) -> Array: ...
    def __ror__(self, other: Any, /) -> Array: ...
    def __xor__(self, other: Any, /) -> Array: ...
    def __rxor__(self, other: Any, /) -> Array: ...
    def __lshift__(self, other: Any, /) -> Array: ...
    def __rlshift__(self, other: Any, /) -> Array: ...
    def __rshift__(self, other: Any, /) -> Array: ...
    def __rrshift__(self, other: Any, /) -> Array: ...
    def __neg__(self) -> Array: ...
    def __pos__(self) -> Array: ...
    def __abs__(self) -> Array: ...
    def __invert__(self) -> Array: ...
    def __lt__(self, other: Any, /) -> Array: ...
    def __le__(self, other: Any, /) -> Array: ...
    def __gt__(self, other: Any, /) -> Array: ...
    def __ge__(self, other: Any, /) -> Array: ...
    def __eq__(self, other: Any, /) -> Array: ...  # type: ignore[override]  # an array of answers
    def __ne__(self, other: Any, /) -> Array: ...  # type: ignore[override]  # an array of answers
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __index__(self) -> int: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Array: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...

def declare_dtype(dtype: np.dtype, kind: str, bytes: int) -> int: ...
def declare_device(name: str) -> int: ...
def is_host_device(name: str) -> bool:
    """Whether host code may read and write the memory of a device."""

def device_failure(name: str) -> str | None:
    """Why a device computes no more; None: it does."""

MAX_QUEUES: int
MAX_DEVICES: int

def set_queues_variable(variable: object) -> None:
    """Set the context variable whose tuple begins with the queue of each device, as bytes."""

def device_number(name: str) -> int:
    """The number of a device, below MAX_DEVICES."""

def current_queue(name: str) -> int:
    """The queue of a device to which this thread or task gives its work."""

def cuda_processors() -> tuple[list[str], str]:
    """The processors of NVIDIA's devices, such as sm_90, and what is missing if there are none."""

def cuda_stream(device: str) -> int:
    """The address of the stream of this thread's queue."""

def lend(
    value: Value, code: int, device: int, number: int, stream: int, read_only: bool
) -> Any:
    """An object with `__dlpack__` on a Value's memory, ordered before `stream`; 0: not ordered."""

def borrow_cuda(array: object, dtype: np.dtype[Any], device: str, copies: bool) -> Value | None:
    """A Value of a capsule: on its memory, or a copy; None if that cannot be shared."""

def load_ptx(
    number: int, text: str, names: tuple[str, ...], may_fail: bool
) -> tuple[list[EntryPoint], str]:
    """Load a module on a device; return its functions, and why there are none."""

def seed_emulated_queues(seed: int) -> None:
    """Let queues of emulated devices run launches at moments that follow from a seed; 0: late."""

def emulated_traffic() -> tuple[int, int, int]:
    """Return the launches and copies of the emulated devices, and the waits for their queues."""

def declare_storage(name: str) -> int: ...
def declare_weak_types(four: Sequence[np.dtype]) -> None: ...
def declare_op(
    op: object,
    name: str,
    *,
    shapes: str,
    folding: str,
    weight: int,
    num_arguments: int,
    **flags: bool,
) -> int:
    """Declare an operation; `flags` are its fields that are bools, all of them."""

def op_record(id: int) -> object:
    """Return an object that frees the record of an operation when it is freed."""

def declared_ops() -> int: ...

@type_check_only
class DeferralThresholds:
    """The numbers by which assignments to parts of arrays wait: native/exec/update_deferral.h."""

    min_run: int
    max_deferred: int
    max_sharing: int
    max_after_failure: int

DEFERRAL: DeferralThresholds

@type_check_only
class BatchThresholds:
    """The numbers by which nodes and pushed operators are batched: native/exec/batch_policy.h."""

    min_mean_group_size: int
    min_members: int
    min_large_members: int
    min_planned_members: int
    full_members: int
    min_part_elements: int

BATCHES: BatchThresholds

def due_updates(target: int, value: int, retry_limit: int) -> tuple[bool, bool, bool]:
    """Return what is computed before an assignment: the pending ones of its target, those below
    its value; and whether a target that shares a product with the value waits instead.

    Takes how many are pending of each, and at how many work that has failed is tried again.
    """

@type_check_only
class TierThresholds:
    """The numbers by which a tier is chosen: native/exec/tier_policy.h."""

    hot_runs: int
    hot_runs_long: int
    max_joined_blocks: int
    few_elements: int
    few_elements_factor: int
    max_elements: int
    max_long_elements: int
    max_update_elements: int
    optimised_elements: int
    optimised_launches: int

TIERS: TierThresholds

def replays_until_lookup(lookups: int) -> int:
    """Return the replays of an executable until its programs are looked up again, after so many
    lookups in vain.
    """

def set_slice_ops(index: int, update: int, gather: int) -> None:
    """Set the operations of `x[key]` and `x[key] = e` for ints, slices, `...` and None, and of
    `x[key]` for an array of integers.
    """

def bind_symbol(symbol: str, op: int) -> None: ...
def apply(op: int, inputs: tuple[Any, ...], params: tuple[Any, ...] | None) -> Any: ...
def placeholder(type: Type) -> Array: ...
def node_of(array: Array) -> Node: ...

class TraceLog:
    """The Arrays that this thread reads, makes and changes from `begin` to `end`."""

    def begin(self) -> None: ...
    def end(self) -> None:
        """Restore the changed Arrays that it did not make."""

    @property
    def changed(self) -> list[Array]:
        """The Arrays that were restored, as their values differed at the end."""

    @property
    def reads(self) -> list[tuple[Array, Node]]:
        """The Arrays that it read and did not make, with their nodes before any change."""

def make_caller(python: Callable[..., Any]) -> Any:
    """Return a function with a cache of calls; it calls `python` for any other call."""

def cache_call(
    caller: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    op: int,
    params: tuple[Any, ...],
    order: Sequence[int],
    captured: list[tuple[Node, Array | None]],
    read: list[tuple[Array, Node]],
    form: Any,
    run: Callable[..., Any],
) -> None: ...
def traced_placeholder(handle: Handle) -> Any:
    """Return the placeholder of the value of a Handle in a trace; None if its Type is unknown."""

def forget_batches(op: int) -> None:
    """Forget the Executables of batches of an operation, by its number."""

def forget_op(id: int) -> None:
    """Forget the caches of an operation that is called no more, by its number."""

def batches_of(
    nodes: Sequence[Node], options: tuple[int, ...]
) -> list[tuple[int, list[int], bool, bool]] | None:
    """Return the batches of a graph in order; None for a graph that is not batched.

    Each is its signature, its positions in the linearized graph, whether it is one launch, and
    whether a limit separates it from the batch before.
    """

class Nodes(Sequence[Node]):  # as far as Tenfold uses it
    """A native sequence of nodes, without a Python object for each."""

    def __len__(self) -> int: ...
    def __getitem__(self, at: Any, /) -> Any: ...
    def clear(self) -> None: ...

def pending_of(arrays: tuple[Any, ...]) -> Nodes | int:
    """Return the pending nodes that are not submitted; or the position of an object that is not an
    Array. Of a storage kind they are its components.
    """

def pull_back(
    outputs: Sequence[Node],
    cotangents: Sequence[Array | None],
    wanted: Sequence[Node],
    rules: tuple[Any, ...],
    check: Callable[[Sequence[Node], Sequence[Node]], None] | None,
) -> list[Array | None]:
    """Return the cotangents of the wanted nodes, those of the outputs given; None: nothing.

    `rules` are the ops `add` and `stack`, the recipe and the rule of one node, the sum of contributions, that of a stack.
    `check` gets the nodes whose history is forgotten, and the first of which no cotangent goes on, before anything is made.
    """

def cache_kind_rule(
    op: int,
    operands: tuple[Any, ...],
    params: tuple[Any, ...],
    placeholders: list[Array],
    result: Array,
) -> None:
    """Let native code make of all operands of these Types what a rule made of placeholders."""

def weak_type(number: complex) -> Type:
    """Return the Type of a Python number."""

def sort_elements(
    rows: np.ndarray, columns: np.ndarray, row_count: int, column_count: int, threads: int, /
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (order, indices, indptr, group) of the elements of a matrix, sorted by row and column;
    `group`: the distinct place of each, empty if all are distinct; `order` is empty if they stand
    so. IndexError for an index out of range.
    """

def transpose_pattern(
    indices: np.ndarray, indptr: np.ndarray, columns: int, threads: int, /
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (indices, indptr, order) of the transposed matrix in compressed rows."""

def merge_patterns(
    x_indices: np.ndarray,
    x_indptr: np.ndarray,
    y_indices: np.ndarray,
    y_indptr: np.ndarray,
    columns: int,
    threads: int,
    /,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (indices, indptr, first, second): the union of two patterns, and the position of each
    element in both; -1 where it is none.
    """

def multiply_patterns(
    x_indices: np.ndarray,
    x_indptr: np.ndarray,
    y_indices: np.ndarray,
    y_indptr: np.ndarray,
    inner: int,
    columns: int,
    threads: int,
    /,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (indices, indptr, first, second, bounds): the product of two patterns, the positions
    of the factors of its terms, and where the terms of each element begin. OverflowError where the
    dtype cannot count the terms.
    """

def set_sparse_product(sum: int, multiply: int, gather: int, by_row: tuple[Any, ...]) -> None:
    """Name the operations of sparse products, which long graphs join, and the params of gathers of
    rows.
    """

def has_kind(value: object) -> bool:
    """Whether an object is an Array of a storage kind: not a dense one."""

def stored_node(array: Array) -> Node | None:
    """Return the node that an Array stores; unlike `node_of`, that of a view may be stale."""

def forget_history(nodes: Sequence[Node]) -> None:
    """Let no node below keep its history, unless one of them is watched."""

def readers_of(node: Node) -> list[Node]:
    """Return all pending nodes that read a node."""

def references_of(node: Node) -> tuple[int, int, int]:
    """Return the reference counts of a node, of its value, and of the memory of that."""

def identity_of(value: Value) -> tuple[int, int]:
    """Return numbers that identify a Value and its memory while both live."""

class ReadOnlyMemory:
    """The base of an exported ndarray: it keeps memory alive, and lends no buffer."""

    @property
    def memory_owner(self) -> Value | object: ...

def export_value(value: Value, keeper: object | None) -> np.ndarray[Any, Any]:
    """Return a read-only ndarray of a Value in host memory.

    `keeper` keeps the memory alive, in place of the Value.
    """

def pin_ndarray(values: np.ndarray[Any, Any], guards: object) -> np.ndarray[Any, Any]:
    """Return a read-only ndarray of the memory of another one, whose base hides its owner."""

def array_of(node: Node) -> Array: ...
def value_array(value: Value) -> Array: ...
def rebind(array: Array, node: Node) -> None: ...
def version_of(array: Array) -> int | None:
    """Return how often an Array, or the last base of a view, was rebound; None for a window."""

def take_place_of_view(array: Array, view: Array) -> None:
    """Exchange an Array and a view of it, of which all other views are views then."""

def adopt(values: np.ndarray[Any, Any], device: str) -> Value | None:
    """Make a Value of a plain ndarray of its own memory, which becomes read-only; else None."""

def open_window(array: Array, record: object) -> None:
    """Make an Array, which must not be a view, a window on memory of the user."""

def window_of(array: Array) -> Any:
    """Return the record of the window of an Array or of its base; None if there is none."""

def invalidate_views(array: Array) -> None:
    """Make every view of a window stale: its next use reads the window again."""

def is_unshared(value: Value, array: Array | None) -> bool:
    """Whether only this object, and the Array if given, refers to a Value's memory."""

def detach_readers(window: object, copy: Value, reader: Array, array: Array | None) -> None:
    """Give the holders of `window.value` the memory of a copy, and the window, if its Array lives,
    the Value of `reader`.
    """

class ReadersWriterLock:
    """The lock of external buffers: a signal cannot leave it locked."""

    enabled: bool
    """Whether an external buffer ever existed; before that no reader acquires the lock."""
    def is_reading(self) -> bool:
        """Whether this thread holds the lock for reading."""

    def reset(self) -> None:
        """Reset to an unlocked state, as the child of a fork does."""

    def read_lock(self) -> AbstractContextManager[None]:
        """Acquire for reading, after the active writer and writers that wait already."""

    def write_lock(self, is_alone: Callable[[], bool]) -> AbstractContextManager[None]:
        """Acquire for writing, once no other thread holds it or `is_alone()` is true."""

class Scope:
    """A block with changes that a signal cannot leave in force: pairs of a context variable and its
    value, or of two functions, for the entry and the exit. The exit undoes them in reverse.
    """

    def __init__(self, *changes: tuple[Any, Any]) -> None: ...
    def prepare(self) -> tuple[Any, Sequence[tuple[Any, Any]]]:
        """Return the value of the block, and the changes; a subclass may override it."""

    def ended(self, error: BaseException | None) -> None:
        """Called when all is undone, with the exception of the block; a subclass may override it."""

    def __enter__(self) -> Any: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

def list_orphans(orphans: dict[Any, Any]) -> None:
    """List what others read of windows that are freed from now on: the `orphan` of a window under
    its `memory`, after its `number` has been set, by which native code finds that memory.
    """

def swap_watched_memory(number: int, other: Value) -> bool:
    """Swap the memory of that number, for all its readers; False where no reader is left."""

def is_watched(number: int) -> bool:
    """Whether the memory of that number has readers."""

def swap_elements(value: Value, other: Value) -> None:
    """Swap the elements of two Values, for all their holders; the first is a view."""

def linearize(
    outputs: Sequence[Node], options: tuple[int, ...] = ()
) -> tuple[
    list[Node],
    list[tuple[int, ...]],
    list[int],
    list[bool],
    tuple[int, ...],
    list[bool],
    Structure | None,
]: ...

class Structure:
    """The key of a linearized graph under some options: all that its plan may depend on."""

    def is_computed(self, position: int) -> bool:
        """Whether a linearized node had its value."""

    def wants_template(self, able: bool, expects_others: bool = False) -> bool:
        """Whether to write a symbolic executable: the structure was planned for other lengths.

        Records the lengths.
        """

    @property
    def lengths(self) -> tuple[list[int], list[int]]:
        """The distinct lengths above 1, in order, and the axis of each.

        The last axis is 1; 0 stands for the lengths of all axes.
        """

    @property
    def is_cold(self) -> bool:
        """Whether it is small and rare, so that it is interpreted op by op."""

    @property
    def is_hot(self) -> bool:
        """Whether it has come often enough for a plan."""

class BlasLibrary:
    """A library with a thread pool, by the addresses of the functions that get and set its size.

    While limits are in force, it has the smallest number of threads of them.
    """

    def __init__(self, get: int, set: int) -> None: ...
    @property
    def threads(self) -> int: ...
    def limit_threads(self, threads: int) -> None: ...
    def unlimit_threads(self) -> None:
        """End a limit; the last one restores the library's number of threads."""

    @staticmethod
    def forget_holders() -> None:
        """End all limits, in the child of a fork."""

class Executable:
    """A schedule bound to programs: instructions over numbered slots for Values.

    A method appends the instruction of `runtime/instructions.py` with these fields.
    """

    ADDRESS: int
    """Instead of a slot: the launch takes the address of a library function."""

    @staticmethod
    def create(
        structure: Structure, device: str, slots: int, scalars: bool, parts: bool, runs: int
    ) -> Executable:
        """Begin an Executable. `scalars` and `parts`: whether other scalars and slice starts may
        use it; `runs`: its number of replays, -1 for no limit.
        """

    def load(self, slot: int, position: int, index: int) -> None: ...
    def allocate(
        self, slot: int, type: Type, nbytes: int, strides: Sequence[int], temporary: bool
    ) -> None: ...
    def share(self, slot: int, source: int, donated: Sequence[int]) -> None: ...
    def view(
        self, slot: int, source: int, type: Type, strides: Sequence[int], offset: int
    ) -> None: ...
    def launch(
        self,
        kernel: EntryPoint,
        finish: EntryPoint | None,
        finish_units: int,
        buffers: Sequence[tuple[int, int]],
        sizes: Sequence[int],
        scratch: int,
        units: int,
        grain: int,
        threads: int,
        uninterruptible: bool,
        label: str,
        source: int | None,
        numbers: Sequence[int | tuple[int, np.dtype, bool]],
        scratch_tables: Sequence[int],
        multiply_adds: int,
        scales: Sequence[tuple[bytes, np.dtype, bool, bool, Sequence[int]]],
        blas_libraries: Sequence[BlasLibrary],
        blas_threads: int,
        extra_work: tuple[int, int, int, int, int] | None,
        written: int,
    ) -> None: ...
    def call(
        self,
        function: Callable[..., Sequence[Value]],
        inputs: Sequence[int],
        outputs: Sequence[int],
        label: str,
        multiply_adds: int,
        temporary: bool,
        of_user: bool,
        source: int | None,
    ) -> None: ...
    def count_copy(self) -> None: ...
    def count_use(self, counter: UseCounter) -> None: ...
    def drop(self, slots: Sequence[int]) -> None: ...
    def publish(self, position: int, slots: Sequence[int]) -> None: ...
    def mark_passed_through(self, position: int) -> None: ...
    def cache(self, structure: Structure) -> None:
        """Cache it under the key of its structure."""

    def cache_template(
        self,
        structure: Structure,
        constants: Sequence[int],
        rows: Sequence[tuple[str, int, int]],
        guards: Sequence[tuple[str, int]],
        inferred: Sequence[int],
        numbers: Sequence[tuple[str, int, int, int]],
        shapes: Sequence[tuple[int, Sequence[int]]],
    ) -> bool:
        """Cache it as the symbolic executable for other lengths that satisfy the guards.

        The operands of `rows` are registers; `numbers` are (field, instruction, index, register).
        False if one of them does not exist.
        """

class UseCounter:
    """The launches of an unoptimised program; when it is hot it calls `request` until it is true."""

    def __init__(self, request: Callable[[], bool]) -> None: ...
    def add(self) -> None: ...
    @property
    def uses(self) -> int: ...

class Failure:
    """A run of an Executable that failed: its instruction, and why."""

    @property
    def operation(self) -> str:
        """The operations of the instruction, joined by "+"."""
    @property
    def node(self) -> Node | None:
        """The node that it computes, of several the last; None if a rule has made it."""
    @property
    def cause(self) -> str:
        """One of input, memory, values and exception."""
    @property
    def nbytes(self) -> int:
        """The bytes of memory that were not there."""
    @property
    def error(self) -> Exception | None:
        """What a Python callback raised."""

class Handle:
    """The future value of a pushed operator; see Engine.push."""

    def get(self, timeout: float | None = None) -> Any:
        """Wait for the value and return it: an Array, or the user's object.

        Raises what the operator raised, CancelledError when it was cancelled, and TimeoutError
        after `timeout` seconds.
        """
    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait as `get` does and return what it would raise, or None."""
    def result(self, timeout: float | None = None) -> Any:
        """The same as `get`, by the name of `concurrent.futures`."""
    def add_done_callback(self, function: Callable[[Handle], object], /) -> None:
        """Call `function(handle)` on a worker once the value or an error is there, or at once."""
    def done(self) -> bool:
        """Whether the value is there, or an error; never waits."""
    def cancel(self) -> bool:
        """Cancel the operator and all that depends on it; False once it has started."""
    def __await__(self) -> Generator[Any, None, Any]: ...
    def _call_when_settled(self, function: Callable[[], object], /) -> bool:
        """Call a function on a worker once the value is there; False if it is there already."""

class Engine:
    """The native part of tenfold.engine.engine.Engine."""

    def __init__(
        self, threads: int, batch_limit: int, batch_wait: int, memory_limit: int, /
    ) -> None: ...
    @property
    def closed(self) -> bool:
        """Whether nothing can be pushed any more."""
    def put(self, value: Any, /) -> Handle:
        """Return the Handle of a value."""
    def push(self, operator: Any, /, *inputs: Any, **params: Any) -> Handle:
        """Run an operator once its inputs are done; return the Handle of its result at once."""
    def flush(self, handle: Handle | None = None, /) -> None:
        """Run the ancestors of a Handle, or everything, and wait for them."""
    def _finish(self) -> None: ...
    def _begin_hold(self) -> None: ...
    def _end_hold(self) -> None: ...
    def _close(self, cancel: bool, seconds: float, /) -> bool:
        """Close the engine; return whether all threads ended in that time."""
    def _statistics(self) -> dict[str, Any]: ...
    def _pending(self) -> list[tuple[int, str, str, tuple[int, ...]]]:
        """Return the pending operators: number, name, state, numbers of pending inputs."""

def shut_down_engines(seconds: float) -> list[tuple[str, bool]]:
    """Finish impure work of all engines within so many seconds, and cancel the rest.

    Returns the names of the rest, and whether each is running.
    """

def take_engine_trace() -> tuple[
    list[tuple[str, str, int, int, int, tuple[int, ...], tuple[int, ...], float]],
    list[tuple[str, str, int, int, int, tuple[int, ...], tuple[int, ...], float]],
    list[tuple[int, int, int, int]],
]:
    """Take the trace: (name, category, begin, end, thread, operators, inputs, depth) of each push,
    each ready operator and each step; the same of running steps, up to now; and (time, live bytes,
    live objects, pending) after each step.
    """

def inside_operator() -> bool:
    """Whether this thread is running an operator of an engine."""

def compute_at_call(results: object, /, *operands: Array) -> bool:
    """Whether a result of an operation that may fail and the operands have their values now, by
    native code alone.
    """

def try_compute(array: Array) -> bool:
    """Compute an Array by a cached plan, unless it is large; return whether it has its value."""

def are_all_small(nodes: Sequence[Node]) -> bool:
    """Whether all are so small that computing takes less time than waking a thread."""

def submit(nodes: Nodes) -> None:
    """Make threads that need one of the nodes wait until `end_submission`."""

def end_submission(nodes: Nodes) -> None:
    """Wake the threads that wait for these nodes, and release them."""

def forget_submissions() -> None:
    """Release all submitted nodes, in the child of a fork."""

def run_submissions_here(here: bool) -> None:
    """Set whether this thread computes a submission, so that it waits for none."""

def times_stopped() -> int:
    """Return how often loops of submitted evaluations were told to stop; 0 outside of one."""

def run_loop(
    op: int,
    params: tuple[Any, ...],
    carried: list[Value],
    read: Sequence[Value],
    shared: Sequence[Value],
    written: Sequence[Value],
    steps: int,
    backwards: bool,
    until: bool,
    compute: Callable[[int, list[Node]], None],
) -> bool:
    """Run a loop: an operation so many times, and return whether it goes on.

    With `until` it ends after the step whose last result is false.

    A step takes `carried`, which its results replace, a row of each `read` array, and `shared`.
    Its other results become a row of each `written` array. `compute` gets the number and the
    nodes of a step without a cached plan, or that failed. Every eighth step lets other threads
    have the GIL.
    """

def replay(
    parts: list[Sequence[Node]],
    options: tuple[int, ...],
    events: list[tuple[str, str, int, int]] | None = None,
    planned: bool = False,
    made: Executable | None = None,
    divides: bool = False,
) -> bool | Failure:
    """Compute the nodes of each part by their cached plan, by `made`, or op by op if they are cold
    and `planned` is false. With `divides` a long graph is computed step by step.

    Return True, or why the first part that is left in the list was not computed: False if none of
    these is possible, the Failure if an instruction of the plan failed.

    `events` gets the name, category, begin and end (ns) of each launch and call.
    """

def steps_of(nodes: Sequence[Node]) -> list[tuple[list[Node], int, int]]:
    """Return the parts in which a long graph is computed: the results, the number of steps, and a
    number of their structure. None for a graph that is computed as a whole or in batches.
    """

def find_plan(arrays: Sequence[Array]) -> Executable | None:
    """Return the plan of pending arrays that is cached, or follows from one of other lengths."""

def run_apart(executable: Executable, nodes: Sequence[Node]) -> list[tuple[Value, ...]] | None:
    """Return the values of nodes by a plan, without publishing them; None if it fails."""

def disable_deferral(node: Node) -> None:
    """Compute assignments such as this one at once from now on, not together."""

def num_cached_plans() -> int: ...
def num_cached_templates() -> int: ...
def set_templates_enabled(now: bool) -> None:
    """Switch symbolic executables on or off; they are on at first."""

def clear_plan_cache() -> None: ...
def caches() -> list[tuple[str, int, int, str, int | None]]:
    """Return for each native cache its name, entries, capacity, reason, and bytes if known."""

def truncate_hashes(bits: int) -> None:
    """Truncate the hashes of all caches to so many bits, and empty the caches (for tests)."""

def pool_bytes() -> tuple[int, int]:
    """Return the bytes in the allocation pool, and its capacity."""

class Headroom:
    """Address space that new arrays leave free while this lives."""

def reserve_headroom(num_bytes: int) -> Headroom | None:
    """Reserve address space for LLVM: new arrays leave it free. None if it is not free."""

def guard_pages() -> bool:
    """Whether each array lies between unmapped pages: TENFOLD_GUARD at import."""

def is_special_value(number: bool | int | float | complex) -> bool:
    """Whether plan keys contain this number: rules may depend on it."""

def set_options_variable(variable: ContextVar[Options]) -> None: ...
def set_process_options(options: Options) -> None: ...
def enable_option_blocks() -> None: ...
def function(
    python: Callable[..., Any], op: int, elements: int, bind_depends_on: str
) -> Callable[..., Any]: ...
def function_with_path(python: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function that calls native code, and `python` where that leaves the call to it."""

def enter_internal_block(begins: bool) -> None: ...
def set_process_rules(number: int) -> None: ...
def set_storable_bytes(storable: int) -> None:
    """Set the largest value that an evaluation stores only because another one needs it, too."""

def set_rules_variable(variable: ContextVar[Any], none: object) -> None: ...
def count_recorders(by: int) -> None:
    """Open or close so many recorders of a timeline: engines trace while one is open."""

def block_runner() -> int:
    """Return the address of the function that runs blocks of threads on the host."""

def processor_level() -> int:
    """Return the highest level of x86-64 (1 to 4) that this processor has."""

def processor_identity() -> list[int]:
    """Return numbers of vendor, model and features: equal on processors that run the same code."""

class EntryPoint:
    """A function of loaded machine code, which it keeps loaded."""

    @property
    def address(self) -> int: ...

def lapack_driver(name: str, complex: bool) -> tuple[EntryPoint, int]:
    """The kernel of a LAPACK driver for real or complex numbers, and how many sizes it reads.

    Raises KeyError without such a driver.
    """

def load_code(code: bytes, places: Sequence[int]) -> list[EntryPoint]:
    """Copy machine code to executable memory; return its functions, none if memory runs out."""

def loaded_code_bytes() -> int: ...
def set_hooks(**hooks: Callable[..., Any] | ContextVar[Any]) -> None: ...
def set_missing_attribute(function: Callable[[Array, str], Any]) -> None:
    """Set the function that is called for public names that Array does not have."""

def read_counters() -> dict[str, int]: ...
def count(name: str, by: int = 1) -> None: ...
def trim() -> int: ...
def begin_library_call() -> None:
    """Note a call of BLAS or LAPACK on a daemon thread: while one runs, the process exits without
    destructors of libraries.
    """

def end_library_call() -> None:
    """Note its end."""

def launch(
    kernel: EntryPoint | int,
    buffers: Sequence[Value | int],
    sizes: bytes,
    scalars: bytes,
    scratch: int,
    units: int,
    grain: int,
    threads: int,
    /,
) -> int:
    """Run a kernel, or the function at an address, over [0, units) in ranges of `grain` units.

    Takes Values or addresses, `sizes` and `scalars` as bytes, 8 for each, `scratch` in bytes for
    each thread. At most `threads` threads take part; 0 keeps the GIL, for work of microseconds.
    Returns the smallest status of a range that is not 0, or 0. Raises MemoryError for the scratch,
    and on Python's main thread, within 100 ms or a range, what a signal handler raises: all threads
    have left the kernel then.
    """

def set_threads(threads: int) -> None:
    """Set the number of threads of a launch, with its caller; 1 at first."""

def threads() -> int: ...
def fail_allocation(n: int) -> None:
    """Make the n-th allocation of the pool from now fail, once; 0 cancels it."""

def reset_float_modes() -> int:
    """Set this thread's floating-point modes to the default; return the modes before."""

def restore_float_modes(modes: int) -> None: ...
def live_bytes() -> int:
    """Return the bytes of the pool that Values use."""
