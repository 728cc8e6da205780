"""What was counted of finished files, kept in a folder, so that a killed run goes on."""

import hashlib
import io
import json
import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jgram.cells import Cells
from jgram.data.streams import Reading
from jgram.whole_file import whole_file

__all__ = ["Checkpoint", "State"]

_DIGEST = 32  # bytes, at the start of each file: a hash of all that follows
_BESIDE = re.compile(r"\.[0-9a-f]{32}-[^.]+\.arrow")  # what `whole_file` writes to


class State(NamedTuple):
    """What tells whether a file is as it was."""

    size: int
    changed: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "State":
        stat = path.stat()
        return cls(stat.st_size, stat.st_mtime_ns, stat.st_ino)


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
                if _BESIDE.fullmatch(left.name):
                    left.unlink(missing_ok=True)
        return cls(folder, reading)

    def identity(self, path: Path, state: State) -> str:
        """All that what was counted of a file depends on."""
        reading = self.reading
        edges = {name: list(values) for name, values in reading.edges.items()}
        parts = ["jgram counted 2", str(path.resolve()), *state]
        marks = [reading.separator, reading.thousands, reading.decimal, reading.missing_values]
        return json.dumps([*parts, reading.names, *marks, edges])

    def place(self, identity: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.arrow"

    def load(self, path: Path) -> Cells | None:
        """Cells of a file that is as it was; ``None`` where there are none that can be read."""
        if self.folder is None:
            return None
        identity = self.identity(path, State.of(path))
        place = self.place(identity)
        if not place.exists():
            return None
        from pyarrow import ipc

        data = place.read_bytes()
        if hashlib.blake2b(data[_DIGEST:], digest_size=_DIGEST).digest() != data[:_DIGEST]:
            return None
        with ipc.open_file(io.BytesIO(data[_DIGEST:])) as file:
            table = file.read_all()
        if table.schema.metadata[b"jgram"] != identity.encode():
            return None
        labels, codes = {}, []
        for j, name in enumerate(self.reading.names):
            array = table.column(f"column {j}").combine_chunks()
            labels[name] = tuple(array.dictionary.to_pylist())
            codes.append(np.asarray(array.indices.fill_null(-1)))
        counts = table.column("count").to_numpy().astype(np.int64)
        return Cells(labels, np.stack(codes, axis=1).astype(np.int32), counts)

    def save(self, path: Path, state: State, cells: Cells) -> None:
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
        identity = self.identity(path, state)
        table = pyarrow.table(columns).replace_schema_metadata({"jgram": identity})
        payload = io.BytesIO()
        with ipc.new_file(payload, table.schema) as writer:
            writer.write_table(table)
        data = payload.getvalue()
        with whole_file(self.place(identity)) as beside, beside.open("wb") as file:
            file.write(hashlib.blake2b(data, digest_size=_DIGEST).digest() + data)
            file.flush()
            os.fsync(file.fileno())
