"""Texts as numbers: what two of them have in common in pieces of words."""

import numpy as np

from jgram.data.columns import Column

__all__ = ["embed_texts"]

LENGTH = 10_000  # characters of a text that are read
_NUMBERS = 64


def embed_texts(given: Column) -> np.ndarray:
    """A column of texts as a block of numbers, by the pieces of words that they share.

    Pieces of 3 to 5 characters, counted on a logarithmic scale and weighted by how few texts hold
    them, reduced to at most 64 singular vectors. A text of which nothing is left, a missing one
    included, is 0.

    Args:
        given: A column of text ``[n]``.

    Returns:
        ``float64 [n, k]``, the same for the same texts.

    Raises:
        ValueError: Values that are no texts, texts of which none says anything that another says,
            no scikit-learn.

    Example:
        >>> from jgram.data.columns import column
        >>> embed_texts(column(["a red car", "red cars", None, "the blue sea"], "note")).shape
        (4, 3)
    """
    if given.kind != "text":
        raise ValueError(f"{given.name}: expected texts, got {given.kind} values")
    try:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        raise ValueError(
            f"{given.name}: texts are read with scikit-learn: pip install 'jgram[cli]', or embed "
            "them and pass the embedding, or ignore them (kinds={...: 'ignore'})"
        ) from None
    distinct, inverse = given.factors
    texts = np.array([""] + [text[:LENGTH] for text in distinct], object)
    places = np.zeros(len(given), int)
    places[given.present] = inverse + 1
    pieces = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    try:
        shares = pieces.fit_transform(texts[places])
    except ValueError:  # scikit-learn found no piece
        raise ValueError(f"{given.name}: expected texts that hold words, got none") from None
    size = min(_NUMBERS, *(side - 1 for side in shares.shape))
    if size < 1:
        raise ValueError(f"{given.name}: expected several texts of several words, got too few")
    points = TruncatedSVD(size, random_state=0).fit_transform(shares)
    _, first, back = np.unique(places, return_index=True, return_inverse=True)
    return points[first][back]  # equal texts are equal to the last digit
