"""The paper's encoder: SimCLR trained on CIFAR-10, read in its standard order.

``python -m experiments.encoder CIFAR10 DIRECTORY`` trains the paper's configuration, or goes on
with it; ``python -m experiments.cifar10`` makes embeddings of the furthest checkpoint.

The order of the images is checked against their known labels: human label sets and embeddings are
joined to images by position, and a copy in another order would join them wrongly without a word.
Nothing is unpickled before its checksum is right.
"""

import argparse
import hashlib
import io
import pickle
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

ARCHIVE = "cifar-10-python.tar.gz"
# MD5 of the files in the official archive, training batches first
BATCHES = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
}
# SHA-256 of the uint8 labels in standard order: 50,000 for training, then 10,000 for the test
LABELS = "3edb456524d5918aefded81f5aef7c32efab2a788211df998a4eb0c8957baa1f"


class Cifar10(NamedTuple):
    """Images ``uint8 [n, 32, 32, 3]`` and labels ``int32 [n]`` in standard order."""

    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


def cifar10(path: str | Path) -> Cifar10:
    """CIFAR-10 from the official archive, its unpacked folder, or an npz file.

    Args:
        path: ``cifar-10-python.tar.gz``; a folder that holds it or ``cifar-10-batches-py`` or the
            batch files; or an npz, with ``images`` ``[60000, 32, 32, 3]`` and ``labels``, or
            compact: image ``i`` is the JPEG ``header`` followed by its ``lengths[i]`` bytes
            of ``scans``.

    Returns:
        All 60,000 images, the last 10,000 as the test set.

    Raises:
        FileNotFoundError: Nothing of the kind at ``path``.
        ValueError: A truncated or altered file, or images in another order.

    Reference: Krizhevsky, *Learning multiple layers of features from tiny images*, 2009.
    """
    path = Path(path)
    if path.suffix == ".npz":
        images, labels = _read_npz(path)
    else:
        images, labels = _read_batches(path)
    if images.shape != (60000, 32, 32, 3) or images.dtype != np.uint8:
        raise ValueError(
            f"{path}: expected uint8 images [60000, 32, 32, 3], got {images.dtype} "
            f"{list(images.shape)}"
        )
    if hashlib.sha256(labels.astype(np.uint8).tobytes()).hexdigest() != LABELS:
        raise ValueError(
            f"{path}: expected CIFAR-10's labels in standard order (6, 9, 9, 4, 1, ...), got "
            f"{', '.join(map(str, labels[:5]))}, ...: take the order of the official archive"
        )
    labels = labels.astype(np.int32)
    return Cifar10(images[:50000], labels[:50000], images[50000:], labels[50000:])


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # zipfile and zlib have several for a damaged file
        raise ValueError(
            f"{path}: expected a whole npz file, got one that breaks off: {error}"
        ) from error
    if {"images", "labels"} <= arrays.keys():
        return arrays["images"], arrays["labels"]
    if {"header", "lengths", "scans", "labels"} <= arrays.keys():
        return _decode(path, arrays["header"], arrays["lengths"], arrays["scans"]), arrays["labels"]
    raise ValueError(
        f"{path}: expected images and labels, or header, lengths, scans and labels, got "
        f"{', '.join(sorted(arrays)) or 'nothing'}"
    )


def _decode(path: Path, header: np.ndarray, lengths: np.ndarray, scans: np.ndarray) -> np.ndarray:
    from PIL import Image

    ends = np.cumsum(lengths, dtype=np.int64)
    if len(scans) != ends[-1]:
        raise ValueError(f"{path}: expected {ends[-1]} bytes of scans, got {len(scans)}")
    start, prefix, images = 0, header.tobytes(), []
    for end in ends:
        images.append(np.asarray(Image.open(io.BytesIO(prefix + scans[start:end].tobytes()))))
        start = end
    return np.stack(images)


def _read_batches(path: Path) -> tuple[np.ndarray, np.ndarray]:
    if path.is_dir() and (path / ARCHIVE).exists():
        path = path / ARCHIVE
    if path.is_dir():
        folder = path / "cifar-10-batches-py"
        folder = folder if folder.is_dir() else path
        missing = [name for name in BATCHES if not (folder / name).exists()]
        if missing:
            raise FileNotFoundError(f"no CIFAR-10 in {path}: {', '.join(missing)} not there")
        contents = {name: (folder / name).read_bytes() for name in BATCHES}
    elif path.exists():
        contents = _unpack(path)
    else:
        raise FileNotFoundError(f"no such file or folder: {path}")
    parts = [_read_batch(path, name, contents[name]) for name in BATCHES]
    images, labels = (np.concatenate(part) for part in zip(*parts, strict=True))
    return images, labels


def _unpack(path: Path) -> dict[str, bytes]:
    try:
        with tarfile.open(path) as archive:
            members = {Path(member.name).name: member for member in archive if member.isfile()}
            return {name: archive.extractfile(members[name]).read() for name in BATCHES}  # type: ignore[union-attr]
    except (tarfile.TarError, EOFError, OSError, KeyError) as error:
        raise ValueError(
            f"{path}: expected the whole official archive, got one that breaks off or lacks a "
            f"file ({error}): delete it and download it again"
        ) from error


def _read_batch(path: Path, name: str, content: bytes) -> tuple[np.ndarray, np.ndarray]:
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != BATCHES[name]:
        raise ValueError(
            f"{path}: expected {name} with MD5 {BATCHES[name]}, got {found}: it is truncated or "
            "altered, download it again"
        )
    batch = pickle.loads(content, encoding="latin1")
    images = batch["data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), np.asarray(batch["labels"])


def main() -> None:
    """Trains, and keeps the test images' embeddings for the study of quality by epoch."""
    import jax

    from jgram.simclr.train import Training, embed, train

    parser = argparse.ArgumentParser(prog="python -m experiments.encoder", description=__doc__)
    add = parser.add_argument
    add("cifar10", help="the official archive or its folder, or an npz (see cifar10)")
    add("directory", type=Path, help="of checkpoints, to which it resumes")
    add("--epochs", type=int, default=60, help="in all (default: 60)")
    add("--seed", type=int, default=0, help="default: 0")
    options = parser.parse_args()
    data = cifar10(options.cifar10)

    def keep_embeddings(training: Training) -> None:
        """At epochs 0, 1, 2, 4, 8, ... and the last."""
        epoch = int(training.epoch)
        if epoch & (epoch - 1) == 0 or epoch == options.epochs:
            path = options.directory / f"embeddings_{epoch:03d}.npz"
            np.savez(path, test=embed(training, data.test))

    train(
        jax.random.key(options.seed),
        data.train,
        options.directory,
        epochs=options.epochs,
        after_epoch=keep_embeddings,
        progress=True,
    )


if __name__ == "__main__":
    main()
