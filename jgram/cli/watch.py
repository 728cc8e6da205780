"""What ``jgram rank --watch`` does: records are judged as they come, and may be looked at always.

The first hundred records say how observations are read (bins, bandwidths, features); all records
then go into the sums of :mod:`jgram.sequential`. These, or the first records while they are fewer,
are kept with what was read in the folder of ``--checkpoint`` after every batch, whole or not at
all. Ctrl-C ends standard input, which cannot be read again.
"""

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import jgram.sequential as sequential
from jgram.cli.options import Asked, Input, Output
from jgram.cli.outputs import whole_file
from jgram.cli.read import kinds_of, listed, read_raw
from jgram.cli.show import Answer, emit, say_note
from jgram.data import list_files
from jgram.data.columns import Column, listing, read
from jgram.drift import fit_baseline
from jgram.results import load

__all__ = ["watch_reports"]

FEW = 100  # records that say how observations are read
FEATURES = 256
PAUSE = 0.5  # seconds between two looks
_TEXTS = (".csv", ".tsv", ".txt")
Columns = dict[str, Column]


class Watch(NamedTuple):
    """What is kept of a stream: what was read, and the first records or what they began."""

    place: Any = None  # files, or a header and where the lines end
    first: Columns | None = None
    baseline: Any = None  # how observations are read
    state: Any = None


def watch_reports(
    asked: Asked, report: list[str], output: Output, gold: str | None, patience: float | None
) -> int:
    """Watch until every order is told, the stream ends, or nothing new comes for long."""
    _refuse(asked, gold)
    names = [*report, *asked.needed]
    about = [*names, str(asked.file)]
    kept = None if asked.checkpoint is None else asked.checkpoint / "watch.npz"
    watch = Watch() if kept is None or not kept.exists() else _resumed(kept, about)

    def verdict(watch: Watch) -> sequential.SequentialRanking | None:
        if watch.state is None:
            return None
        return sequential.verdict(watch.state, report, confidence=asked.confidence)

    found = verdict(watch)
    told = found is not None and found.decided
    for place, columns in () if told else _arrivals(asked, names, watch.place, patience):
        watch = _after(watch._replace(place=place), columns, asked, report)
        if kept is not None:
            _keep(kept, watch, about)
        if (found := verdict(watch)) is None:
            continue
        far = min(1.0, *(pair.evidence for pair in found.pairs))
        if not output.quiet:
            say_note(f"{found.num_records} records, evidence {far:.0%}: {found.conclusion}")
        if found.decided:
            break
    if found is None:
        size = 0 if watch.first is None else len(watch.first[report[0]])
        lost = size and kept is None and str(asked.file) == "-"
        fix = ": --checkpoint FOLDER keeps those that come first" if lost else ""
        raise ValueError(f"expected {FEW} records or more to begin with, got {size}{fix}")
    about = {"file": str(asked.file), "observations": asked.columns, "notes": []}
    return emit(Answer(found, about, told=found.decided), output)


def _refuse(asked: Asked, gold: str | None) -> None:
    """Say which options a stream does not take."""
    given = {
        "--gold": gold, "--weight": asked.weight, "--group": asked.group,
        "--order": asked.order, "--block-length": asked.block_length,
        "--kernel": asked.kernel, "--bandwidth": asked.bandwidth, "--bins": asked.bins,
        "--observation-bins": asked.observation_bins, "--difference": asked.difference,
        "--scale": asked.scale != "rank", "--abstain": asked.abstain,
        "--missing": asked.missing != "keep", "--scheduler": asked.scheduler,
    }  # fmt: skip
    if option := next((option for option, value in given.items() if value), None):
        raise ValueError(f"{option}: expected none with --watch, which reads records once")
    text = str(asked.file) == "-" or asked.file.suffix.lower() in _TEXTS
    if not (text or asked.file.is_dir()):
        raise ValueError(
            f"{asked.file}: expected a folder, a .csv, .tsv or .txt file, or - to watch"
        )


