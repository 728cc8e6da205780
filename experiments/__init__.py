"""Every table and figure of the paper, and the studies beyond it: ``python -m experiments``."""
