"""What the native core gives to Python. Array's operators and methods are in the public stubs."""

from collections.abc import Callable, Generator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from tenfold._methods import Methods

class Type:
    """Interned (shape, dtype, device, storage kind); a weak one is a Python scalar's."""

    def __init__(
        self,
        shape: Sequence[int],
        dtype: np.dtype,
        device: str,
        storage: str = "dense",
        weak: bool = False,
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
    def weak(self) -> bool: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...

class Value:
    """A Type and the buffers of its elements; exports its first buffer's bytes, if it is no part.

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
    def part(self) -> bool: ...
    @property
    def owner(self) -> object: ...
    def view(self, type: Type, strides: Sequence[int], offset_bytes: int) -> Value:
        """Part of this Value's memory: `offset_bytes` from its element at index 0.

        Raises ValueError where that leaves memory of the pool.
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
        """Memory of `owner` from `address` on; the element at index 0 is `offset` bytes further."""

    @staticmethod
    def allocate(type: Type, nbytes: int) -> Value: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Node:
    """One operation applied to inputs, or a leaf; `op` is None for a leaf and for a `part`."""

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
        """The most assignments on a way down that are pending."""

    @property
    def pending(self) -> bool: ...
    @property
    def is_scalar(self) -> bool: ...
    @property
    def scalar(self) -> complex: ...
    @property
    def origin(self) -> tuple[str, int] | None: ...
    def read_in_part(self, mark: bool = True) -> bool: ...
    @property
    def takes_part(self) -> bool:
        """Whether it is an `index`: its parameters say what is taken of an array."""

    def picks(self, array: Type) -> list[int]:
        """What it takes of an array of this Type: four numbers for each axis, then the new axes."""
    def value(self, index: int = 0) -> Value | None: ...
    def publish(self, values: Sequence[Value]) -> None: ...

class Options:
    """The options the core looks at itself."""

    def __init__(
        self,
        strict: bool,
        device: int,
        pending_depth: int,
        origins: bool,
        number: int,
        of_process: int,
        op_by_op: bool,
        threads: int,
        batch_limit: int,
        rules: bool,
        verify: bool,
    ) -> None: ...

class Array(Methods):
    """A lazy array: an expression, computed or not."""

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
def declare_storage(name: str) -> int: ...
def declare_weak_types(four: Sequence[np.dtype]) -> None: ...
def declare_op(
    op: object,
    name: str,
    view: bool,
    can_fail: bool,
    whole_exponent: bool,
    assigns: bool = False,
    shapes: str = "",
    rule_free: bool = False,
    folds: str = "",
    weight: int = 1,
    pure: bool = True,
    merges: bool = True,
    unbounded_time: bool = False,
    multiplies: bool = False,
    is_permanent: bool = True,
) -> int: ...
def op_record(id: int) -> object:
    """Return what frees the record of an operation when it is freed itself."""

def declared_ops() -> int: ...
MOST_PENDING: int
MOST_READ: int
HOT_THRESHOLD: int
LONG: int

def set_part_ops(index: int, update: int) -> None:
    """Say which operations `x[key]` and `x[key] = e` are for ints, slices, `...` and None."""

def bind_symbol(symbol: str, op: int) -> None: ...
def apply(op: int, inputs: tuple[Any, ...], params: tuple[Any, ...] | None) -> Any: ...
def placeholder(type: Type) -> Array: ...
def node_of(array: Array) -> Node: ...

class TraceLog:
    """What this thread looks at, makes and changes from `begin` to `end`."""

    def begin(self) -> None: ...
    def end(self) -> list[Array]:
        """Put Arrays that were changed, and not made, back; return those that were others by now."""

    @property
    def seen(self) -> list[tuple[Array, Node]]:
        """Arrays that were looked at, and not made, and what they were; none as it was changed to."""

def caller(python: Callable[..., Any]) -> Any:
    """Return what is called like a function; where it remembers no such call, `python` is."""

def remember_call(
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
def set_fields(function: Callable[[type], tuple[str, ...] | None]) -> None: ...
def set_pushed_calls(trace: Callable[..., None], later: Callable[..., Any]) -> None:
    """Name what traces a function for arguments with handles, and what calls it when they are there
    (tenfold/transforms/pushed_functions.py).
    """

def stand_in(handle: Handle) -> Any:
    """Return what a trace takes for the Array that will be there, or the number; None where that is
    not known.
    """

def set_groups(group: Callable[..., Any]) -> None:
    """Name what computes members of a group together."""

def forget_groups(op: int) -> None:
    """Forget by what groups of an operation of this number are computed."""

def forget_op(id: int) -> None:
    """Forget what is known of an operation of which no new calls come."""

def groups_of(
    nodes: Sequence[Node], options: Sequence[int]
) -> list[tuple[int, list[int], bool, bool]] | None:
    """Return what would be computed together, in its order: the number of a group, positions in the
    walk, whether together, and whether a limit cut them off from those before; None where a graph
    does not go in groups.
    """

class Nodes(Sequence[Node]):  # as far as Tenfold uses it
    """Nodes that are handed on without being looked at one by one."""

    def __len__(self) -> int: ...
    def __getitem__(self, at: Any, /) -> Any: ...
    def clear(self) -> None: ...

def pending_of(arrays: tuple[Any, ...]) -> Nodes | int:
    """Return the nodes that are to be computed, and not submitted yet; or the position of what is no
    Array.
    """

def kept_node(array: Array) -> Node | None:
    """Return the node an Array keeps; unlike `node_of`, that of a view may be out of date."""

def readers_of(node: Node) -> list[Node]:
    """Return the nodes, of all there are, that read a node and are not computed."""

def references_of(node: Node) -> tuple[int, int, int]:
    """Return how often a node is counted; how often its value and the memory of that, beside it."""

def identity_of(value: Value) -> tuple[int, int]:
    """Return what tells a Value and its memory from all others that there are."""

def array_of(node: Node) -> Array: ...
def value_array(value: Value) -> Array: ...
def rebind(array: Array, node: Node) -> None: ...
def open_window(array: Array, record: object) -> None:
    """Make an Array that is no view a window on memory of the user's; it keeps the record."""

def window_of(array: Array) -> Any:
    """Return the record of the window that an Array is, or is a view of; else None."""

def forget_views(array: Array) -> None:
    """Let every view of a window look at it anew when it is next asked for."""

def is_alone(value: Value, array: Array | None) -> bool:
    """Whether nothing but this handle, and the Array if there is one, sees a Value's memory."""

def exchange_memory(value: Value, other: Value) -> None:
    """Exchange the memory of two Values, for whoever sees them."""

def exchange_part(value: Value, other: Value) -> None:
    """Exchange the elements of two Values, of which the first is a part, for whoever sees them."""

def drain() -> None:
    """Give back the Python objects that kept memory which nobody sees any more."""

def walk(
    outputs: Sequence[Node], options: Sequence[int] = ()
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
    """The key of a walk under some options: what a plan of it may depend on."""

    def computed(self, position: int) -> bool:
        """Whether a walked node had its value."""

    def wants_template(self, able: bool) -> bool:
        """Whether who is able to write a template is to: its form, the structure without lengths,
        was planned for others. Notes the lengths.
        """

    @property
    def lengths(self) -> tuple[list[int], list[int]]:
        """The lengths above 1 of the values in the walk, each once, as they come; and of each the
        axis, the last one is 1, or 0 where those of all axes are compared.
        """

    @property
    def op_by_op(self) -> bool:
        """Whether it is computed node by node while it has no plan: seen seldom, and small."""

    @property
    def hot(self) -> bool:
        """Whether it is no more, since it has come often."""

class ThreadedLibrary:
    """A library with threads of its own, by the addresses of the functions that get and set how
    many they are. While somebody holds it they are the fewest that were asked for.
    """

    def __init__(self, get: int, set: int) -> None: ...
    @property
    def threads(self) -> int: ...
    def hold(self, threads: int) -> None: ...
    def let_go(self) -> None:
        """The last to do so gives back the threads that it had."""

    @staticmethod
    def forget_holders() -> None:
        """In the child of a fork: let all go."""

class Executable:
    """A plan as native code replays it: instructions over numbered slots for Values."""

    NOWHERE: int
    """In the place of a slot: a launch is given an address, of a function of a library."""

    @staticmethod
    def of(structure: Structure, slots: int, scalars: bool, parts: bool, runs: int) -> Executable:
        """Begin one: for these scalars, and these places of parts, alone, or for others too; `runs`:
        how often, -1 for without end.
        """

    def load(self, slot: int, position: int, index: int) -> None: ...
    def allocate(
        self, slot: int, type: Type, nbytes: int, strides: Sequence[int], temporary: bool
    ) -> None: ...
    def share(self, slot: int, source: int) -> None: ...
    def view(
        self, slot: int, source: int, type: Type, strides: Sequence[int], offset: int
    ) -> None: ...
    def launch(
        self,
        programs: tuple[EntryPoint, EntryPoint | None],
        finished: int,
        buffers: list[tuple[int, int]],
        tables: Sequence[int],
        sizes: bytes,
        numbers: list[bytes | tuple[int, np.dtype, bool]],
        scratch: int,
        units: int,
        grain: int,
        threads: int,
        whole: bool,
        label: str,
    ) -> None: ...
    def product(self, multiply_adds: int) -> None:
        """Say that the last launch is a product."""

    def scale(
        self, element: bytes, dtype: np.dtype, negative: bool, factors: Sequence[int]
    ) -> None:
        """Say what it is given behind its numbers, 16 bytes: an element, or where there are any the
        product of factors, slots or ~positions of scalars.
        """

    def holding(self, libraries: Sequence[ThreadedLibrary], threads: int) -> None:
        """Say which libraries are held for the last launch, to how many threads at most."""

    def more(self, slot: int, first: int, apart: int, numbers: int, multiply_adds: int) -> None:
        """Say what is counted as well for each of so many float64 of a slot that the last launch
        leaves other than 0, which begin `first` bytes on and lie so many apart.
        """

    def count_copy(self) -> None: ...
    def claim(self, position: int) -> None:
        """Say that the value of a walked node is written over."""

    def call(
        self,
        function: Callable[..., Sequence[Value] | None],
        inputs: Sequence[int],
        outputs: Sequence[int],
        label: str,
    ) -> None: ...
    def drop(self, slots: Sequence[int]) -> None: ...
    def publish(self, position: int, slots: Sequence[int]) -> None: ...
    def mark(self, position: int) -> None: ...
    def keep(self, structure: Structure) -> None:
        """Let it be found by the key of its walk."""

    def keep_template(
        self,
        structure: Structure,
        constants: Sequence[int],
        rows: Sequence[tuple[str, int, int]],
        guards: Sequence[tuple[str, int]],
        inferred: Sequence[int],
        numbers: Sequence[tuple[str, int, int, int]],
        shapes: Sequence[tuple[int, Sequence[int]]],
    ) -> bool:
        """Let it be the pattern of plans for other lengths, for which the guards hold. Of `rows`
        the operands are registers; `numbers` are (field, instruction, index, register). False
        where something of that is not there.
        """

class Handle:
    """The future value of a pushed operator; see Engine.push."""

    def get(self, timeout: float | None = None) -> Any:
        """Wait for the value and return it: an Array, or the user's object.

        Raises what the operator raised, CancelledError when it was cancelled, and TimeoutError
        after `timeout` seconds.
        """
    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait as `get` does and return what it would raise, or None."""
    def done(self) -> bool:
        """Whether the value is there, or an error; never waits."""
    def cancel(self) -> bool:
        """Cancel the operator and all that depends on it; False once it has started."""
    def __await__(self) -> Generator[Any, None, Any]: ...
    def _call(self, function: Callable[[], object], /) -> bool:
        """Have a worker call it once there is a value; False where there is one by now."""

class Engine:
    """The native part of tenfold.engine.engine.Engine."""

    def __init__(
        self, threads: int, batch_limit: int, batch_wait: int, memory_limit: int, /
    ) -> None: ...
    @property
    def closed(self) -> bool:
        """Whether nothing can be pushed any more."""
    def put(self, value: Any, /) -> Handle:
        """Return the Handle of a value that is there."""
    def push(self, operator: Any, /, *inputs: Any, **params: Any) -> Handle:
        """Have an operator run once its inputs are there, and return the Handle of its result at
        once.
        """
    def flush(self, handle: Handle | None = None, /) -> None:
        """Have what a handle needs run, or everything, and wait until it has."""
    def _finish(self) -> None: ...
    def _hold(self) -> None: ...
    def _let_go(self) -> None: ...
    def _close(self, cancel: bool, seconds: float, /) -> bool:
        """Close it; whether all threads have ended in that time."""
    def _statistics(self) -> dict[str, Any]: ...
    def _pending(self) -> list[tuple[int, str, str, tuple[int, ...]]]:
        """What is pending: number, name, state, numbers of the inputs that are pending."""

def set_engine_hooks(**hooks: object) -> None: ...
def end_engines(seconds: float) -> list[tuple[str, bool]]:
    """Have impure work of all engines end within so many seconds, and cancel the rest: return its
    names, and whether it runs.
    """

def trace_engines(now: bool) -> None:
    """Whether engines note what they do from now on."""

def take_engine_trace() -> tuple[
    list[tuple[str, str, int, int, int, tuple[int, ...], tuple[int, ...], float]],
    list[tuple[str, str, int, int, int, tuple[int, ...], tuple[int, ...], float]],
    list[tuple[int, int, int, int]],
]:
    """Take what was noted: (name, category, begin, end, thread, operators, inputs, depth) of each
    push, of each operator whose inputs came, and of each step; the same of steps that have not
    ended, up to now; and (time, live bytes, live objects, pending) after each step.
    """

def inside_operator() -> bool:
    """Whether this thread is running an operator of an engine."""

def replayed(array: Array) -> bool:
    """Whether an Array has its value, or has it by a known plan; a large one is left alone."""

def are_small(nodes: Sequence[Node]) -> bool:
    """Whether they are computed sooner than a thread is woken for it."""

def submit(nodes: Nodes) -> None:
    """Let whoever reaches one of the nodes wait until `end_submission`."""

def end_submission(nodes: Nodes) -> None:
    """Wake who waits for these nodes, and let them go."""

def forget_submissions() -> None:
    """Let nobody wait any more for what has been submitted."""

def run_submissions_here(here: bool) -> None:
    """Say whether this thread is computing a submission; it waits for none."""

def repeat(
    op: int,
    params: tuple[Any, ...],
    carried: list[Value],
    read: Sequence[Value],
    shared: Sequence[Value],
    written: Sequence[Value],
    steps: int,
    backwards: bool,
    compute: Callable[[int, list[Node]], None],
    pause: Callable[[], None],
) -> None:
    """Compute an operation so many times, or with -1 until its last result is false: on `carried`,
    which becomes what it made last, on a row of each array that is `read` and on what is `shared`.
    What it makes besides becomes a row of each array that is `written`.

    `compute` is given the number and the nodes of a step that no plan is known for, or that failed;
    `pause`, a function of Python's, runs now and then, so that other threads do.
    """

def replay(
    nodes: Sequence[Node],
    options: Sequence[int],
    events: list[tuple[str, str, int, int]] | None = None,
    planned: bool = False,
    made: Executable | None = None,
) -> bool:
    """Compute nodes by the plan that is kept for them, or that was just made for them, or without
    one, unless one is asked for, node by node where they were seen seldom; False where neither
    goes, or it failed.

    Each launch and call is put behind `events`: its name and category, begin and end in ns.
    """

def keep_apart(node: Node) -> None:
    """Let assignments such as this one be computed one by one."""

def kept_plans() -> int: ...
def kept_templates() -> int: ...
def use_templates(now: bool) -> None:
    """Whether plans for other lengths are made of templates; they are at first."""

def forget_plans() -> None: ...
def caches() -> list[tuple[str, int, int, str, int | None]]:
    """Return for each native cache its name, entries, capacity, reason, and bytes if known."""

def cut_hashes(bits: int) -> None:
    """Cut the hashes that lead to entries of caches, and forget these."""

def pool_bytes() -> tuple[int, int]:
    """Return the bytes that are kept for reuse, and how many may be."""

def reserve_headroom(num_bytes: int) -> bool:
    """Reserve address space for LLVM: new arrays leave it free. False if it is not free."""

def release_headroom(num_bytes: int) -> None: ...
def guard_pages() -> bool:
    """Return what TENFOLD_GUARD said when this module was loaded: whether each array lies between
    unmapped pages.
    """

def is_notable(number: bool | int | float | complex) -> bool:
    """Whether keys of plans tell this number from others."""

def set_options_variable(variable: ContextVar[Options]) -> None: ...
def set_process_options(options: Options) -> None: ...
def open_block() -> None: ...
def function(
    python: Callable[..., Any], op: int, elements: int, bind_depends_on: str
) -> Callable[..., Any]: ...
def set_loops(
    loop: Callable[..., tuple[EntryPoint, list[tuple[int, int, int]]] | None],
    fold_loop: Callable[..., tuple[EntryPoint, np.dtype, int, int]],
    movement: Callable[..., tuple[tuple[int | None, int, int], ...] | None],
    device: int,
) -> None:
    """Say what makes the loop of an operation on elements, what that of a reduction
    (tenfold/runtime/reduction_kernels.py), and what says how a view reads its input:
    tenfold/runtime/op_kernels.py.
    """

def pass_block(begins: bool) -> None: ...
def set_process_rules(number: int) -> None: ...
def set_rules_variable(variable: ContextVar[Any], none: object) -> None: ...
def set_watched(now: bool) -> None: ...
def processor_level() -> int:
    """The highest level of x86-64 (1 to 4) that this processor has."""

def processor_identity() -> list[int]:
    """What stands for vendor, model and features: equal on processors that run the same code."""

class EntryPoint:
    """A function of loaded code, which stays as long as one of its functions, a plan or a loop."""

    @property
    def address(self) -> int: ...

def lapack_driver(name: str, complex: bool) -> tuple[EntryPoint, int]:
    """The kernel of a LAPACK driver for real or complex numbers, and how many sizes it reads.

    Raises KeyError without such a driver.
    """

def load_code(code: bytes, places: Sequence[int]) -> list[EntryPoint]:
    """Copy machine code to memory that can be executed; its functions, or none where that fails."""

def loaded_code_bytes() -> int: ...

class Doubt(Exception):
    """Something on disk is not as we would have left it; the text says what."""

LARGEST_ENTRY: int
LONGEST_NOTE: int

_Entry = tuple[bytes, bytes, bytes, tuple[int, ...], int, float, str]
"""The fields of tenfold/jit/cache_entry.py."""

def open_directory(place: bytes, user: int) -> int:
    """Open a directory that belongs to a user and is closed to others. Raises Doubt, OSError."""

def read_entry(directory: int, name: str, user: int) -> _Entry:
    """Read a kernel's file in an open directory. Raises Doubt, OSError."""

def load_entry(
    directory: int, key: bytes, environment: bytes, functions: int, user: int
) -> list[EntryPoint]:
    """Load the kernel of a key from an open directory: its functions, so many, or none where the
    system refuses memory for them. Raises Doubt, OSError.
    """

def sha256(data: bytes) -> bytes: ...

def set_hooks(**hooks: Callable[..., Any]) -> None: ...
def read_counters() -> dict[str, int]: ...
def count(name: str, by: int = 1) -> None: ...
def trim() -> int: ...
def begin_library_call() -> None:
    """A call of BLAS or LAPACK begins on a daemon thread: while one runs, the process ends without
    the destructors of libraries.
    """

def end_library_call() -> None:
    """It has ended."""

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
    """Run a kernel, or what stands at an address, over [0, units), cut in ranges of `grain` units.

    Takes Values or addresses, `sizes` and `scalars` as bytes, 8 for each, `scratch` in bytes for
    each thread. At most `threads` threads take part; 0 keeps the GIL, for work of microseconds.
    Returns the smallest status of a range that is not 0, or 0. Raises MemoryError for the scratch,
    and on Python's main thread, within 100 ms or a range, what a signal handler raises: all threads
    have left the kernel then.
    """

def set_threads(threads: int) -> None:
    """Set how many threads a launch may run on, its caller's included; 1 until it is set."""

def threads() -> int: ...
def fail_allocation(n: int) -> None:
    """Let the n-th allocation of the pool from now fail, once; 0 takes that back."""

def take_float_modes() -> int:
    """Set this thread's floating-point modes to the usual ones; return what they were."""

def give_float_modes(modes: int) -> None: ...
def live_bytes() -> int:
    """Bytes of the pool that Values hold."""
