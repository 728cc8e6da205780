"""``--help`` has groups and examples that run; shells complete; what comes in from strangers."""

import os
import pickle
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import typer

import jgram
from jgram.cli.app import COMMANDS, app
from jgram.data import read_columns
from tests.refusals import refused
from tests.test_cli_process import MAIN, run_python

ROOT = Path(__file__).parents[1]
COMMAND = typer.main.get_command(app)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_stands_in_a_group(name):
    options = [one for one in COMMAND.commands[name].params if one.param_type_name == "option"]
    loose = [one.name for one in options if not one.rich_help_panel and one.name != "help"]
    assert options
    assert not loose


@pytest.mark.parametrize("name", COMMANDS)
def test_help_texts_lose_nothing_to_markup(name):
    """Square brackets are markup there, unless they name a style that does not exist."""
    text = import_module(f"jgram.cli.{name}").run.__doc__ + " ".join(
        one.help or "" for one in COMMAND.commands[name].params if hasattr(one, "help")
    )
    assert not re.search(r"\[[a-z]", text)


def complete(line, word):
    """What bash would be offered, and the modules that were imported for it."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "jgram"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "_JGRAM_COMPLETE": "complete_bash",
             "COMP_WORDS": line, "COMP_CWORD": str(word)},
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    imported = re.findall(r"\| +(\w+)[.\w]*$", done.stderr, re.M)
    return done.stdout.split(), set(imported)


def test_shells_complete_and_need_not_wait_for_jax():
    offered, imported = complete("jgram annotators answers.csv --by ", 4)
    assert offered == ["log-score", "balanced", "determinant", "accuracy"]
    assert "typer" in imported
    assert not imported & {"jax", "numpy", "matplotlib", "pandas", "scipy"}


def test_completion_can_be_installed_and_the_version_is_said():
    env = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = run_python(MAIN, "--show-completion", "bash", env=env)
    assert "_JGRAM_COMPLETE=complete_bash" in done.stdout
    assert done.stdout.rstrip().endswith("jgram")
    assert run_python(MAIN, "--version").stdout == f"jgram {jgram.__version__}\n"


# What comes in from strangers (SECURITY.md) -------------------------------------------------


def test_nothing_is_unpickled():
    """Every load of NumPy's forbids it; pickle loads where a checksum comes first, and no more."""
    for path in (ROOT / "jgram").rglob("*.py"):
        text = path.read_text()
        calls = re.findall(r"np\.load\((?:[^()]|\([^()]*\))*\)", text)
        assert all("allow_pickle=False" in call for call in calls), (path, calls)
        if path.name != "datasets.py":
            loads = re.search(
                r"\b(pickle(?!\.Pickler)|joblib|dill|marshal|shelve)\b\.|yaml\.load", text
            )
            assert not loads, path
            assert not re.search(r"(?<![.\w])(eval|exec)\(", text), path


def test_an_npz_of_objects_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    np.savez(tmp_path / "evil.npz", answers=np.array([Evil()], object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_columns(tmp_path / "evil.npz")
    (tmp_path / "renamed.npz").write_bytes(pickle.dumps(Evil()))
    assert "cannot be read as an npz file" in refused(read_columns, tmp_path / "renamed.npz")
    assert not (tmp_path / "ran").exists()
