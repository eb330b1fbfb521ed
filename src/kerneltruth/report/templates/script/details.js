// One attempt, in a sheet over the page.
const SHEET = document.getElementById("sheet");
const BODY = SHEET.querySelector(".body");
let opened = null, neighbours = [];

async function openAttempt(attempt, among) {
  opened = attempt;
  neighbours = among;
  document.getElementById("sheet-title").textContent = taskName(attempt);
  document.getElementById("sheet-about").textContent = [DATA.categories[categoryOf(attempt)],
    methodName(attempt), whichOne(attempt), DATA.devices[COLUMN.run[attempt]], COLUMN.origin[attempt]]
    .filter(Boolean).join(" \u00b7 ");
  const place = among.indexOf(attempt);
  SHEET.querySelector('[data-step="-1"]').disabled = place <= 0;
  SHEET.querySelector('[data-step="1"]').disabled = place < 0 || place >= among.length - 1;
  BODY.replaceChildren(el("p", {class: "soft"}, "Unpacking \u2026"));
  BODY.scrollTop = 0;
  if (!SHEET.open) SHEET.showModal();
  writeAddress(attempt);
  try {
    const detail = await item("details", attempt);
    if (opened !== attempt) return;
    if (detail === undefined) {
      BODY.replaceChildren(el("p", {class: "said"}, verdictBadge(attempt), ` ${COLUMN.said[attempt]}`),
        noted("What else is known of it is left out of this page to keep it small."));
      return;
    }
    BODY.replaceChildren(...sheetParts(attempt, detail));
    await addSource(attempt, detail);
  } catch (error) {
    BODY.replaceChildren(el("p", {}, typeof DecompressionStream === "undefined"
      ? "This browser cannot unpack what the page holds of the attempt; a newer one can."
      : `The page is damaged: ${error.message}`));
  }
}

const heading = (text) => el("h3", {}, text);
const noted = (text) => el("p", {class: "soft"}, text);

function sheetParts(attempt, detail) {
  const finding = detail.finding, parts = [];
  parts.push(el("p", {class: "said"}, verdictBadge(attempt), verdictText(attempt, detail)));
  if (finding?.explanation) parts.push(el("p", {class: "said"}, finding.explanation));
  if (detail.tags) parts.push(chips(detail.tags));
  if (detail.checks) parts.push(...checksView(attempt, detail.checks));
  const chain = chainOf(attempt);
  if (chain.length > 1) parts.push(heading("Rounds"), roundsView(attempt, chain));
  if (finding) {
    parts.push(el("div", {class: "pair"}, el("div", {}, heading("The case"), caseView(finding.case)), whereView(finding)));
    parts.push(heading("See it again"), ...finding.commands.map(commandView),
      noted(`Judged ${finding.where}; bounds: ${finding.bounds}. Finding ${finding.id}.`));
  }
  if (finding?.script) parts.push(el("details", {}, el("summary", {}, "The script that shows it"), sourceView(finding.script)));
  if (detail.profile) parts.push(heading("Profile"), ...profileView(detail));
  if (detail.shapes) parts.push(heading("Times"), timesView(detail.shapes));
  parts.push(heading("Source"));
  return parts;
}

function whereView(finding) {
  const parts = [heading("Where in the output")];
  if (finding.picture) parts.push(pictureView(finding.picture));
  else if (finding.errors) parts.push(noted("The finding holds no map of the output, only how large its errors are."));
  else parts.push(noted("There was no output of the right form to compare."));
  if (finding.errors) parts.push(errorsView(finding.errors));
  return el("div", {}, ...parts);
}

function verdictText(attempt, detail) {
  const cases = COLUMN.cases[attempt], failed = COLUMN.failed[attempt];
  const judged = cases ? ` in ${count(failed)} of ${count(cases)} cases judged` : "";
  return `${judged}${detail.detail ? `: ${detail.detail}` : ""}`;
}

const chips = (words) => el("ul", {class: "chips"}, ...words.map((word) => el("li", {}, word)));

function checksView(attempt, checks) {
  const said = Object.entries(checks).map(([name, says]) => `${name}: ${says}`);
  const fooled = has(attempt, FLAG.illusion) ? "Peers' checks (those that pass it are fooled)" : "Peers' checks";
  return [heading(fooled), chips(said)];
}

function roundsView(attempt, chain) {
  return el("ol", {class: "rounds"}, ...chain.map((other) => {
    const button = el("button", {type: "button", class: "button", "aria-current": other === attempt ? "true" : null},
      `round ${COLUMN.round[other]} `, verdictBadge(other), speedSaid(other) ? ` ${speedSaid(other)}` : "");
    button.addEventListener("click", () => openAttempt(other, chain));
    return el("li", {}, button);
  }));
}

