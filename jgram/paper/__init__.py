"""What the paper proves: orderings of reports, guarantees and counterexamples."""
