"""CIFAR-10's readers and a user's own images."""

import hashlib
import io
import pickle
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from experiments import encoder
from jgram import datasets
from jgram.data import cifar10_embeddings, employment
from tests.refusals import refused

pytestmark = pytest.mark.thorough


@pytest.fixture
def small_cifar(monkeypatch):
    """Batches like the official ones with ten images each, known to the reader by checksum."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 32, 32, 3), dtype=np.uint8)
    labels = rng.integers(0, 10, 60)
    contents = {}
    for i, name in enumerate(encoder.BATCHES):
        part = slice(10 * i, 10 * i + 10)
        rows = images[part].transpose(0, 3, 1, 2).reshape(10, -1)
        contents[name] = pickle.dumps({"data": rows, "labels": labels[part].tolist()})
    digests = {
        name: hashlib.md5(content, usedforsecurity=False).hexdigest()
        for name, content in contents.items()
    }
    monkeypatch.setattr(encoder, "BATCHES", digests)
    return images, labels, contents


def _archive(path, contents):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_archive_and_folders_give_the_images(small_cifar, tmp_path):
    images, labels, contents = small_cifar
    archive = _archive(tmp_path / encoder.ARCHIVE, contents)
    folder = tmp_path / "unpacked" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    for path in (archive, tmp_path, folder, folder.parent):
        found, found_labels = encoder._read_batches(path)
        np.testing.assert_array_equal(found, images)
        np.testing.assert_array_equal(found_labels, labels)
    archive.write_bytes(archive.read_bytes()[:-2000])
    assert re.search(r"cifar.*gz.*breaks off", refused(encoder.cifar10, archive))
    archive.write_bytes(b"<html>moved</html>")
    with pytest.raises(ValueError, match="expected the whole official archive"):
        encoder.cifar10(archive)


class _Attack:
    def __reduce__(self):
        return (pytest.fail, ("unpickled before its checksum was known to be right",))


def test_altered_archive_is_refused_before_it_is_unpickled(small_cifar, tmp_path):
    contents = {**small_cifar[2], "data_batch_3": pickle.dumps(_Attack())}
    message = refused(encoder.cifar10, _archive(tmp_path / "cifar.tar.gz", contents))
    assert re.search("data_batch_3 with MD5.*truncated or altered", message)
    del contents["test_batch"]
    less = _archive(tmp_path / "less.tar.gz", contents)
    assert "test_batch" in refused(encoder.cifar10, less)


def test_missing_files_are_named(tmp_path):
    for name in ("nothing.tar.gz", "nothing.npz", "nothing"):
        with pytest.raises(FileNotFoundError, match=name):
            encoder.cifar10(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="data_batch_1"):
        encoder.cifar10(tmp_path)


def test_npz_of_other_contents_is_refused(tmp_path):
    path, images = tmp_path / "cifar.npz", np.zeros((5, 32, 32, 3), np.uint8)
    np.savez(path, pictures=np.zeros(3))
    assert re.search("expected images and labels.*got pictures", refused(encoder.cifar10, path))
    np.savez(path, images=images, labels=np.zeros(5))
    assert "expected uint8 images [60000, 32, 32, 3]" in refused(encoder.cifar10, path)
    path.write_bytes(path.read_bytes()[:500])
    assert "breaks off" in refused(encoder.cifar10, path)


def test_another_order_is_refused(tmp_path, monkeypatch):
    labels = np.random.default_rng(0).integers(0, 10, 60000).astype(np.uint8)
    images = np.broadcast_to(np.uint8(0), (60000, 32, 32, 3))
    read = {"images": images, "labels": labels}
    path = tmp_path / "cifar.npz"
    monkeypatch.setattr(encoder, "_read_npz", lambda _: (read["images"], read["labels"]))
    assert "standard order (6, 9, 9, 4, 1" in refused(encoder.cifar10, path)
    monkeypatch.setattr(encoder, "LABELS", hashlib.sha256(labels.tobytes()).hexdigest())
    np.testing.assert_array_equal(encoder.cifar10(path).test_labels, labels[50000:])
    read["labels"] = labels[::-1]
    assert "standard order" in refused(encoder.cifar10, path)


def test_compact_file_is_whole_and_in_standard_order(shared_data):
    data = encoder.cifar10(shared_data / "cifar10" / "cifar10_jpeg.npz")
    assert data.train.shape == (50000, 32, 32, 3)
    assert data.test.shape == (10000, 32, 32, 3)
    with np.load(shared_data / "cifar10n" / "cifar10n_labels.npz") as file:
        np.testing.assert_array_equal(data.train_labels, file["clean_label"])
    with np.load(shared_data / "cifar10" / "cifar10_lossless_train_first4000.npz") as file:
        error = file["train_images"].astype(float) - data.train[:4000]
    assert 10 * np.log10(255**2 / np.mean(error**2)) > 29  # decibels: lossy, the same pictures
    scans = np.zeros(1, np.uint8), np.array([5]), np.zeros(4, np.uint8)
    assert "bytes of scans" in refused(encoder._decode, Path("x"), *scans)


def test_read_images_from_folder_and_npz(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    (tmp_path / "b").mkdir()
    for name, image in zip(("b/1.png", "a.png", "c.PNG"), images, strict=True):
        Image.fromarray(image).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("not an image")
    found, names = datasets.read_images(tmp_path)
    assert names == ["a.png", "b/1.png", "c.PNG"]
    np.testing.assert_array_equal(found, images[[1, 0, 2]])
    Image.fromarray(images[0, :, :, 0]).resize((20, 10)).save(tmp_path / "grey.png")
    assert re.search(r"one size.*grey.png \(10, 20\)", refused(datasets.read_images, tmp_path))
    assert datasets.read_images(tmp_path, resize=6)[0].shape == (4, 6, 6, 3)
    np.savez(tmp_path / "few.npz", images=images, labels=np.zeros(3))
    np.testing.assert_array_equal(datasets.read_images(tmp_path / "few.npz")[0], images)
    np.savez(tmp_path / "few.npz", labels=np.zeros(3))
    assert "one array of images" in refused(datasets.read_images, tmp_path / "few.npz")
    (tmp_path / "empty").mkdir()
    for nothing, words in (("none", "o such"), ("none.npz", "o such"), ("empty", "no images")):
        with pytest.raises(FileNotFoundError, match=words):
            datasets.read_images(tmp_path / nothing)


def test_unreadable_images_are_refused_in_one_line(tmp_path, monkeypatch):
    Image.new("RGB", (40, 40)).save(tmp_path / "a.png")
    whole = (tmp_path / "a.png").read_bytes()
    for content in (b"", b"\x89PNG....", whole[:60], whole[:40] + b"\0" * 20 + whole[60:]):
        (tmp_path / "a.png").write_bytes(content)
        assert "a.png" in refused(datasets.read_images, tmp_path)
    (tmp_path / "a.png").write_bytes(whole)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)  # a bomb
    assert "exceeds limit" in refused(datasets.read_images, tmp_path)
    np.savez(tmp_path / "x.npz", np.zeros((2, 8, 8, 3), np.uint8))
    archive = (tmp_path / "x.npz").read_bytes()
    for content in (b"", b"PK", archive[:100], archive.replace(b"|u1", b"|O8")):
        (tmp_path / "x.npz").write_bytes(content)
        assert "cannot be read as an npz file" in refused(datasets.read_images, tmp_path / "x.npz")


def test_the_data_sets_in_the_package_are_what_their_records_say():
    assert {len(column) for column in employment().values()} == {209}
    embeddings, labels, record = cifar10_embeddings()
    assert embeddings.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, rtol=1e-4)
    np.testing.assert_array_equal(np.bincount(labels), 1000)
    assert record["complete"] == (record["epochs"] >= record["of_epochs"])
    assert len(record["epoch_losses"]) == record["epochs"]
