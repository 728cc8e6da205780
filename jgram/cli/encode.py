"""``jgram encode``: images to embeddings."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from jgram.cli.show import progress, say
from jgram.cli.write import check_target, whole_file

__all__ = ["run"]


def run(
    images: Annotated[Path, Argument(help="Folder of images, or npz with one array of them.")],
    checkpoint: Annotated[Path, Option(help="Directory that training wrote.")],
    out: Annotated[Path, Option(help="The .npz file to write.")],
    features: Annotated[
        bool, Option("--features", help="The backbone's features, not the projections.")
    ] = False,
    resize: Annotated[
        bool, Option("--resize", help="Bring images to the size trained on.")
    ] = False,
) -> None:
    """Embed images with a trained encoder, to observe labels through.

    Example:

        jgram encode photos/ --checkpoint simclr/ --out photos.npz --resize
    """
    check_target(out, (".npz",))
    try:
        from jgram.simclr.train import encode_path
    except ImportError as error:
        raise ValueError(f"encode needs {error.name}: pip install 'jgram[encoder]'") from None
    with progress(f"embedding {images}"), whole_file(out) as beside:
        n, k = encode_path(images, checkpoint, beside, features=features, resize=resize)
    say(f"{n} embeddings of {k} numbers in {out}: arrays 'embeddings' and 'names'")
