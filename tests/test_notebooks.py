"""Every notebook runs from top to bottom, as committed, and only uses the library."""

import ast
import copy
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.thorough

NOTEBOOKS = {
    path.stem: nbformat.read(path, 4)
    for path in (Path(__file__).parents[1] / "notebooks").glob("*.ipynb")
}


def _kinds(notebook):
    return [
        [output.output_type for output in cell.outputs if output.get("name") != "stderr"]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs(name):
    notebook = copy.deepcopy(NOTEBOOKS[name])
    root = Path(__file__).parents[1]
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=root)
    assert _kinds(notebook) == _kinds(NOTEBOOKS[name])  # the committed outputs are of this code
    assert any("display_data" in kinds for kinds in _kinds(notebook))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_defines_nothing(name):
    source = "\n".join(c.source for c in NOTEBOOKS[name].cells if c.cell_type == "code")
    kinds = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.Lambda)
    assert not [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
