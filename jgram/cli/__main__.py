"""``python -m jgram.cli``."""

from jgram.cli import main

main()
