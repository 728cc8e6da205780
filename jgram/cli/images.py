"""Images of the records of a file: an array of an npz file, or the image files of a folder."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import jgram.plots as plots
from jgram.data.files import FIRST_ROW, read_columns, readable

__all__ = ["check_images", "draw_images"]

_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
_CHANNELS = (1, 3, 4)


def draw_images(
    place: Path, name: str | None, listed: Sequence[Mapping[str, Any]], size: int, cells: Any
) -> plots.Figure:
    """The images of rows that are listed, of ``size`` rows in all, as a figure.

    ``place`` is an npz file, ``name`` its array; or a folder whose image files line up with all
    rows, sorted by name (numbers in names by their value), or are named by a column of ``cells``.
    """
    rows = [one["row"] - FIRST_ROW for one in listed]
    titles = [
        f"{one['label']} → {one['suggested']}\nrow {one['row']}, {one['wrong']:.0%}"
        for one in listed
    ]
    if place.suffix.lower() == ".npz":
        images = [*map(_picture, _array(place, size, name)[rows])]
    else:
        images = [*map(_opened, _paths(place, rows, size, name, cells))]
    return plots.images_figure(images, titles)


def check_images(place: Path) -> None:
    """Refuse, before any work, what is neither an npz file nor a folder."""
    if not (place.is_dir() or (place.is_file() and place.suffix.lower() == ".npz")):
        raise ValueError(f"--images: expected a folder of images or an .npz file, got {place}")


def _array(place: Path, size: int, name: str | None) -> np.ndarray:
    arrays = read_columns(place, None if name is None else [name])
    fitting = [key for key, array in arrays.items() if _is_images(array)]
    if len(fitting) != 1:
        shown = ", ".join(f"{key} {list(array.shape)}" for key, array in arrays.items())
        raise ValueError(
            f"{place}: expected one array [rows, height, width] or [rows, height, width, 3] of "
            f"numbers, got {shown}: name it with --image-column"
        )
    array = arrays[fitting[0]]
    if len(array) != size:
        raise ValueError(
            f"{place}: expected one image for each of {size} rows, got {len(array)} in {fitting[0]}"
        )
    return array


def _is_images(array: np.ndarray) -> bool:
    shape = array.shape
    channels = len(shape) == 4 and (shape[-1] in _CHANNELS or shape[1] in _CHANNELS)
    return array.dtype.kind in "buif" and 0 not in shape and (len(shape) == 3 or channels)


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
    if low == 0.0:
        high = 1.0 if high <= 1.0 else max(high, 255.0)
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
    pairs = zip(rows, map(str, cells[name]), strict=False)  # of those, the first are listed
    return [_inside(place, cell, f"row {row + FIRST_ROW} ({name})") for row, cell in pairs]


def _inside(place: Path, cell: str, said: str) -> Path:
    """The file of a folder that a cell names."""
    path = place / cell
    with readable(f"{said[:-1]}: {cell!r})", "the name of a file"):
        real, there = path.resolve(), path.is_file()
    if not real.is_relative_to(place.resolve()):
        raise ValueError(
            f"--image-column: expected files in {place}, got {cell!r} in {said}, "
            "which leaves it: copy the image into the folder"
        )
    if not there:
        raise ValueError(f"{path}: expected the image of {said}, there is no file")
    return path


def _by_number(path: Path) -> list[Any]:
    """``img2`` before ``img10``."""
    parts = re.split(r"(\d+)", path.name)
    return [*(int(part) if i % 2 else part for i, part in enumerate(parts))]


def _opened(path: Path) -> np.ndarray:
    with readable(path, "an image"):
        from PIL import Image

        with Image.open(path) as image:
            image.thumbnail((256, 256))
            return np.asarray(image.convert("RGB"))
