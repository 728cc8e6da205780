"""The paper's orderings and guarantees; ``experiments/PAPER.md`` maps its statements to them."""
