"""The two data sets in the package: employment figures, and embeddings of images."""

import json
from importlib import resources
from typing import Any

import numpy as np

from jgram.data.files import read_columns

__all__ = ["cifar10_embeddings", "employment"]


def employment() -> dict[str, Any]:
    """U.S. nonfarm employment as first published and twice revised, and taxes deposited.

    Returns:
        ``month``, ``first``, ``one_month_later``, ``final`` (thousands of people, not seasonally
        adjusted) and ``tax_deposits`` (million dollars), 209 months. Sources: ``data/README.md``.

    Example:
        >>> len(employment()["final"])
        209

    Reference: Experiment 3 and Table 1.
    """
    columns = read_columns(str(resources.files("jgram.data") / "employment.csv"))
    return {**columns, "month": columns["month"].astype(str)}


def cifar10_embeddings() -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """The shipped embeddings of CIFAR-10's test images, their labels, and where they come from.

    Returns:
        Embeddings ``float32 [10000, 8]`` of unit length, labels ``int32 [10000]``, and the
        record of the training run: epochs, settings, losses, the images used.

    Example:
        >>> embeddings, labels, provenance = cifar10_embeddings()
        >>> embeddings.shape, labels[:4].tolist()
        ((10000, 8), [3, 8, 8, 0])
    """
    folder = resources.files("jgram.data")
    with (
        (folder / "cifar10_test.npz").open("rb") as source,
        np.load(source, allow_pickle=False) as file,
    ):
        embeddings, labels = file["embeddings"], file["labels"].astype(np.int32)
    return embeddings, labels, json.loads((folder / "cifar10_test.json").read_text("utf-8"))
