"""What the paper proves: orderings of reports, guarantees and counterexamples.

``experiments/PAPER.md`` maps every statement of the paper to its function or test here.
"""
