"""The process around a command: its surroundings, and how it ends whatever happens."""

import contextlib
import errno
import io
import logging
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

from jgram.cli.outputs import in_shell, unfinished
from jgram.display import visible

__all__ = ["end", "prepare_process"]

_CACHE_BYTES = 2**29
_SIGNALS = {
    "SIGINT": signal.default_int_handler, "SIGTERM": signal.SIG_DFL, "SIGHUP": signal.SIG_DFL,
}  # fmt: skip


def prepare_process() -> None:
    """Quiet dependencies, kept compiled programs, and output that every terminal can show."""
    _have_standard_streams()
    for name, as_it_was in _SIGNALS.items():
        number = getattr(signal, name, None)  # no SIGHUP on Windows
        if number is not None and signal.getsignal(number) is as_it_was:  # not if it is ignored
            signal.signal(number, _interrupt)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    logging.getLogger("jax").setLevel(logging.ERROR)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    _keep_compiled_programs()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def end(error: BaseException) -> int:
    """Say in one line why the command ends, and give its exit code.

    Errors of jgram's own are raised again where ``JGRAM_TRACEBACK`` is set.
    """
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    code, line = _ending(error)
    if code == 1 and os.environ.get("JGRAM_TRACEBACK"):
        raise error
    with contextlib.suppress(OSError):
        sys.stderr.write(f"jgram: {visible(in_shell(line))}\n" if line else "")
        sys.stderr.flush()
    try:
        sys.stdout.flush()
    except OSError:  # nobody reads, or there is no room: nothing more goes there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _ending(error: BaseException) -> tuple[int, str]:
    """Exit code, and the line that says why; no line where there is nobody to read it."""
    message = " ".join(str(error).split())
    kind = type(error).__name__
    if isinstance(error, KeyboardInterrupt) or kind == "Abort":
        return 130, "interrupted"
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in message:
        return 1, f"not enough memory: {message or 'try fewer records'}"
    if isinstance(error, OSError):
        if error.errno == errno.EPIPE:
            return 1, ""
        line = error.strerror or message
        return 2, f"{error.filename}: {line}" if error.filename else line
    if isinstance(error, ModuleNotFoundError):
        return 2, f"the command needs {error.name}: pip install 'jgram[cli]'"
    if hasattr(error, "format_message"):  # of the command line itself
        return 2, " ".join(error.format_message().split())  # type: ignore[attr-defined]
    if isinstance(error, ValueError):
        return 2, message
    if not _has_device():
        platforms = os.environ.get("JAX_PLATFORMS", "")
        return 2, f"JAX_PLATFORMS={platforms}: JAX has no such device here: unset it, or say cpu"
    trace, where = error.__traceback__, ""
    while trace is not None:
        where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return 1, (
        f"an error of jgram's own, {kind} in {where}: {message[:300]}; "
        "JGRAM_TRACEBACK=1 shows all of it, for a bug report"
    )


def _interrupt(number: int, _: Any) -> None:
    """End at once: an exception may get lost in a callback, or crash JAX where it is imported."""
    for path in unfinished:
        path.unlink(missing_ok=True)
    shown = "\r\033[K\033[?25h" if os.isatty(2) else ""  # the progress line goes, the cursor stays
    with contextlib.suppress(OSError):  # the terminal may be gone
        os.write(2, f"{shown}jgram: interrupted\n".encode())
    os._exit(128 + number)


def _have_standard_streams() -> None:
    """Streams that are closed lead nowhere: else the next file that is opened takes their place."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest that is free
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _has_device() -> bool:
    """Whether JAX, if it was used at all, finds a device to compute on."""
    jax = sys.modules.get("jax")
    try:
        return jax is None or bool(jax.devices())
    except Exception:
        return False


def _keep_compiled_programs() -> None:
    """JAX keeps what it compiled in the user's cache folder, where that can be written."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        folder = Path(
            os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "jgram", "compiled"
        )
        folder.mkdir(parents=True, exist_ok=True)
        _shrink(folder)
    except (OSError, RuntimeError):  # no place, no home
        return
    if os.access(folder, os.W_OK):
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def _shrink(folder: Path) -> None:
    """Forget the oldest programs once they take more than half a gigabyte."""
    files = sorted((entry.stat().st_mtime, entry.stat().st_size, entry.path)
                   for entry in os.scandir(folder))  # fmt: skip
    excess = sum(size for _, size, _ in files) - _CACHE_BYTES
    for _, size, path in files:
        if excess <= 0:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        excess -= size
