"""`python -m tenfold`: the same program as the command `tenfold`."""

from tenfold.cli import main

main()