def _after(watch: Watch, columns: Columns, asked: Asked, reports: Sequence[str]) -> Watch:
    """What is kept after new records."""
    if watch.state is None:
        columns = columns if watch.first is None else _joined(watch.first, columns)
        if len(columns[reports[0]]) < FEW:
            return watch._replace(first=columns)
        labels, seen = ({name: columns[name] for name in some} for some in
                        (reports, asked.needed))  # fmt: skip
        base = fit_baseline(labels, seen, kinds=kinds_of(asked.kind), num_features=FEATURES)
        if asked.classes is not None:
            classes = listed(asked.classes, labels[reports[0]]) or ()
            base = replace(base, classes=(*map(str, classes),))
        state = sequential.start(
            base.seen(seen), num_reports=len(reports), num_classes=len(base.classes)
        )
    else:
        base, state = watch.baseline, watch.state
    codes = []
    for name in reports:
        own, present = base.codes(name, columns[name])
        if len(unknown := np.flatnonzero(present & (own < 0))):
            label = columns[name].take(unknown[:1]).values[0]
            raise ValueError(
                f"{name}: expected the classes that the stream began with, "
                f"{listing(base.classes)}, got {str(label)!r}: begin again with all possible "
                "labels (--classes)"
            )
        codes.append(own)
    state = sequential.update(state, np.stack(codes), base.seen(columns))
    return Watch(watch.place, None, base, state)


def _keep(path: Path, watch: Watch, about: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    first = {name: np.array(one, object).tolist() for name, one in (watch.first or {}).items()}
    kept: dict[str, Any] = {"read": json.dumps([about, watch.place, first])}
    if watch.baseline is not None:
        kept |= {"baseline": watch.baseline.to_json(), **watch.state._asdict()}
    with whole_file(path) as beside, beside.open("wb") as file:
        np.savez(file, **kept)


def _resumed(path: Path, about: Sequence[str]) -> Watch:
    with np.load(path, allow_pickle=False) as kept:
        before, place, first = json.loads(str(kept["read"]))
        if before != [*about]:
            raise ValueError(
                f"{path}: expected what was kept of this stream, got that of {listing(before)}: "
                "name another folder"
            )
        if first:
            return Watch(place, {name: read(cells, name) for name, cells in first.items()})
        state = sequential.State(*(kept[name] for name in sequential.State._fields))
        return Watch(place, None, load(str(kept["baseline"])), state)


def _arrivals(
    source: Input, names: Sequence[str], place: Any, patience: float | None
) -> Iterator[tuple[Any, Columns]]:
    """New columns as they come, and what has been read with them."""
    if str(source.file) != "-" and source.file.is_dir():
        files: set[str] = set(place or ())

        def new_file() -> Path | None:
            there = list_files(source.file) if any(source.file.iterdir()) else []
            return next((path for path in there if str(path) not in files), None)

        for path in _looked(new_file, patience):
            files.add(str(path))
            yield sorted(files), read_raw(replace(source, file=path), names)
        return
    header, start = place or ("", 0)
    for text, end in _texts(source.file, start, patience):
        if not header:
            header, _, text = text.partition("\n")
        if text.strip():
            yield (header, end), _parsed(source, f"{header}\n{text}", names)


def _looked(look: Callable[[], Any], patience: float | None) -> Iterator[Any]:
    """What looks find, until they find nothing for some seconds."""
    last = time.monotonic()
    while True:
        if found := look():
            yield found
            last = time.monotonic()
        elif patience is not None and time.monotonic() - last >= patience:
            return
        else:
            time.sleep(PAUSE)


def _texts(path: Path, place: int, patience: float | None) -> Iterator[tuple[str, int]]:
    """New whole lines, and where they end; the last line of standard input need not end."""
    begins, rest, once = place == 0, b"", str(path) == "-"

    def grown() -> bytes:
        with path.open("rb") as file:
            file.seek(place + len(rest))
            return file.read()

    for chunk in iter(_chunk, b"") if once else _looked(grown, patience):
        lines, end, rest = (rest + chunk).rpartition(b"\n")
        if end:
            place += len(lines) + 1
            yield f"{lines.decode('utf-8-sig' if begins else 'utf-8')}\n", 0 if once else place
            begins = False
    if once and rest.strip():
        yield rest.decode(), 0


def _chunk() -> bytes:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.buffer.read1(1 << 16)  # type: ignore[attr-defined]
    except KeyboardInterrupt:
        return b""
    finally:
        signal.signal(signal.SIGINT, before)


def _parsed(source: Input, text: str, names: Sequence[str]) -> Columns:
    suffix = ".csv" if str(source.file) == "-" else source.file.suffix
    with TemporaryDirectory() as folder:
        path = Path(folder, f"new{suffix}")
        path.write_text(text, encoding="utf-8")
        return read_raw(source.of(path), names)


def _joined(before: Columns, after: Columns) -> Columns:
    """Columns end to end."""
    found = {}
    for name, one in before.items():
        kind = None if one.is_block else object
        found[name] = read(
            np.concatenate([np.asarray(part, kind) for part in (one, after[name])]), name
        )
    return found
