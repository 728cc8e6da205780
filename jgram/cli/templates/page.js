// Tables that sort and filter, and the download. Runs once, when the page has been read.
const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** What a cell is sorted by: its number, its text, or nothing. */
function key(row, column) {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
}

/** Numbers by size, before texts by the alphabet, before nothing, whatever the direction. */
function compare(a, b, sign) {
  const place = (x) => (typeof x === "number" ? 0 : x === "" ? 2 : 1);
  if (place(a) !== place(b)) return place(a) - place(b);
  return sign * (typeof a === "number" ? a - b : words.compare(a, b));
}

for (const section of document.querySelectorAll("main section")) {
  const table = section.querySelector("table");
  const [body] = table.tBodies;
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (rows.length < 2) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = [...body.rows].map((row) => [key(row, column), row]);
      keyed.sort((a, b) => compare(a[0], b[0], down ? -1 : 1));
      body.append(...keyed.map(([, row]) => row));
    });
  });
  const tools = section.querySelector(".tools");
  if (!tools) continue;
  const [input, count] = [tools.querySelector("input"), tools.querySelector("output")];
  const joined = rows.map((row) => [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase());
  const all = rows.length.toLocaleString("en");
  tools.hidden = false;
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row, i) => { row.hidden = !wanted.every((word) => joined[i].includes(word)); });
    const shown = rows.filter((row) => !row.hidden).length.toLocaleString("en");
    count.textContent = wanted.length ? `${shown} of ${all} rows` : `${all} rows`;
  });
}

const link = document.getElementById("download");
const text = JSON.parse(document.getElementById("json").textContent);
link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
link.parentElement.hidden = false;
