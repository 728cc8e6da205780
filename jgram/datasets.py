"""Images from where they lie: CIFAR-10 in its standard order, and a user's own.

CIFAR-10's order is checked against its known labels: human label sets and embeddings are joined to
images by position, and a copy in another order would join them wrongly without a word. Nothing
is unpickled before its checksum is right.
"""

import hashlib
import io
import pickle
import tarfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jgram.data.files import read_columns, readable

__all__ = ["Cifar10", "cifar10", "download_cifar10", "read_images"]

URL = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
ARCHIVE = ("cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a")
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
    if path.is_dir() and (path / ARCHIVE[0]).exists():
        path = path / ARCHIVE[0]
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


def download_cifar10(directory: str | Path, *, url: str = URL, progress: bool = True) -> Path:
    """Fetches the official archive (170 MB) and checks it; a file already there is not fetched.

    It appears under its own name only once whole.

    Returns:
        The path of the archive, for :func:`cifar10`.

    Raises:
        ValueError: What arrived does not have the official checksum.
    """
    from rich.progress import Progress

    name, expected = ARCHIVE
    target = Path(directory) / name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    digest = hashlib.md5(usedforsecurity=False)
    with (
        urllib.request.urlopen(url) as source,
        part.open("wb") as sink,
        Progress(disable=not progress) as bar,
    ):
        size = source.headers.get("Content-Length")
        task = bar.add_task(name, total=int(size) if size else None)
        while block := source.read(1 << 20):
            sink.write(block)
            digest.update(block)
            bar.advance(task, len(block))
    if digest.hexdigest() != expected:
        part.unlink()
        raise ValueError(
            f"{url}: expected MD5 {expected}, got {digest.hexdigest()}: the download broke off "
            "or the file changed, try again"
        )
    return part.rename(target)


def read_images(path: str | Path, *, resize: int | None = None) -> tuple[np.ndarray, list[str]]:
    """A user's own images, from a folder of image files or an npz with one uint8 array.

    Args:
        path: A folder (its PNG, JPEG, BMP, GIF, TIFF and WebP files, sub-folders too, in the order
            of their names), or an npz.
        resize: Side to which files are scaled and centre-cropped; ``None`` takes them as they are.

    Returns:
        ``uint8 [n, h, w, 3]`` and a name for each: the path within the folder, or the row.

    Raises:
        FileNotFoundError: No such folder or file, or no images in it.
        ValueError: An unreadable file, or images of different sizes.
    """
    path = Path(path)
    if path.suffix == ".npz":
        if not path.exists():
            raise FileNotFoundError(f"no such file: {path}")
        arrays = read_columns(path)
        images = [name for name, array in arrays.items() if array.ndim == 4]
        if len(images) != 1:
            raise ValueError(
                f"{path}: expected one array of images [n, h, w, 3], got {len(images)} among "
                f"{', '.join(arrays) or 'no arrays'}"
            )
        return arrays[images[0]], [str(row) for row in range(len(arrays[images[0]]))]
    if not path.is_dir():
        raise FileNotFoundError(f"no such folder of images, or npz: {path}")
    suffixes = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in suffixes)
    if not files:
        raise FileNotFoundError(f"no images in {path}")
    decoded = [_read_image(file, resize) for file in files]
    for file, image in zip(files, decoded, strict=True):
        if image.shape != decoded[0].shape:
            raise ValueError(
                f"expected images of one size, got {files[0].name} {decoded[0].shape[:2]} and "
                f"{file.name} {image.shape[:2]}: give a size to resize to"
            )
    return np.stack(decoded), [str(file.relative_to(path)) for file in files]


def _read_image(file: Path, resize: int | None) -> np.ndarray:
    with readable(file, "an image"):
        from PIL import Image, ImageOps

        with Image.open(file) as image:
            image = image.convert("RGB")
            if resize is not None:
                image = ImageOps.fit(image, (resize, resize), Image.Resampling.BILINEAR)
            return np.asarray(image)
