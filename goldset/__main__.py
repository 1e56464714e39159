"""``python -m goldset``."""

from goldset.cli import main

main()
