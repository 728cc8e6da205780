"""How reliable is reported data when nobody can check it? The Gram determinant score on JAX."""

__version__ = "0.1.0"
