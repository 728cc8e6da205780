"""SimCLR: a contrastive image encoder, whose embeddings are observations (``jgram[encoder]``)."""