function caseView(rows) {
  const minimal = rows.length > 0 && rows[0].length > 2;
  const head = el("tr", {}, el("th", {scope: "col"}, "what"), el("th", {scope: "col"}, "as found"),
    minimal ? el("th", {scope: "col"}, "smallest failing") : null);
  return el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "The case"},
    el("table", {class: "facts"}, el("caption", {class: "away"}, "The failing case"), el("thead", {}, head),
      el("tbody", {}, ...rows.map(([name, ...values]) => el("tr", {}, el("th", {scope: "row"}, name),
        ...values.map((value, i) => el("td", {class: i && value !== values[0] ? "differs" : null}, value)))))));
}

function commandView([what, command]) {
  const code = el("code", {}, command);
  const button = el("button", {type: "button", class: "button", "aria-label": `Copy the command to ${what}`}, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return el("div", {}, noted(`To ${what}:`), el("div", {class: "command"}, code, button));
}

const ENDED = {held: "pass", broken: "fail", refused: "broken"};

function profileView({profile, not_applicable: others}) {
  const rows = profile.map(([name, status, held, asked]) => el("tr", {}, el("th", {scope: "row"}, name),
    el("td", {}, el("span", {class: `verdict ${ENDED[status] || "unknown"}`}, status)),
    el("td", {}, held), el("td", {}, asked)));
  const head = ["obligation", "ended", "cases", "asked by"].map((name) => el("th", {scope: "col"}, name));
  const table = el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Profile"},
    el("table", {class: "facts"}, el("caption", {class: "away"}, "How each obligation ended"),
      el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)));
  return [table, ...(others ? [noted(`Not applicable: ${others.join(", ")}.`)] : [])];
}

function timesView(shapes) {
  const names = [...new Set(shapes.flatMap((shape) => shape.against.map((ratio) => ratio.name)))];
  const head = ["shape", "kernel", ...names, "of the limit", "bound by"];
  return el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Times"},
    el("table", {class: "cards"}, el("caption", {class: "away"}, "Times by shape"),
      el("thead", {}, el("tr", {}, ...head.map((name) => el("th", {scope: "col"}, name)))),
      el("tbody", {}, ...shapes.map((shape) => el("tr", {}, el("th", {scope: "row"}, shape.case),
        el("td", {"data-label": "kernel"}, shape.time), ...names.map((name) => againstCell(name, shape.against)),
        el("td", {"data-label": "of the limit"}, shape.efficiency, el("span", {class: "hint"}, shape.rates)), el("td", {"data-label": "bound by"}, [shape.bound_by, ...shape.flags].join(", ")))))));
}

function againstCell(name, against) {
  const ratio = against.find((found) => found.name === name);
  if (!ratio) return el("td", {"data-label": name}, DASH);
  return el("td", {"data-label": name}, `${ratio.ratio} ${ratio.outcome}`,
    el("span", {class: "hint"}, `${ratio.time}${ratio.interval ? `; ${ratio.interval}` : ""}`));
}

async function addSource(attempt, detail) {
  const number = COLUMN.source[attempt];
  if (number < 0) {
    BODY.append(noted(`Not on this page; it is ${detail.source_path}`));
    return;
  }
  const source = await item("sources", number);
  const before = COLUMN.before[attempt] < 0 ? -1 : COLUMN.source[COLUMN.before[attempt]];
  const earlier = before < 0 ? null : await item("sources", before);
  if (opened !== attempt) return;
  const box = el("div");
  if (earlier !== null) {
    const round = COLUMN.round[COLUMN.before[attempt]];
    const {box: changes, changed} = diffView(earlier, source);
    const views = [[`Changes since round ${round} (${count(changed)} lines)`, () => changes], ["Whole source", () => sourceView(source)]];
    const buttons = views.map(([label, view]) => {
      const button = el("button", {type: "button", class: "button"}, label);
      button.addEventListener("click", () => {
        buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        box.replaceChildren(view());
      });
      return button;
    });
    BODY.append(el("div", {class: "choices", role: "group", "aria-label": "Show"}, ...buttons), box);
    buttons[0].click();
  } else {
    BODY.append(box);
    box.append(sourceView(source));
  }
  const where = [detail.language, detail.source_path, detail.same_as ? `the same source as ${detail.same_as}` : null];
  BODY.append(noted(where.filter(Boolean).join("; ")));
}

function wakeSheet() {
  SHEET.querySelector(".close").addEventListener("click", () => SHEET.close());
  SHEET.addEventListener("click", (event) => { if (event.target === SHEET) SHEET.close(); });
  SHEET.addEventListener("close", () => {
    // The event comes late: another attempt may be open by then.
    if (SHEET.open) return;
    opened = null;
    writeAddress();
  });
  for (const button of SHEET.querySelectorAll("[data-step]")) {
    button.addEventListener("click", () => {
      const next = neighbours[neighbours.indexOf(opened) + Number(button.dataset.step)];
      if (next !== undefined) openAttempt(next, neighbours);
    });
  }
}
