"""``jgram encode``: images to embeddings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from jgram.cli.outputs import whole_file
from jgram.cli.show import progress, say, say_note

__all__ = ["run"]


@dataclass(frozen=True, kw_only=True)
class Images:
    """Input

    Attributes:
        images: Folder of images, or npz with one array of them.
        labels: Table whose rows get the embedding of their image beside them.
        image_column: Column of --labels that names the image files.
        resize: Bring images to the size trained on.
    """

    images: Annotated[Path, Argument()]
    labels: Path | None = None
    image_column: str | None = None
    resize: bool = False


@dataclass(frozen=True, kw_only=True)
class Training:
    """Training

    Attributes:
        epochs: Train on these images first, so many times through all of them.
        checkpoint: Folder of a trained encoder; with --epochs, where training is kept.
        size: Side of the images that --epochs trains on, pixels.
        seed: Seed of training.
    """

    epochs: int | None = None
    checkpoint: Annotated[Path | None, Option(show_default="beside --out"), ()] = None
    size: int = 32
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Embeddings:
    """Output

    Attributes:
        out: The .npz or .parquet file to write.
        features: The backbone's features, not the projections.
        quiet: Say nothing but errors.
    """

    out: Annotated[Path, (".npz", ".parquet")]
    features: bool = False
    quiet: bool = False


def run(given: Images, training: Training, output: Embeddings) -> None:
    """Turn images into numbers (embeddings), to observe labels through.

    With --epochs an encoder (SimCLR, a ResNet-18) learns from the images themselves, without
    labels; 20 to 60 epochs are usual. It is kept after every epoch: the same command goes on where
    it was interrupted.

    Examples:

        jgram encode photos/ --epochs 20 --labels images.csv --image-column file \\
          --out photos.parquet

        jgram rank photos.parquet --report ann --report bob --observation embedding

        jgram encode more/ --checkpoint photos.checkpoint --resize --out more.npz
    """
    images, out, checkpoint = given.images, output.out, training.checkpoint
    if training.epochs is None and checkpoint is None:
        raise ValueError(
            "expected --epochs 20 to train on these images, or --checkpoint of an encoder trained "
            "before, got neither"
        )
    table = _read_labels(given, out)
    try:
        from jgram.simclr.train import embed_path, train_path
    except ImportError as error:
        raise ValueError(f"encode needs {error.name}: pip install 'jgram[encoder]'") from None
    place, trained = checkpoint or out.with_suffix(".checkpoint"), training.epochs is not None
    if training.epochs is not None:
        how: Any = {"epochs": training.epochs, "size": training.size, "seed": training.seed}
        tell = (lambda _: None) if output.quiet else say_note
        train_path(images, place, **how, tell=tell, progress=not output.quiet)
    with progress(f"embedding {images}", quiet=output.quiet):
        how = {"features": output.features, "resize": given.resize or trained}
        embeddings, names = embed_path(images, place, **how)
    if table is None:
        columns = {"name": names, "embedding": embeddings}
    else:
        columns = {**table, "embedding": embeddings[_rows(table, names, given)]}
    with whole_file(out) as beside:
        _write(beside, {**columns})
    n, k = columns["embedding"].shape
    if not output.quiet:
        say(f"{n} embeddings of {k} numbers in {out}: columns {', '.join(columns)}")


def _read_labels(given: Images, out: Path) -> dict[str, Any] | None:
    path, column = given.labels, given.image_column
    if path is None and column is None:
        return None
    if path is None or column is None:
        raise ValueError("expected --labels and --image-column together, got one of them")
    if out.suffix != ".parquet":
        raise ValueError(f"{out}: expected a .parquet file, which holds labels and embeddings")
    from jgram.data import read_columns

    columns = read_columns(path)
    if column not in columns:
        raise ValueError(f"--image-column: expected a column, got {column!r}: {', '.join(columns)}")
    if "embedding" in columns:
        raise ValueError(
            f"{path}: expected no column embedding, which this command adds: rename it"
        )
    return columns


def _rows(table: dict[str, Any], names: list[str], given: Images) -> list[int]:
    """For every row of the table the row of its image."""
    from jgram.data.files import FIRST_ROW

    column = given.image_column or ""
    place, wanted = {name: row for row, name in enumerate(names)}, [*map(str, table[column])]
    for row, name in enumerate(wanted):
        if name not in place:
            raise ValueError(
                f"{given.images}: expected the image {name!r} of row {row + FIRST_ROW} ({column}), "
                "got none"
            )
    return [place[name] for name in wanted]


def _write(path: Path, columns: dict[str, Any]) -> None:
    if path.suffix == ".npz":
        import numpy as np

        np.savez_compressed(path, **columns)
        return
    import pyarrow as pa
    from pyarrow import parquet

    embeddings = columns.pop("embedding")
    arrays = {name: pa.array(column, from_pandas=True) for name, column in columns.items()}
    numbers = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.ravel()), embeddings.shape[1])
    parquet.write_table(pa.table({**arrays, "embedding": numbers}), path)
