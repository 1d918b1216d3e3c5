"""`python -m penstock`."""

from penstock.cli.main import run

run()
