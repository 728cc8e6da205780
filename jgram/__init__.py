"""How reliable is reported data when nobody can check it? The Gram determinant score on JAX.

>>> import jgram
>>> report = jgram.score(["yes", "no", "no", "yes"] * 25, [1.2, 0.1, 0.3, 0.9] * 25)
>>> report.gram_rank
2

What most people need stands here, listed in :mod:`jgram.public` and imported when first asked for,
so that ``jgram --help`` need not wait for JAX; the rest is in the modules, one idea a file.
"""

TYPE_CHECKING = False  # true for type checkers, as that of ``typing``, which takes time to import
if TYPE_CHECKING:
    from typing import Any

    from jgram.public import *  # noqa: F403

__version__ = "0.3.0"


def __getattr__(name: str) -> "Any":
    """On the first use of any public name, ``__all__`` among them, all of them are bound here."""
    from importlib import import_module

    if not name.startswith("__") or name == "__all__":
        public = import_module("jgram.public")
        globals().update({each: getattr(public, each) for each in public.__all__})
        globals()["__all__"] = public.__all__
    if name not in globals():
        raise AttributeError(f"module 'jgram' has no attribute {name!r}")
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
