"""How the process behaves: quick help, one line whatever happens, nothing left behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jgram.cli import process
from jgram.cli.process import end

ROOT = Path(__file__).parents[1]


def run_python(code: str, *arguments: str, **options) -> subprocess.CompletedProcess:
    environment = {
        **os.environ,
        "PYTHONUNBUFFERED": "",
        "PYTHONPATH": str(ROOT),
        **options.pop("env", {}),
    }
    command = [sys.executable, "-c", code, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.run(command, env=environment, check=False, **pipes)


MAIN = "from jgram.cli import main; main()"
# A command of the tests, in place of one that needs JAX.
INSTEAD = """
import sys, os, signal, pathlib
import jgram.cli.demo as demo
from jgram.cli.show import say
from jgram.cli.outputs import whole_file
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored
def run():
    {}
demo.run = run
from jgram.cli import main
main(["demo"])
"""


@pytest.mark.parametrize("arguments", [["--help"], ["rank", "--help"], ["--show-completion"]])
def test_help_does_not_wait_for_heavy_imports(arguments):
    code = (
        "import atexit, sys; heavy = {'jax', 'numpy', 'pandas', 'pyarrow', 'matplotlib', 'scipy'};"
        "atexit.register(lambda: print('HEAVY', sorted(heavy & set(sys.modules)))); " + MAIN
    )
    done = run_python(code, *arguments)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_help_is_in_groups_and_cuts_no_option_where_it_is_narrow():
    wide, narrow = (
        run_python(MAIN, "rank", "--help", env={"COLUMNS": width}).stdout for width in ("80", "40")
    )
    assert all(f"─ {title} ─" in wide for title in ("Input", "Observations", "Uncertainty"))
    assert "--observation-bins" in narrow
    assert "…" not in narrow


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "not enough memory"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes."), 1, "8 bytes"),
        (ValueError("two\nlines"), 2, "two lines"),
        (OSError(28, "No space left on device", "a.csv"), 2, "a.csv: No space left on device"),
        (ModuleNotFoundError("No module", name="typer"), 2, "pip install 'jgram[cli]'"),
        (OverflowError("seed"), 1, "an error of jgram's own, OverflowError"),
        (BrokenPipeError(32, "Broken pipe"), 1, None),
        (SystemExit(3), 3, None),
    ],
)
def test_the_end_is_one_line_and_a_code(capsys, error, code, words):
    assert end(error) == code
    shown = capsys.readouterr().err
    assert shown.count("\n") == (words is not None)
    assert (words or "") in shown


def test_errors_of_the_library_itself_are_shown_in_full_where_that_is_asked(monkeypatch):
    monkeypatch.setenv("JGRAM_TRACEBACK", "1")
    with pytest.raises(OverflowError):
        end(OverflowError("seed"))


def test_an_accelerator_that_is_not_there_is_one_line():
    code = (
        "import jax; import jgram.cli.demo as demo\ndef run(): jax.numpy.ones(3)\ndemo.run = run\n"
    )
    done = run_python(code + MAIN, "demo", env={"JAX_PLATFORMS": "cuda"})
    assert done.returncode == 2
    assert done.stderr.startswith("jgram: JAX_PLATFORMS=cuda: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_in_one_line_and_removes_what_is_half_written(tmp_path, name, code):
    body = f"""
    with whole_file(pathlib.Path("out.csv")) as beside:
        beside.write_text("half")
        try:
            signal.raise_signal(signal.{name})
        except BaseException:  # a callback that swallows it
            pass
        print("went on")
    """
    done = run_python(INSTEAD.format(body), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "jgram: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_leaves_the_old_file(tmp_path):
    (tmp_path / "out.csv").write_text("old")
    body = """
    import resource
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    with whole_file(pathlib.Path("out.csv")) as beside:
        beside.write_text("x" * 5000)
    """
    done = run_python(INSTEAD.format(body), cwd=tmp_path, env={"XDG_CACHE_HOME": "/dev/null"})
    assert (done.returncode, done.stderr) == (2, "jgram: out.csv: File too large\n")
    assert (tmp_path / "out.csv").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_closed_streams_are_quiet(tmp_path):
    body = """
    with open("file.txt", "w") as file:
        say("answer")
        print("answer")
        file.write("mine")
    """
    closed = f"exec {sys.executable} -c '{INSTEAD.format(body)}' >&- 2>&-"
    assert "'" not in INSTEAD.format(body)
    done = subprocess.run(
        ["sh", "-c", closed], cwd=tmp_path, env={**os.environ, "PYTHONPATH": ROOT}
    )
    assert done.returncode == 0
    assert (tmp_path / "file.txt").read_text() == "mine"


@pytest.mark.parametrize("body", ["for i in range(99_999): say(f'line {i}')", "print('answer')"])
def test_nobody_reads_to_the_end(body):
    code = INSTEAD.format(body)
    reader, writer = os.pipe()
    os.close(reader)
    done = run_python(code, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("body", ["say('an answer')", "print('an answer')"])
def test_an_answer_that_cannot_be_written_is_said(body):
    with open("/dev/full", "w") as full:
        done = run_python(INSTEAD.format(body), stdout=full)
    assert (done.returncode, done.stderr) == (2, "jgram: No space left on device\n")


# Compiled programs --------------------------------------------------------------------------

SHOW_CACHE = "import os; {}; print(os.environ.get('JAX_COMPILATION_CACHE_DIR'))"


def test_only_the_command_keeps_compiled_programs(tmp_path, monkeypatch):
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    prepare = "from jgram.cli.process import prepare_process; prepare_process()"
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)  # the tests' own
    shown = run_python(SHOW_CACHE.format(prepare), env=env).stdout
    assert shown == f"{tmp_path}/jgram/compiled\n"
    assert run_python(SHOW_CACHE.format("import jgram; jgram.score"), env=env).stdout == "None\n"
    broken = run_python(SHOW_CACHE.format(prepare), env={"XDG_CACHE_HOME": "/dev/null"})
    assert (broken.stdout, broken.stderr) == ("None\n", "")
    own = run_python(SHOW_CACHE.format(prepare), env={"JAX_COMPILATION_CACHE_DIR": "mine"})
    assert own.stdout == "mine\n"


def test_a_cache_that_cannot_be_written_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setattr("os.access", lambda *_: False)
    process._keep_compiled_programs()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_the_oldest_programs_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "_CACHE_BYTES", 25)
    for age in range(4):
        path = tmp_path / f"program{age}"
        path.write_bytes(b"x" * 10)
        os.utime(path, (1000 - age, 1000 - age))
    process._shrink(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program0", "program1"]
