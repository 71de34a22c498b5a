"""`python -m tenfold`: the same program as the command `tenfold`."""

from tenfold_command import main

main()
