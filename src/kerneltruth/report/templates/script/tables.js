// Lists of attempts: sorted as a whole, shown a page at a time.
const PAGE = 20;
const MARK_CLASS = {pass: "pass", fail: "fail", infra: "unknown", unsupported_here: "unknown", unrefereeable: "unknown"};

function verdictBadge(attempt) {
  const verdict = verdictName(attempt), kind = DATA.kinds[COLUMN.kind[attempt]];
  return el("span", {class: `verdict ${MARK_CLASS[verdict] || "broken"}`},
    el("span", {class: "mark", "aria-hidden": "true"}, DATA.marks[verdict] || DASH),
    ` ${verdict}${kind ? ` ${kind}` : ""}${has(attempt, FLAG.plain) ? ", torch-only" : ""}`);
}

function whichOne(attempt) {
  const sample = COLUMN.sample[attempt], round = COLUMN.round[attempt];
  const parts = [];
  if (sample !== null) parts.push(`#${sample}`);
  if (round !== null) parts.push(`round ${round}`);
  return parts.join(", ");
}

const OUTCOMES = ["", "slower", "tie", "faster"];

function speedSaid(attempt) {
  const speed = COLUMN.speed[attempt];
  if (speed === null) return "";
  const outcome = OUTCOMES[COLUMN.outcome[attempt]];
  return `${times(speed)}${outcome ? ` ${outcome}` : ""}`;
}

const checksPassing = (attempt) => DATA.checks.filter((_, i) => Math.floor(COLUMN.fooled[attempt] / 2 ** i) % 2);

const SHOWN = {
  task: {label: "task", value: taskName, text: shortTask},
  category: {label: "category", value: (i) => DATA.categories[categoryOf(i)]},
  method: {label: "method", value: methodName},
  which: {label: "which", value: (i) => (COLUMN.sample[i] ?? 0) * 1000 + (COLUMN.round[i] ?? 0), text: whichOne, kind: "brief"},
  file: {label: "file", value: (i) => COLUMN.origin[i], kind: "file"},
  verdict: {label: "verdict", value: (i) => `${verdictName(i)} ${DATA.kinds[COLUMN.kind[i]] || ""}`, node: verdictBadge},
  said: {label: "what is wrong", value: (i) => COLUMN.said[i], kind: "prose"},
  checks: {label: "passed by", value: (i) => checksPassing(i).length, text: (i) => checksPassing(i).join(", "), kind: "checks"},
  cases: {label: "wrong cases", number: true, value: (i) => COLUMN.failed[i],
    text: (i) => (COLUMN.cases[i] ? `${count(COLUMN.failed[i])} of ${count(COLUMN.cases[i])}` : "")},
  speed: {label: "speedup", number: true, value: (i) => COLUMN.speed[i], text: speedSaid},
  efficiency: {label: "of the limit", number: true, value: (i) => COLUMN.efficiency[i],
    text: (i) => (COLUMN.efficiency[i] === null ? "" : percent(COLUMN.efficiency[i]))},
  ownTime: {label: "own kernels' time", number: true, value: (i) => COLUMN.own_time[i],
    text: (i) => (COLUMN.own_time[i] === null ? "" : percent(COLUMN.own_time[i]))},
};
// What tells the answers of a method to a task apart; without labels, only the file does.
const WHICH = [COLUMN.sample, COLUMN.round].some((column) => column.some((n) => n !== null)) ? "which" : "file";
const LISTED = {
  illusions: ["task", "method", WHICH, "verdict", "said", "checks"],
  findings: ["task", "category", "method", WHICH, "verdict", "said"],
  attempts: ["task", "category", "method", WHICH, "verdict", "cases", "speed", "efficiency",
    ...(COLUMN.own_time.some((share) => share !== null) ? ["ownTime"] : [])],
};

class Listing {
  constructor(root, belongs) {
    this.root = root;
    this.belongs = belongs;
    this.attempts = [];
    this.first = 0;
    this.order = null;
    const head = root.querySelector("thead tr");
    this.columns = LISTED[root.dataset.listing].map((name) => SHOWN[name]);
    for (const column of this.columns) {
      const heading = el("th", {scope: "col", class: column.number ? "figure" : null},
        el("span", {class: "label"}, column.label));
      head.append(heading);
      makeSortable(heading, Boolean(column.number), (descending) => {
        this.order = {column, descending};
        this.first = 0;
        this.sort();
        this.show();
      });
    }
    for (const button of root.querySelectorAll("[data-move]")) {
      button.addEventListener("click", () => {
        this.first += PAGE * Number(button.dataset.move);
        this.show();
        root.scrollIntoView({block: "start"});
      });
    }
    root.hidden = false;
  }

  set(left) {
    this.attempts = left.filter(this.belongs);
    this.first = 0;
    this.sort();
    this.show();
  }

  sort() {
    if (!this.order) return;
    const {column, descending} = this.order;
    this.attempts = sortBy(this.attempts, column.value, descending);
  }

  show() {
    const shown = this.attempts.slice(this.first, this.first + PAGE);
    this.root.querySelector("tbody").replaceChildren(...shown.map((attempt) => this.row(attempt)));
    const total = this.attempts.length, last = this.first + shown.length;
    this.root.querySelector(".pager p").textContent = total
      ? `${count(this.first + 1)} ${DASH} ${count(last)} of ${count(total)}` : "none";
    this.root.querySelector('[data-move="-1"]').disabled = this.first === 0;
    this.root.querySelector('[data-move="1"]').disabled = last >= total;
  }

  row(attempt) {
    const row = el("tr", {"data-attempt": attempt});
    for (const column of this.columns) {
      const text = column.node ? null : (column.text || column.value)(attempt);
      if (column === SHOWN.task) {
        const button = el("button", {type: "button", class: "open-row"}, ...breakable(text));
        button.addEventListener("click", () => openAttempt(attempt, this.attempts));
        row.append(el("th", {scope: "row"}, button));
      } else {
        row.append(el("td", {class: column.number ? "figure" : column.kind || null, "data-label": column.label},
          column.node ? column.node(attempt) : text));
      }
    }
    return row;
  }
}
