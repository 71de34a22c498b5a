"""The command `tenfold`, outside of the package: Ctrl-C during its import prints one line too."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that `sys.argv` names, and exit."""
    try:
        # Imported here: `click` and `rich` belong to the command, not to the package.
        from tenfold.cli.main import program
    except KeyboardInterrupt:
        print("tenfold: interrupted; no file was changed", file=sys.stderr)
        sys.exit(130)
    program.main(prog_name="tenfold")
