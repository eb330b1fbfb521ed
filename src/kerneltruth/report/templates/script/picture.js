// Where an output is wrong: the map that the finding stores.
function pictureView(picture) {
  const down = picture.lines.length, across = down ? picture.lines[0].length : 0;
  if (!down || !across) return el("p", {class: "soft"}, "The output has no elements.");
  const height = Math.max(4, Math.min(18, Math.floor(240 / down)));
  const drawing = svg("svg", {role: "img", height: down * height,
    "aria-label": `Map of the wrong elements: ${picture.said}`});
  picture.lines.forEach((line, row) => {
    for (let from = 0; from < across;) {
      let to = from + 1;
      while (to < across && line[to] === line[from]) to += 1;
      if (line[from] !== ".") {
        const share = line[from] === "#" ? 1 : Number(line[from]) / 10;
        drawing.append(svg("rect", {class: "w", x: `${100 * from / across}%`, y: row * height,
          width: `${100 * (to - from) / across}%`, height, "fill-opacity": (0.2 + 0.8 * share).toFixed(2)}));
      }
      from = to;
    }
  });
  if (picture.worst) {
    const [row, column] = picture.worst;
    drawing.append(svg("circle", {class: "worst", cx: `${100 * (column + 0.5) / across}%`,
      cy: (row + 0.5) * height, r: Math.max(5, height / 2 + 2)}));
  }
  const many = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
  return el("figure", {class: "picture"}, drawing, el("p", {class: "soft"},
    `${picture.said}: ${many(picture.rows, "row")} of ${many(picture.columns, "element")}, all dims but the last folded. ` +
    "The fuller a cell, the more of its elements are wrong; empty: none." +
    (picture.worst ? " The ring marks the worst element." : "")));
}

function errorsView(errors) {
  const share = errors.count ? errors.wrong / errors.count : 0;
  const rows = [...errors.quantiles];
  if (errors.ratio !== null) rows.push(["worst error, in bounds", `${errors.ratio} times the bound`]);
  if (errors.relative !== null) rows.push(["largest relative error", errors.relative]);
  if (errors.ulp !== null) rows.push(["largest distance in ULP", errors.ulp]);
  if (errors.worst !== null) rows.push(["worst element at", `[${errors.worst.join(", ")}]`]);
  const bar = svg("svg", {class: "bar", "aria-hidden": "true"},
    svg("rect", {class: "track", width: "100%", height: 7, rx: 2}),
    svg("rect", {class: "fill", width: `${100 * share}%`, height: 7, rx: 2}));
  return el("div", {"data-part": "slower"},
    el("p", {}, `${count(errors.wrong)} of ${count(errors.count)} elements are wrong (${errors.share})`), bar,
    el("table", {class: "facts"}, el("caption", {class: "away"}, "The size of the errors"),
      el("tbody", {}, ...rows.map(([name, value]) => el("tr", {}, el("th", {scope: "row"}, name), el("td", {class: "figure"}, value))))));
}
