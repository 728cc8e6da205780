"""Write the table of bench/README.md from the results of the benchmarks: ``python -m bench``."""

import json
from pathlib import Path

from bench.timing import RESULTS

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def seconds(value: float) -> str:
    """In the unit that reads best."""
    if value >= 1.0:
        return f"{value:.2f} s"
    return f"{value * 1e3:.2f} ms" if value >= 1e-3 else f"{value * 1e6:.0f} µs"


def table() -> str:
    """One row a measurement, one block a benchmark."""
    lines = ["| | what | median | first call | ratio |", "|---" * 5 + "|"]
    for path in sorted(RESULTS.glob("*.json")):
        record = json.loads(path.read_text())
        for row in record["rows"]:
            ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
            times = f"{seconds(row['seconds'])} | {seconds(row['first_seconds'])}"
            lines.append(f"| `{path.stem}` | {row['name']} | {times} | {ratio} |")
        for name, value in record.items():
            if isinstance(value, float | int):
                lines.append(f"| `{path.stem}` | {name} | | | {value:.4g} |")
        versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
        lines.append(f"| | *{record['device']}; {versions}* | | | |")
    return "\n".join(lines)


def main() -> None:
    """Replace what stands between the two markers."""
    before, rest = README.read_text().split(BEGIN)
    README.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
