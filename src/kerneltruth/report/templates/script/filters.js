// The filters: what they hold, which attempts they leave, and the address that says so.
const FORM = document.getElementById("filters");
const FIELDS = ["category", "method", "dtype", "verdict", "obligation", "work", "run", "counted", "text"];

function choices(select, everything, names, values) {
  select.append(el("option", {value: ""}, everything));
  names.forEach((name, i) => select.append(el("option", {value: values ? values[i] : i}, name)));
}

function fillFilters() {
  const {category, method, dtype, verdict, obligation, work, run} = FORM.elements;
  choices(category, "all", DATA.categories);
  choices(method, "all", DATA.methods);
  choices(dtype, "any", DATA.dtypes);
  choices(verdict, "any", DATA.verdicts);
  const kinds = el("optgroup", {label: "kind of failure"});
  DATA.kinds.forEach((kind, i) => {
    if (kind !== null) kinds.append(el("option", {value: `kind ${i}`}, kind));
  });
  if (kinds.childElementCount) verdict.append(kinds);
  choices(obligation, "any", DATA.obligations);
  obligation.parentElement.hidden = !COLUMN.failed_obligations.some(Boolean);
  work.parentElement.hidden = !COLUMN.flags.some((flags) => flags & FLAG.plain);
  const devices = [...new Set(DATA.devices)];
  choices(run, "all", devices);
  run.parentElement.hidden = devices.length < 2;
  FORM.hidden = false;
}

function activeFilters() {
  return FIELDS.filter((name) => FORM.elements[name].value !== "");
}

// Numbers of the attempts that the filters leave, in the order of the data: of the answers, or of
// the distinct kernels whatever the form says.
function selection(everyRound = false) {
  const value = (name) => FORM.elements[name].value;
  const number = (name) => (value(name) === "" ? null : Number(value(name)));
  const category = number("category"), method = number("method"), dtype = number("dtype");
  const device = value("run") === "" ? null : [...new Set(DATA.devices)][number("run")];
  const ofKind = value("verdict").startsWith("kind ");
  const kind = ofKind ? Number(value("verdict").slice(5)) : null;
  const verdict = ofKind ? null : number("verdict");
  const words = value("text").toLowerCase().split(/\s+/).filter(Boolean);
  const all = everyRound || value("counted") === "all";
  const counted = device === null ? (all ? FLAG.distinct : FLAG.answer) : (all ? 0 : FLAG.own);
  const obligation = number("obligation"), work = value("work");
  const left = [];
  for (let i = 0; i < DATA.count; i += 1) {
    if (counted && !has(i, counted)) continue;
    if (category !== null && categoryOf(i) !== category) continue;
    if (method !== null && COLUMN.method[i] !== method) continue;
    if (dtype !== null && !(Math.floor(COLUMN.dtypes[i] / 2 ** dtype) % 2)) continue;
    if (verdict !== null && COLUMN.verdict[i] !== verdict) continue;
    if (kind !== null && COLUMN.kind[i] !== kind) continue;
    if (obligation !== null && !((COLUMN.failed_obligations[i] >> obligation) & 1)) continue;
    if (work !== "" && has(i, FLAG.plain) !== (work === "none")) continue;
    if (device !== null && DATA.devices[COLUMN.run[i]] !== device) continue;
    if (words.length) {
      const where = `${taskName(i)} ${COLUMN.origin[i]}`.toLowerCase();
      if (!words.every((word) => where.includes(word))) continue;
    }
    left.push(i);
  }
  return left;
}

// The address: `#place`, and `name=value` for filters and the attempt that is open.
function readAddress() {
  const found = {};
  for (const part of location.hash.slice(1).split("&")) {
    const [name, ...value] = part.split("=");
    if (value.length) {
      try { found[name] = decodeURIComponent(value.join("=")); } catch { /* not one of ours */ }
    }
  }
  return found;
}

function writeAddress(attempt) {
  const parts = activeFilters().map((name) => {
    return `${name}=${encodeURIComponent(FORM.elements[name].value)}`;
  });
  if (attempt !== undefined && attempt !== null) parts.unshift(`attempt=${attempt}`);
  try {
    history.replaceState(null, "", parts.length ? `#${parts.join("&")}` : location.pathname + location.search);
  } catch { /* some places keep pages from changing their address */ }
}

function applyAddress(address) {
  if (!FIELDS.some((name) => name in address)) return;
  for (const name of FIELDS) {
    const field = FORM.elements[name];
    field.value = address[name] || "";
    if (field.value !== (address[name] || "")) field.value = "";
  }
}

function sayStatus(left) {
  const active = activeFilters();
  const what = FORM.elements.counted.value === "all" ? "attempts" : "answers";
  const total = what === "attempts" ? FLAG.distinct : FLAG.answer;
  const of = COLUMN.flags.reduce((sum, flags) => sum + ((flags & total) !== 0), 0);
  const others = active.filter((name) => name !== "counted");
  FORM.querySelector(".status").textContent = others.length
    ? `${count(left.length)} ${what} left by ${others.length} filter${others.length > 1 ? "s" : ""}`
    : `${count(of)} ${what}, no filter`;
  FORM.querySelector("summary").textContent = active.length ? `Filters (${active.length})` : "Filters";
  for (const name of FIELDS) FORM.elements[name].classList.toggle("set", active.includes(name));
  for (const note of document.querySelectorAll(".scope")) note.hidden = active.length === 0;
}
