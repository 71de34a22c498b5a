"""`python -m tenfold`: runs the same program as the command `tenfold`."""

from tenfold_command import main

main()
