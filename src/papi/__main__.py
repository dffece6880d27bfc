"""`python -m papi` is the command `papi`."""

from papi.cli import main

main()
