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
    """What each cell shows; printed lines come in one piece or several, as time has it."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    given = [[o for o in cell.outputs if o.get("name") != "stderr"] for cell in cells]
    return [list(dict.fromkeys(o.output_type for o in outputs)) for outputs in given]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs(name):
    notebook = copy.deepcopy(NOTEBOOKS[name])
    root = Path(__file__).parents[1]
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=root)
    assert _kinds(notebook) == _kinds(NOTEBOOKS[name])  # the committed outputs are of this code
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in shown)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_defines_nothing(name):
    source = "\n".join(c.source for c in NOTEBOOKS[name].cells if c.cell_type == "code")
    kinds = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.Lambda)
    assert not [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
