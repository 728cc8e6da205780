"""SimCLR: a contrastive image encoder in Flax, whose embeddings serve as observations.

Needs the extra ``jgram[encoder]``.
"""
