"""The ``jgram`` command: files in, rankings out. All judgement is in the library; this is its face.

Exit codes: 0 an answer, 1 it could not be finished (memory, an error of jgram's own), 2 input that
does not fit, 3 the data cannot tell, 130 interrupted. All but 0 say why in one line on stderr, or
in the answer itself.
"""

import sys
from typing import NoReturn

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; nothing is imported outside of the ``try``, so that nothing escapes.

    Args:
        arguments: Those of the process by default.

    Raises:
        SystemExit: Always, with the exit code.
    """
    try:
        from jgram.cli.app import app
        from jgram.cli.process import prepare_process

        prepare_process()
        code = app(arguments, prog_name="jgram", standalone_mode=False) or 0
        sys.stdout.flush()
        if code == 130:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
    except BaseException as error:
        from jgram.cli.process import end

        code = end(error)
    sys.exit(code)
