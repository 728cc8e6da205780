"""Images of the records of a file: an array of an npz file, or the image files of a folder."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["check_images", "read_images"]

_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
_CHANNELS = (1, 3, 4)


def read_images(
    place: Path, rows: Sequence[int], size: int, name: str | None, cells: Mapping[str, Any]
) -> list[np.ndarray]:
    """The images of some rows, each as :func:`jgram.cli.plots.plot_images` takes them.

    Args:
        place: An npz file, or a folder whose image files line up with the rows: sorted by name,
            numbers in names by their value.
        rows: The rows wanted.
        size: The number of rows of the table.
        name: The array of the npz file, or the column that names the files of the folder.
        cells: The columns of the table.

    Raises:
        ValueError: Images that do not line up with the rows, or cannot be read.
    """
    if place.suffix.lower() == ".npz":
        return [_picture(image) for image in _array(place, size, name)[list(rows)]]
    return [_opened(path) for path in _paths(place, rows, size, name, cells)]


def check_images(place: Path) -> None:
    """Refuse, before any work, what is neither an npz file nor a folder."""
    if not (place.is_dir() or (place.is_file() and place.suffix.lower() == ".npz")):
        raise ValueError(f"--images: expected a folder of images or an .npz file, got {place}")


def _array(place: Path, size: int, name: str | None) -> np.ndarray:
    with np.load(place, allow_pickle=False) as file:
        shapes = {key: file[key].shape for key in file.files if name in (None, key)}
        if name is not None and not shapes:
            raise ValueError(f"{place}: expected an array {name!r}: it has {', '.join(file.files)}")
        fitting = [key for key, shape in shapes.items() if _is_images(shape)]
        if len(fitting) != 1:
            shown = ", ".join(f"{key} {list(shape)}" for key, shape in shapes.items())
            raise ValueError(
                f"{place}: expected one array [rows, height, width] or [rows, height, width, 3], "
                f"got {shown}: name it with --image-column"
            )
        array = file[fitting[0]]
    if len(array) != size:
        raise ValueError(
            f"{place}: expected one image for each of {size} rows, got {len(array)} in {fitting[0]}"
        )
    return array


def _is_images(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 or (
        len(shape) == 4 and (shape[-1] in _CHANNELS or shape[1] in _CHANNELS)
    )


def _picture(image: np.ndarray) -> np.ndarray:
    """``[h, w]`` or ``[h, w, channels]``, bytes or numbers in [0, 1]."""
    if image.ndim == 3 and image.shape[-1] not in _CHANNELS:
        image = np.moveaxis(image, 0, -1)
    if image.ndim == 3 and image.shape[-1] == 1:
        image = image[..., 0]
    if image.dtype == np.uint8:
        return image
    values = np.nan_to_num(image.astype(np.float64))
    low, high = min(values.min(), 0.0), max(values.max(), 0.0)
    if low == 0.0 and high <= 1.0:
        return values
    if low == 0.0 and high <= 255.0:
        return values / 255.0
    return (values - low) / (high - low)


def _paths(
    place: Path, rows: Sequence[int], size: int, name: str | None, cells: Mapping[str, Any]
) -> list[Path]:
    if name is None:
        present = [path for path in place.iterdir() if path.suffix.lower() in _SUFFIXES]
        if len(present) != size:
            raise ValueError(
                f"{place}: expected one image for each of {size} rows, got {len(present)}: name "
                "the column that names their files with --image-column"
            )
        ordered = sorted(present, key=_by_number)
        return [ordered[row] for row in rows]
    if name not in cells:
        raise ValueError(f"--image-column: expected a column, got {name!r}: {', '.join(cells)}")
    paths = [place / str(cells[name][row]) for row in rows]
    for path, row in zip(paths, rows, strict=True):
        if not path.is_file():
            raise ValueError(f"{path}: expected the image of row {row} ({name}), there is no file")
    return paths


def _by_number(path: Path) -> list[Any]:
    """``img2`` before ``img10``."""
    parts = re.split(r"(\d+)", path.name)
    return [*(int(part) if i % 2 else part for i, part in enumerate(parts))]


def _opened(path: Path) -> np.ndarray:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ValueError("images take pillow: pip install 'jgram[cli]'") from None
    try:
        with Image.open(path) as image:
            image.thumbnail((256, 256))
            return np.asarray(image.convert("RGB"))
    except UnidentifiedImageError:
        raise ValueError(f"{path}: expected an image that pillow can read") from None
