"""What was counted of finished files, kept in a folder, so that a killed run goes on."""

import hashlib
import io
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jgram.cells import Cells
from jgram.data.streams import Reading
from jgram.whole_file import whole_file

__all__ = ["Checkpoint"]


class Checkpoint(NamedTuple):
    """A folder of what was counted of finished files, each named by all that it depends on."""

    folder: Path | None
    reading: Reading

    @classmethod
    def of(cls, folder: Path | None, reading: Reading) -> "Checkpoint":
        if folder is not None:
            folder = Path(folder)
            if folder.exists() and not folder.is_dir():
                raise ValueError(f"{folder}: expected a folder for checkpoints, got a file")
            folder.mkdir(parents=True, exist_ok=True)
            for left in folder.glob(".*.arrow"):  # by a run that was killed
                left.unlink(missing_ok=True)
        return cls(folder, reading)

    def identity(self, path: Path) -> str:
        stat, reading = path.stat(), self.reading
        edges = {name: list(values) for name, values in reading.edges.items()}
        parts = ["jgram cells 1", str(path.resolve()), stat.st_size, stat.st_mtime_ns]
        marks = [reading.separator, reading.thousands, reading.decimal, reading.missing_values]
        return json.dumps([*parts, reading.names, *marks, edges])

    def place(self, identity: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.arrow"

    def load(self, path: Path) -> Cells | None:
        """Cells of a file that is as it was; ``None`` where there are none that can be read."""
        if self.folder is None:
            return None
        identity = self.identity(path)
        place = self.place(identity)
        if not place.exists():
            return None
        from pyarrow import ArrowException, ipc

        try:
            with ipc.open_file(io.BytesIO(place.read_bytes())) as file:
                table = file.read_all()
            if (table.schema.metadata or {}).get(b"jgram") != identity.encode():
                return None
            counts = table.column("count").to_numpy().astype(np.int64)
            labels, codes = {}, []
            for j, name in enumerate(self.reading.names):
                array = table.column(f"column {j}").combine_chunks()
                labels[name] = tuple(array.dictionary.to_pylist())
                codes.append(np.asarray(array.indices.fill_null(-1)))
            return Cells(labels, np.stack(codes, axis=1).astype(np.int32), counts)
        except (ArrowException, OSError, KeyError, ValueError):
            return None

    def save(self, path: Path, cells: Cells) -> None:
        """Written whole or not at all."""
        if self.folder is None:
            return
        import pyarrow
        from pyarrow import ipc

        columns = {}
        for j, labels in enumerate(cells.labels.values()):
            codes = pyarrow.array(cells.codes[:, j], mask=cells.codes[:, j] < 0)
            columns[f"column {j}"] = pyarrow.DictionaryArray.from_arrays(
                codes, pyarrow.array(labels)
            )
        columns["count"] = pyarrow.array(cells.counts)
        identity = self.identity(path)
        table = pyarrow.table(columns).replace_schema_metadata({"jgram": identity})
        with (
            whole_file(self.place(identity)) as beside,
            beside.open("wb") as file,
            ipc.new_file(file, table.schema) as writer,
        ):
            writer.write_table(table)
            file.flush()
            os.fsync(file.fileno())
