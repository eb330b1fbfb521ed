// The verdict map: cells that open what they count, counted again where filters are set.
const MAP = document.getElementById("map");
const MAP_CELLS = new Map();
const NOT_JUDGED = new Set(["infra", "unsupported_here", "unrefereeable"]);

// As shade() in report/page/verdict_map.py.
function shade(right, total, judged, returned) {
  if (judged === 0) return "open";
  if (returned === 0) return "broke";
  if (right === total) return "s4";
  return right === 0 ? "s0" : `s${Math.min(3, 1 + Math.floor(3 * right / total))}`;
}

function drawCell(cell, attempts) {
  const verdicts = new Map();
  let right = 0, judged = 0, returned = 0;
  for (const attempt of attempts) {
    const verdict = verdictName(attempt);
    verdicts.set(verdict, (verdicts.get(verdict) || 0) + 1);
    right += has(attempt, FLAG.correct);
    judged += !NOT_JUDGED.has(verdict);
    returned += has(attempt, FLAG.called);
  }
  const total = attempts.length;
  const only = total === 1 ? DATA.marks[verdictName(attempts[0])] || DASH : null;
  const mark = total === 0 ? "" : only || `${right}/${total}`;
  const said = [...verdicts].sort((a, b) => b[1] - a[1]).map(([word, n]) => `${n} ${word}`).join(", ");
  const name = total === 0 ? "none" : shade(right, total, judged, returned);
  cell.className = `cell ${name}`;
  cell.textContent = mark;
  cell.title = said;
  cell.disabled = total === 0;
  cell.setAttribute("aria-label", total === 0 ? "no answer" : `${mark}: ${said}`);
}

// Buttons in place of the drawn cells: one stop for the tab key, arrows go from cell to cell.
function wakeMap() {
  const categories = new Map(DATA.categories.map((name, i) => [name, i]));
  for (const group of MAP.tBodies) {
    const category = categories.get(group.dataset.category);
    for (const row of group.rows) {
      const task = row.dataset.task;
      row.querySelectorAll("td").forEach((td, method) => {
        const old = td.firstElementChild;
        const cell = el("button", {type: "button", class: old.className, title: old.title,
          tabindex: -1, "aria-label": old.getAttribute("aria-label")}, old.textContent);
        cell.disabled = old.classList.contains("none");
        old.replaceWith(cell);
        const place = {cell, category, task, method, attempts: []};
        MAP_CELLS.set(task === undefined ? `${category} ${method}` : `${category} ${method} ${task}`, place);
        cell.addEventListener("click", () => openCell(place));
      });
      if (task === undefined) foldable(group, row);
    }
  }
  MAP.addEventListener("keydown", moveInMap);
  firstStop();
}

function firstStop() {
  const first = MAP.querySelector("button.cell:not(:disabled)");
  if (first) first.tabIndex = 0;
}

function foldable(group, row) {
  const heading = row.querySelector("th");
  const button = el("button", {type: "button", "aria-expanded": "true"}, heading.textContent);
  heading.replaceChildren(button);
  const fold = (open) => {
    button.setAttribute("aria-expanded", String(open));
    for (const other of group.rows) if (other !== row) other.classList.toggle("folded", !open);
    showFolded(group);
  };
  button.addEventListener("click", () => fold(button.getAttribute("aria-expanded") !== "true"));
  if (DATA.tasks.length > 300) fold(false);
}

function showFolded(group) {
  for (const row of group.rows) {
    row.hidden = row.classList.contains("folded") || row.classList.contains("empty");
  }
}

function openCell(place) {
  if (place.attempts.length === 1) openAttempt(place.attempts[0], place.attempts);
  else if (place.task === undefined) {
    setFilters({category: place.category, method: place.method});
    document.getElementById("attempts").scrollIntoView();
  } else openAttempt(place.attempts[0], place.attempts);
}

const STEPS = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};

function moveInMap(event) {
  const step = STEPS[event.key], from = event.target.closest("button.cell");
  if (!step || !from) return;
  event.preventDefault();
  const rows = [...MAP.querySelectorAll("tbody tr")].filter((row) => !row.hidden);
  let row = rows.indexOf(from.closest("tr")), column = from.parentElement.cellIndex;
  for (;;) {
    row += step[0];
    column += step[1];
    const cell = rows[row]?.children[column]?.querySelector("button.cell");
    if (!cell) return;
    if (!cell.disabled) {
      MAP.querySelectorAll("button.cell[tabindex='0']").forEach((other) => { other.tabIndex = -1; });
      cell.tabIndex = 0;
      cell.focus();
      return;
    }
  }
}

function showMap(left, redraw) {
  const found = new Map();
  const into = (key, attempt) => (found.get(key) || found.set(key, []).get(key)).push(attempt);
  for (const attempt of left) {
    const start = `${categoryOf(attempt)} ${COLUMN.method[attempt]}`;
    into(start, attempt);
    into(`${start} ${taskName(attempt)}`, attempt);
  }
  const rows = new Map();
  for (const [key, place] of MAP_CELLS) {
    place.attempts = found.get(key) || [];
    if (redraw) drawCell(place.cell, place.attempts);
    const row = place.cell.closest("tr");
    rows.set(row, (rows.get(row) || 0) + place.attempts.length);
  }
  for (const [row, total] of rows) row.classList.toggle("empty", total === 0);
  for (const group of MAP.tBodies) showFolded(group);
  const stop = MAP.querySelector("button.cell[tabindex='0']");
  if (!stop || stop.disabled || stop.closest("tr").hidden) {
    if (stop) stop.tabIndex = -1;
    firstStop();
  }
}
