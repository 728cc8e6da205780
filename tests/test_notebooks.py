"""Every notebook runs from top to bottom, in a kernel of its own, and only uses the library."""

import ast
from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.py"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    notebook = jupytext.read(path)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=path.parent.parent)
    printed = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert printed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_defines_nothing(path):
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.Lambda)
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, kinds)]
