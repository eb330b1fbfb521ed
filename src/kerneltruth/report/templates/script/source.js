// Sources: numbered lines with quiet colours, or what changed since the round before.
const MOST_LINES = 4000, AROUND = 3;
const TOKEN = new RegExp([
  /("""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)/,
  /(#[^\n]*)/,
  /\b(and|as|assert|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield)\b/,
  /\b(\d[\w.]*)/,
].map((part) => part.source).join("|"), "g");
const TOKENS = ["t-text", "t-remark", "t-word", "t-number"];

// For each line its pieces: [class or null, text].
function coloured(source) {
  const lines = [[]];
  const add = (name, text) => {
    text.split("\n").forEach((piece, i) => {
      if (i) lines.push([]);
      if (piece) lines[lines.length - 1].push([name, piece]);
    });
  };
  let at = 0;
  for (const found of source.matchAll(TOKEN)) {
    add(null, source.slice(at, found.index));
    add(TOKENS[found.slice(1).findIndex((group) => group !== undefined)], found[0]);
    at = found.index + found[0].length;
  }
  add(null, source.slice(at));
  return lines;
}

function codeCell(pieces) {
  const cell = el("td", {class: "text"});
  for (const [name, text] of pieces) {
    cell.append(name ? el("span", {class: name}, visible(text)) : visible(text));
  }
  return cell;
}

function codeBox(rows, label) {
  const shown = rows.slice(0, MOST_LINES);
  if (rows.length > MOST_LINES) {
    shown.push(el("tr", {class: "skipped"}, el("td", {colspan: 4}, `${count(rows.length - MOST_LINES)} more lines`)));
  }
  return el("div", {class: "code", tabindex: 0, role: "region", "aria-label": label},
    el("table", {role: "presentation"}, el("tbody", {}, ...shown)));
}

function sourceView(source) {
  const rows = coloured(source.replace(/\r\n?/g, "\n")).map((pieces, i) =>
    el("tr", {}, el("td", {class: "at"}, String(i + 1)), codeCell(pieces)));
  return codeBox(rows, "Source");
}

function diffView(before, after) {
  const [olds, news] = [before, after].map((text) => text.replace(/\r\n?/g, "\n"));
  const [oldPieces, newPieces] = [coloured(olds), coloured(news)];
  const edits = lineDiff(olds.split("\n"), news.split("\n"));
  const near = new Array(edits.length).fill(false);
  edits.forEach(([sign], at) => {
    if (sign === " ") return;
    for (let i = Math.max(0, at - AROUND); i <= Math.min(edits.length - 1, at + AROUND); i += 1) near[i] = true;
  });
  const rows = [];
  let skipped = 0;
  const pause = () => {
    if (skipped) rows.push(el("tr", {class: "skipped"}, el("td", {colspan: 4}, `${count(skipped)} line${skipped === 1 ? "" : "s"} as before`)));
    skipped = 0;
  };
  edits.forEach(([sign, i, j], at) => {
    if (!near[at]) { skipped += 1; return; }
    pause();
    rows.push(el("tr", {class: {"+": "add", "-": "del"}[sign] || null},
      el("td", {class: "at"}, sign === "+" ? "" : String(i + 1)),
      el("td", {class: "at"}, sign === "-" ? "" : String(j + 1)),
      el("td", {class: "sign"}, sign === " " ? "" : sign),
      codeCell(sign === "-" ? oldPieces[i] : newPieces[j])));
  });
  pause();
  const changed = edits.filter(([sign]) => sign !== " ").length;
  return {box: codeBox(rows, "Changes since the round before"), changed};
}
