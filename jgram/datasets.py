"""A user's own images: a folder of image files, or an npz with one array of them."""

from pathlib import Path

import numpy as np

from jgram.data.files import read_columns, readable

__all__ = ["read_images"]

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}


def read_images(path: str | Path, *, resize: int | None = None) -> tuple[np.ndarray, list[str]]:
    """Images, and a name for each.

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
    if path.suffix.lower() == ".npz" and not path.is_dir():
        arrays = read_columns(path)
        images = [name for name, array in arrays.items() if array.ndim == 4]
        if len(images) != 1:
            raise ValueError(
                f"{path}: expected one array of images [n, h, w, 3], got {len(images)} among "
                f"{', '.join(arrays) or 'no arrays'}"
            )
        found = arrays[images[0]]
        return found, [str(row) for row in range(len(found))]
    if not path.is_dir():
        raise FileNotFoundError(f"no such folder of images, or npz: {path}")
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES)
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
            pixels = image.convert("RGB")
            if resize is not None:
                pixels = ImageOps.fit(pixels, (resize, resize), Image.Resampling.BILINEAR)
            return np.asarray(pixels)
