"""The commands, each a file of this package with a function ``run``.

What is slow to import (JAX, NumPy, matplotlib) is imported inside ``run``: ``--help`` is quick.
"""

from importlib import import_module
from shutil import get_terminal_size
from typing import Annotated

import typer

from jgram.cli.options import merged

__all__ = ["COMMANDS", "app"]

# To add a command: its name here, and its file.
COMMANDS = ("score", "rank", "issues", "annotators", "check", "plan", "pay", "encode", "demo")

app: typer.Typer = typer.Typer(
    help="How reliable is reported data when nobody can check it?",
    epilog="Exit codes: 0 an answer, 1 not finished, 2 wrong input, 3 the data cannot tell, 4 a "
    "rule of check failed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if get_terminal_size().columns >= 72 else None,  # else it cuts names
)


def _version(asked: bool) -> bool:
    if asked:
        from jgram import __version__

        print(f"jgram {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Which version.", callback=_version, is_eager=True)
    ] = False,
) -> None: ...


for _name in COMMANDS:
    app.command(_name)(merged(import_module(f"jgram.cli.{_name}").run))
