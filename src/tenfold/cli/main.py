"""Command dispatch: runs a command; a failure is one line on stderr and an exit code.

Takes the arguments of a command line, returns an exit code (listed in `tenfold.cli`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from tenfold.cli.bench import bench_command
from tenfold.cli.cache import INTERRUPTED, cache_command
from tenfold.cli.compute import eval_command, explain_command
from tenfold.cli.demo import demo_command
from tenfold.cli.doctor import doctor_command
from tenfold.cli.run import run_command
from tenfold.cli.trace import trace_command
from tenfold.errors import ExplainedError
from tenfold.io.input_errors import ComputationError, UserError, error_text, one_line

USAGE, DEFECT = 2, 1


class CommandGroup(click.Group):
    """A group of commands that never shows a traceback."""

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run a command and exit with its code; each error of click is one line."""
        options["standalone_mode"] = False
        try:
            code = super().main(*args, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader has closed the pipe; Python would raise again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(DEFECT)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(USAGE)
        except Exception as error:  # noqa: BLE001  # no user should be shown a traceback
            exit_with_message(*describe_error(error))
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, context: click.Context) -> Any:
        """Run a command; handle an interrupt before click prints an empty line."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            exit_with_message("interrupted; no file was changed", INTERRUPTED)


def describe_error(error: Exception) -> tuple[str, int]:
    """Return the line and the exit code of any error."""
    if isinstance(error, UserError):
        return str(error), error.exit_code
    if isinstance(error, click.ClickException):
        return _usage(error), error.exit_code
    if isinstance(error, MemoryError):
        return f"not enough memory: {error_text(error)}", ComputationError.exit_code
    if isinstance(error, ExplainedError):
        return f"{type(error).__name__}: {error_text(error)}", ComputationError.exit_code
    if os.environ.get("TENFOLD_DEBUG", "0") not in ("", "0"):
        raise error
    text = f"a defect of tenfold itself: {type(error).__name__}: {error_text(error)}"
    return f"{text}; please report it with the traceback that TENFOLD_DEBUG=1 shows", DEFECT


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    if isinstance(error, click.NoSuchOption):
        hint = "; an expression that begins with - goes in parentheses, as in '(-x)'" + hint
    return error.format_message().rstrip(".") + hint


def exit_with_message(message: str, code: int) -> NoReturn:
    """Print one line on stderr and exit."""
    click.echo(f"tenfold: {one_line(message)}", err=True)
    sys.exit(code)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tenfold", prog_name="tenfold")
def program() -> None:
    """Lazy tensor expressions on the command line.

    Exit codes: 0 success, 2 wrong command line or forbidden expression, 3 unusable input, 4 failed
    computation, 5 unwritable output, 1 defect of tenfold, 130 interrupted.
    """


for command in (
    demo_command,
    eval_command,
    explain_command,
    run_command,
    doctor_command,
    bench_command,
    cache_command,
    trace_command,
):
    program.add_command(command)

__all__: Sequence[str] = ("program",)
