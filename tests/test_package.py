"""The package as a newcomer meets it."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import jgram


def test_no_modules_need_each_other():
    """Imports go one way, those inside functions and for types among them."""
    root = Path(jgram.__file__).parent
    paths = {
        ".".join(["jgram", *path.relative_to(root).with_suffix("").parts]): path
        for path in root.rglob("*.py")
    }
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    used: dict[str, set[str]] = {}
    for name, path in paths.items():
        found = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module in paths:
                inside = (f"{node.module}.{alias.name}" for alias in node.names)
                found |= {each if each in paths else node.module for each in inside}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names} & paths.keys()
        used[name] = found - {name, "jgram"}  # whose names are bound on first use
    assert len([*TopologicalSorter(used).static_order()]) >= len(paths) - 1


def test_import_is_light_and_leaves_jax_as_it_is():
    code = (
        "import sys, jax; before = jax.config.jax_enable_x64; import jgram; "
        "assert jax.config.jax_enable_x64 == before; "
        "heavy = {'flax', 'optax', 'orbax', 'pandas', 'matplotlib', 'scipy.stats', 'sklearn', "
        "'typer', 'rich', 'dm_pix', 'PIL'}; print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_are_bound_on_first_use():
    code = (
        "import sys, jgram; assert 'jax' not in sys.modules; assert 'score' in dir(jgram); "
        "assert not hasattr(jgram, 'nothing'); from jgram import *; assert score is jgram.score; "
        "assert jgram.kernels.RBF is RBF; assert jgram.label_issues is label_issues"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_everything_public_is_documented_with_an_example():
    for name in jgram.__all__:
        thing = getattr(jgram, name)
        if callable(thing):
            assert thing.__doc__, name
        module = sys.modules[getattr(thing, "__module__", "jgram")]
        if callable(thing) and not isinstance(thing, type) and module.__name__ != "jgram.kernels":
            assert ">>>" in thing.__doc__, name


def test_no_name_is_a_submodule_s_and_something_else():
    packages = [jgram]
    for package in packages:
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if info.name.endswith("__main__"):
                continue
            module = importlib.import_module(info.name)
            name = info.name.rpartition(".")[2]
            assert getattr(package, name) is module, info.name
            if info.ispkg:
                packages.append(module)
    assert len(packages) >= 5
