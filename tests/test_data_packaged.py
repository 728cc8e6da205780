"""The data sets in the package are what their records say."""

import numpy as np

from jgram.data import cifar10_embeddings, employment


def test_employment_has_209_months():
    assert {len(column) for column in employment().values()} == {209}


def test_shipped_embeddings_are_what_their_record_says():
    embeddings, labels, record = cifar10_embeddings()
    assert embeddings.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, rtol=1e-4)
    np.testing.assert_array_equal(np.bincount(labels), 1000)
    assert record["complete"] == (record["epochs"] >= record["of_epochs"])
    assert len(record["epoch_losses"]) == record["epochs"]
