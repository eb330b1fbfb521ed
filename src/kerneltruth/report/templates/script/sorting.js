// Tables that Python drew, made sortable: headings become buttons, and `aria-sort` says the order.
const WORDS = new Intl.Collator("en", {numeric: true});

function compareValues(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return WORDS.compare(String(a), String(b));
}

// Sorts in place; what has no value comes last either way.
function sortBy(items, valueOf, descending) {
  const missing = (value) => value === null || value === undefined || value === "";
  const keyed = items.map((item, place) => ({item, place, value: valueOf(item)}));
  keyed.sort((a, b) => {
    if (missing(a.value) || missing(b.value)) {
      return missing(a.value) - missing(b.value) || a.place - b.place;
    }
    const order = compareValues(a.value, b.value);
    return (descending ? -order : order) || a.place - b.place;
  });
  return keyed.map((entry) => entry.item);
}

// Makes a heading a button; `sort(descending)` is called with the new order.
function makeSortable(heading, numeric, sort) {
  const label = heading.querySelector(".label");
  const button = el("button", {type: "button"});
  label.replaceWith(button);
  button.append(label);
  heading.setAttribute("aria-sort", "none");
  button.addEventListener("click", () => {
    const now = heading.getAttribute("aria-sort");
    const descending = now === "none" ? numeric : now === "ascending";
    for (const other of heading.parentElement.children) {
      if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    }
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    sort(descending);
  });
}

function cellValue(row, place) {
  const cell = row.children[place];
  if (cell.tagName === "TH") return cell.textContent;
  const value = cell.dataset.value;
  if (value === undefined) return null;
  const number = Number(value);
  return value.trim() === "" || Number.isNaN(number) ? value : number;
}

function sortableTables() {
  for (const table of document.querySelectorAll("table.data")) {
    const body = table.tBodies[0];
    table.querySelectorAll("th[data-sort]").forEach((heading, place) => {
      makeSortable(heading, heading.dataset.sort === "number", (descending) => {
        body.append(...sortBy([...body.rows], (row) => cellValue(row, place), descending));
      });
    });
  }
}
