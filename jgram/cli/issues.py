"""``jgram issues``: the records to look at first."""

from typing import Annotated

from typer import Option

from jgram.cli.options import Input, Listing, Observed
from jgram.cli.show import columns_of, progress, say, say_json, say_table
from jgram.cli.write import check_target, to_text, write_records

__all__ = ["run"]


def run(
    report: Annotated[str, Option(help="Column of reported labels.")],
    source: Input,
    observed: Observed,
    listing: Listing,
) -> None:
    """List the records whose label fits its observation badly: look at these first.

    Nothing is trained. Rows count from 0 after the header. The order is more trustworthy than the
    number of records listed.

    Examples:

        jgram issues visits.csv --report diagnosis --observation crp --observation temperature

        jgram issues labels.npz --report answers --observation features --out suspects.csv
    """

    check_target(listing.out, (".csv", ".json"))
    with progress("looking for label issues"):
        from jgram.cli.read import kernel_of, listed, read_prepared
        from jgram.issues import label_issues

        columns, rows, notes = read_prepared(source, observed, [report])
        labels = columns.pop(report)
        kernel = kernel_of(observed.kernel, observed.bandwidth)
        found = label_issues(labels, columns, kernel, classes=listed(source.classes, labels))
    record = found.to_dict()
    for issue in record["records"]:
        issue["row"] = int(rows[issue["row"]])
    about = {"file": str(source.file), "observations": observed.observation, "notes": notes}
    text = to_text({"source": about, "report": report, **record})
    write_records(listing.out, text, record["records"])
    if listing.as_json:
        say_json(text)
        return
    say(f"{record['num_issues']} of {record['num_records']} records fit another class better")
    for note in notes:
        say(note, "dim")
    say()
    classes = {"name": True, "count": False, "issues": False, "mean_quality": False}
    say_table(columns_of(record["classes"], **classes, confused_with=True))
    records = {"row": False, "label": True, "suggested": True, "quality": False, "gain": False}
    say_table(columns_of(record["records"][: listing.limit], **records))
    if listing.out is not None:
        say(f"all of them in {listing.out}", "dim")
