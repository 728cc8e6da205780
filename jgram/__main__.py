"""``python -m jgram``."""

from jgram.cli import main

main()
