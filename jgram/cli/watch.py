"""What ``jgram rank --watch`` does: records are judged as they come, and may be looked at always.

The first hundred records say how observations are read (bins, bandwidths, features); all records
then go into the sums of :mod:`jgram.sequential`, which are kept, with what was read, in the folder
of ``--checkpoint`` after every batch, whole or not at all.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import jgram.sequential as sequential
from jgram.cli.options import Engine, Inference, Input, Observed, Output
from jgram.cli.outputs import whole_file
from jgram.cli.read import kinds_of, listed, read_raw
from jgram.cli.show import Answer, emit, say_note
from jgram.data import list_files
from jgram.data.columns import Column, listing, read
from jgram.drift import Baseline, fit_baseline
from jgram.results import load

__all__ = ["watch_reports"]

FEW = 100  # records that say how observations are read
FEATURES = 256
PAUSE = 0.5  # seconds between two looks
_TEXTS = (".csv", ".tsv", ".txt")
Columns = dict[str, Column]


class Watch(NamedTuple):
    """How observations are read, the sums, and what was read: files, or a header and a place."""

    baseline: Baseline
    state: sequential.State
    place: Any


def _refuse(
    source: Input, observed: Observed, inference: Inference, engine: Engine, gold: str | None
) -> None:
    """Say which options a stream does not take."""
    given = {
        "--gold": gold, "--weight": inference.weight, "--group": inference.group,
        "--order": inference.order, "--block-length": inference.block_length,
        "--kernel": observed.kernel, "--bandwidth": observed.bandwidth, "--bins": observed.bins,
        "--observation-bins": observed.observation_bins, "--difference": observed.difference,
        "--scale": observed.scale != "rank", "--abstain": source.abstain,
        "--missing": source.missing != "keep", "--scheduler": engine.scheduler,
    }  # fmt: skip
    for option, value in given.items():
        if value:
            raise ValueError(f"{option}: expected none with --watch, which reads records once")
    text = str(source.file) == "-" or source.file.suffix.lower() in _TEXTS
    if not (text or source.file.is_dir()):
        raise ValueError(
            f"{source.file}: expected a folder, a .csv, .tsv or .txt file, or - to watch"
        )


def watch_reports(
    report: list[str],
    source: Input,
    observed: Observed,
    inference: Inference,
    engine: Engine,
    output: Output,
    gold: str | None,
    patience: float | None,
) -> int:
    """Watch, say what is found after every batch, and put out the verdict."""
    _refuse(source, observed, inference, engine, gold)
    found = _watched(
        source, observed, report, inference.confidence, checkpoint=engine.checkpoint,
        patience=patience, said=(lambda _: None) if output.quiet else say_note,
    )  # fmt: skip
    about = {"file": str(source.file), "observations": observed.columns, "notes": []}
    return emit(Answer(found, about, told=found.decided), output)


def _watched(
    source: Input,
    observed: Observed,
    reports: Sequence[str],
    confidence: float,
    *,
    checkpoint: Path | None,
    patience: float | None,
    said: Callable[[str], None],
) -> sequential.SequentialRanking:
    """The verdict on a stream once every order is told, it ends, or nothing new comes for long."""
    about = [*reports, *observed.needed, str(source.file)]
    kept = None if checkpoint is None else checkpoint / "watch.npz"
    watch = _resumed(kept, about) if kept is not None and kept.exists() else None
    waiting: list[Columns] = []

    def verdict(state: sequential.State) -> sequential.SequentialRanking:
        return sequential.verdict(state, reports, confidence=confidence)

    if watch is not None and (found := verdict(watch.state)).decided:
        return found
    for place, columns in _arrivals(source, [*reports, *observed.needed], watch, patience):
        if watch is None:
            waiting.append(columns)
            columns = _joined(waiting)
            if len(columns[reports[0]]) < FEW:
                continue
            watch = _begun(columns, source, observed, reports)
        watch = Watch(watch.baseline, _after(watch, columns, reports), place)
        found = verdict(watch.state)
        if kept is not None:
            _keep(kept, watch, about)
        far = min(1.0, *(pair.evidence for pair in found.pairs))
        said(f"{found.num_records} records, evidence {far:.0%}: {found.conclusion}")
        if found.decided:
            return found
    if watch is None:
        size = sum(len(columns[reports[0]]) for columns in waiting)
        raise ValueError(f"expected {FEW} records or more to begin with, got {size}")
    return verdict(watch.state)


def _begun(columns: Columns, source: Input, observed: Observed, reports: Sequence[str]) -> Watch:
    """How observations are read, and no record yet."""
    labels = {name: columns[name] for name in reports}
    seen = {name: columns[name] for name in observed.needed}
    baseline = fit_baseline(labels, seen, kinds=kinds_of(observed.kind), num_features=FEATURES)
    if source.classes is not None:
        classes = listed(source.classes, columns[reports[0]])
        baseline = replace(baseline, classes=tuple(map(str, classes or ())))
    start = sequential.start(
        baseline.seen(seen), num_reports=len(reports), num_classes=len(baseline.classes)
    )
    return Watch(baseline, start, None)


def _after(watch: Watch, columns: Columns, reports: Sequence[str]) -> sequential.State:
    codes = []
    for name in reports:
        own, present = watch.baseline.codes(name, columns[name])
        if (present & (own < 0)).any():
            label = columns[name].take(np.flatnonzero(present & (own < 0))[:1]).values[0]
            raise ValueError(
                f"{name}: expected the classes that the stream began with, "
                f"{listing(watch.baseline.classes)}, got {str(label)!r}: begin again with all "
                "possible labels (--classes)"
            )
        codes.append(own)
    return sequential.update(watch.state, np.stack(codes), watch.baseline.seen(columns))


def _keep(path: Path, watch: Watch, about: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = {"baseline": watch.baseline.to_json(), "read": json.dumps([about, watch.place])}
    sums = {f"sum{i}": np.asarray(leaf) for i, leaf in enumerate(watch.state)}
    with whole_file(path) as beside, beside.open("wb") as file:
        np.savez(file, **texts, **sums)  # type: ignore[arg-type]


def _resumed(path: Path, about: Sequence[str]) -> Watch:
    with np.load(path, allow_pickle=False) as kept:
        before, place = json.loads(str(kept["read"]))
        if before != [*about]:
            raise ValueError(
                f"{path}: expected what was kept of this stream, got that of {listing(before)}: "
                "name another folder"
            )
        fields = sequential.State._fields
        state = sequential.State(*(kept[f"sum{i}"] for i in range(len(fields))))
        return Watch(load(str(kept["baseline"])), state, place)


def _arrivals(
    source: Input, names: Sequence[str], watch: Watch | None, patience: float | None
) -> Iterator[tuple[Any, Columns]]:
    """New columns as they come, and what has been read with them."""
    place = None if watch is None else watch.place
    if str(source.file) != "-" and source.file.is_dir():
        files: set[str] = set(place or ())

        def new_file() -> Path | None:
            there = [path for path in _files(source.file) if str(path) not in files]
            return there[0] if there else None

        for path in _looked(new_file, patience):
            files.add(str(path))
            yield sorted(files), read_raw(replace(source, file=path), names)
        return
    header, start = place or ("", 0)
    texts = _of_input() if str(source.file) == "-" else _of_file(source.file, start, patience)
    for text, start in texts:
        if not header:
            header, _, text = text.partition("\n")
        if text.strip():
            yield (header, start), _parsed(source, f"{header}\n{text}", names)


def _files(folder: Path) -> list[Path]:
    return list_files(folder) if any(folder.iterdir()) else []


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


def _of_file(path: Path, place: int, patience: float | None) -> Iterator[tuple[str, int]]:
    """New whole lines, and where they end."""

    def look() -> str | None:
        nonlocal place
        with path.open("rb") as file:
            file.seek(place)
            data = file.read()
        text = data[: data.rfind(b"\n") + 1]
        begins, place = place == 0, place + len(text)
        return text.decode("utf-8-sig" if begins else "utf-8")

    for text in _looked(look, patience):
        yield text, place


def _of_input() -> Iterator[tuple[str, int]]:
    """New whole lines of standard input."""
    rest = b""
    while chunk := sys.stdin.buffer.read1(1 << 16):  # type: ignore[attr-defined]
        lines, end, rest = (rest + chunk).rpartition(b"\n")
        if end:
            yield f"{lines.decode('utf-8-sig')}\n", 0
    if rest.strip():
        yield rest.decode(), 0


def _parsed(source: Input, text: str, names: Sequence[str]) -> Columns:
    suffix = ".csv" if str(source.file) == "-" else source.file.suffix
    with TemporaryDirectory() as folder:
        path = Path(folder, f"new{suffix}")
        path.write_text(text, encoding="utf-8")
        return read_raw(source.of(path), names)


def _joined(parts: Sequence[Columns]) -> Columns:
    """Columns end to end."""
    if len(parts) == 1:
        return parts[0]

    def joined(name: str) -> np.ndarray:
        whole = parts[0][name].is_block
        cells = [np.asarray(part[name], None if whole else object) for part in parts]
        return np.concatenate(cells)

    return {name: read(joined(name), name) for name in parts[0]}
