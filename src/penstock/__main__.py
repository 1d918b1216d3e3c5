"""`python -m penstock`."""

from penstock.entry import run

run()
