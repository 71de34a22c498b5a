"""`tenfold cache`: lists, warms, verifies and clears the compiled kernels in the disk cache.

Takes the name of a command; prints lines on stdout. The directory and its limit are the settings
`cache_dir` and `cache_limit`.

    tenfold cache warm
    tenfold cache list
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from tenfold.cli.doctor import MIB
from tenfold.cli.warming import DEFAULT_DTYPES, fold_loops, kernels, loops
from tenfold.dtypes import DTYPES
from tenfold.inspect.progress import Progress
from tenfold.io.input_errors import InputError, error_text
from tenfold.jit import kernel_cache
from tenfold.jit.cache_entry import InvalidEntry
from tenfold.jit.disk_cache import DiskCache, UnusableDirectory
from tenfold.jit.program import PROGRAMS
from tenfold.jit.target_key import environment
from tenfold.settings import get

INTERRUPTED = 130
NAME_LENGTH = 12
"""Characters of a shown entry name."""


@click.group("cache")
def cache_command() -> None:
    """Show, fill, check or empty the cache of compiled kernels on disk.

    A kernel that a process has compiled is kept there, and later processes run it without
    compiling. `tenfold doctor` says where it is.
    """


@cache_command.command("list")
def list_command() -> None:
    """List the kernels, last used first: name, size, last use, tier, compiling, what it computes.

    Those that are damaged are listed as such: tenfold cache verify says why.
    """
    store = open_store()
    files = store.files()
    for file in files:
        last_use = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.last_used))
        try:
            entry = store.read(file.name)
        except (InvalidEntry, OSError):
            description = f"{'':15}  damaged"
        else:
            tier = 1 if entry.level else 0
            description = f"tier {tier} {entry.seconds * 1e3:6.1f} ms  {entry.note}"
        click.echo(
            f"{file.name[:NAME_LENGTH]}  {file.size / 1024:6.1f} KiB  {last_use}  {description}"
        )
    total = sum(file.size for file in files)
    click.echo(f"{len(files)} kernels, {total / MIB:.1f} of {store.limit // MIB} MiB")


@cache_command.command("clear")
def clear_command() -> None:
    """Remove every kernel from the disk; running processes are not disturbed."""
    store = open_store()
    size = sum(file.size for file in store.files())
    click.echo(f"removed {store.clear()} kernels, {size / MIB:.1f} MiB")


@cache_command.command("verify")
@click.option("--remove", is_flag=True, help="Remove the kernels that are damaged.")
def verify_command(remove: bool) -> None:
    """Read every kernel and check it, as is done before one is run.

    Exit code 3 if one is damaged. Kernels of other versions or processors are counted apart: they
    are right, and not used here.
    """
    store = open_store()
    damaged: dict[str, str] = {}
    current_target, foreign = environment(str(get("cpu"))), 0
    files = store.files()
    for file in files:
        try:
            foreign += store.read(file.name).environment != current_target
        except (InvalidEntry, OSError) as error:
            damaged[file.name] = error_text(error)
    for name, reason in damaged.items():
        click.echo(f"{name[:NAME_LENGTH]}  {reason}")
    sound = len(files) - len(damaged)
    click.echo(f"{sound} kernels are right, {foreign} of them for other versions or processors")
    if remove:
        click.echo(f"removed {store.remove(list(damaged))} that are damaged")
    elif damaged:
        kernels = "kernel is" if len(damaged) == 1 else "kernels are"
        raise InputError(f"{len(damaged)} {kernels} damaged; remove them with --remove")


@cache_command.command("warm")
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    metavar="DTYPE",
    help=f"Of these operands; may be repeated. Without: {', '.join(DEFAULT_DTYPES)}.",
)
def warm_command(dtypes: Sequence[str]) -> None:
    """Compile beforehand what most programs need first.

    For contiguous arrays that fit into the processor's cache it compiles constant fills, each
    elementwise operation (on two arrays, and on an array and a number) and each conversion between
    dtypes. It also compiles each reduction over all elements, rows and columns. For small arrays of
    any strides it compiles the strided kernels of the op interpreter, also for float64 mixed with
    float32 or int64. Longer formulas are compiled when they are hot, and cached as well. It takes
    some fifty seconds, and a few when all entries exist.
    """
    for name in dtypes:
        if name not in DTYPES:
            raise click.UsageError(f"unknown dtype {name!r}; there are: {', '.join(DTYPES)}")
    store, cpu = open_store(), str(get("cpu"))
    count_before, begin = len(store.files()), time.perf_counter()
    with Progress() as progress:
        progress.stage("planning")
        dtype_names = dtypes or DEFAULT_DTYPES
        sources = [*kernels(dtype_names), *fold_loops(dtype_names), *loops(dtype_names)]
        progress.stage("compiling kernels", len(sources))
        try:
            for kernel in sources:
                PROGRAMS.compile(kernel, cpu, optimised=True)
                progress.advance(1)
        except KeyboardInterrupt:
            click.echo("tenfold: interrupted; what has been compiled is kept", err=True)
            click.get_current_context().exit(INTERRUPTED)
    new_count = len(store.files()) - count_before
    seconds = time.perf_counter() - begin
    click.echo(f"{len(sources)} kernels are kept, {new_count} of them new, in {seconds:.1f} s")


def open_store() -> DiskCache:
    """Return the store. Raises InputError if there is no usable one."""
    store = kernel_cache.configured_cache()
    if store is None:
        raise InputError(
            "the cache is not available: the setting cache is off, or no home directory was found"
        )
    try:
        store.files()
    except (UnusableDirectory, OSError) as error:
        raise InputError(error_text(error)) from error
    return store
