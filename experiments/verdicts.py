"""A verdict in words, which stands only as long as the results support it."""


def verdict(words: str, *claims: bool) -> str:
    """The words, which begin with a bold one such as ``**Reproduced.**``.

    Args:
        words: What the page says.
        claims: What of the results it rests on, each true.

    Raises:
        ValueError: A claim that does not hold any more: the words have to be written anew.
    """
    if not all(claims):
        number = list(map(bool, claims)).index(False) + 1
        raise ValueError(f"claim {number} of this verdict does not hold any more: {words}")
    return words
