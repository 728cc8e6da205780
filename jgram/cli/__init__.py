"""The ``jgram`` command: files in, rankings out. All judgement is in the library; this is its face.

Exit codes: 0 an answer, 1 it could not be finished (memory, an error of jgram's own), 2 input that
does not fit, 3 the data cannot tell, 4 a rule of check failed, 130 interrupted. All but 0 say why
in one line on stderr, or in the answer itself.
"""

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line, which always raises :class:`SystemExit` with the exit code; all is
    imported inside of ``try``, so that nothing escapes it."""
    try:
        import sys

        from jgram.cli.process import prepare_process

        prepare_process()
        from jgram.cli.app import app

        code = app(arguments, prog_name="jgram", standalone_mode=False) or 0
        sys.stdout.flush()
    except BaseException as error:
        import sys

        from jgram.cli.process import end

        code = end(error)
    sys.exit(code)
