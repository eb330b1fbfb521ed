// Tables and charts as files of their own: CSV; SVG and PNG with their captions.
const DRAWN = ["fill", "fill-opacity", "opacity", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "text-anchor"];

// A spreadsheet would run words that begin like a formula.
function csvField(value) {
  let text = String(value ?? "").trim().replace(/\s+/g, " ");
  if (/^[=+@-]/.test(text) && Number.isNaN(Number(text))) text = `'${text}`;
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const csvText = (rows) => rows.map((row) => `${row.map(csvField).join(",")}\n`).join("");

function save(name, content) {
  const address = URL.createObjectURL(content);
  el("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// The fields of a cell, each with what its heading adds to the column's.
function cellFields(cell) {
  const part = (name) => cell.querySelector(`.${name}`)?.textContent ?? "";
  const value = cell.dataset.value ?? "";
  if (cell.classList.contains("share")) return [["", value], [" counts", part("counts")], [" interval", part("interval")]];
  if (cell.classList.contains("factor")) return [["", value], [" interval", part("interval")]];
  const ends = cell.querySelector("svg[aria-label]");
  if (ends) return [["", ends.getAttribute("aria-label")]];
  const measured = ["count", "number", "strip"].some((form) => cell.classList.contains(form));
  return [["", measured ? value : cell.textContent]];
}

function tableRows(table) {
  const labels = [...table.tHead.rows[0].cells].map((cell) => cell.querySelector(".label")?.textContent ?? cell.textContent);
  const shown = [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => [...row.cells].map(cellFields));
  if (!shown.length) return [labels];
  const head = shown[0].flatMap((fields, place) => fields.map(([added]) => labels[place] + added));
  return [head, ...shown.map((cells) => cells.flatMap((fields) => fields.map(([, value]) => value)))];
}

function listingRows(listing) {
  const said = (column) => (column.node || column.number ? column.value : column.text || column.value);
  const columns = listing.columns.map((column) => [column.label, column === SHOWN.task ? taskName : said(column)]);
  if (!listing.columns.includes(SHOWN.file)) columns.push([SHOWN.file.label, SHOWN.file.value]);
  return [columns.map(([label]) => label), ...listing.attempts.map((i) => columns.map(([, value]) => value(i)))];
}

function chartText(figure, caption) {
  const plots = [...figure.querySelectorAll(":scope > svg.plot")], width = plots[0].clientWidth;
  const ink = getComputedStyle(figure).color;
  const words = (x, y, said) => svg("text", {x, y, fill: ink, "font-family": "sans-serif", "font-size": 12}, said);
  const drawing = svg("svg", {xmlns: SVG, width}), back = svg("rect", {width: "100%", height: "100%",
    fill: getComputedStyle(figure.closest("section")).backgroundColor});
  drawing.append(svg("title", {}, caption), back, words(4, 16, caption));
  let y = 28;
  const place = (drawn, at, height) => {
    const copy = drawn.cloneNode(true), copies = [copy, ...copy.querySelectorAll("*")];
    [drawn, ...drawn.querySelectorAll("*")].forEach((node, i) => {
      for (const name of DRAWN) copies[i].setAttribute(name, getComputedStyle(node).getPropertyValue(name));
    });
    filled(copy, {...at, height, overflow: "visible"}, []);
    drawing.append(copy);
  };
  for (const plot of plots) {
    place(plot, {x: 0, y, width}, plot.clientHeight);
    y += plot.clientHeight + 10;
  }
  for (const key of figure.querySelectorAll(".keys li")) {
    place(key.querySelector("svg"), {x: 4, y: y + 2, width: 22}, 8);
    drawing.append(words(32, y + 10, key.textContent.trim()));
    y += 16;
  }
  drawing.setAttribute("height", y + 8);
  return new XMLSerializer().serializeToString(drawing);
}

// Twice as many pixels as on the page: a paper's figure must not look coarse.
async function picture(drawing) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(drawing)}`;
  await image.decode();
  const canvas = el("canvas", {width: 2 * image.naturalWidth, height: 2 * image.naturalHeight});
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

const FILES = {
  CSV: (text) => new Blob([text], {type: "text/csv"}),
  SVG: (text) => new Blob([text], {type: "image/svg+xml"}),
  PNG: picture,
};

function saveButton(form, caption, make) {
  const button = el("button", {type: "button", class: "save", "aria-label": `Save as ${form}: ${caption}`}, form);
  const name = caption.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "kerneltruth";
  button.addEventListener("click", async () => save(`${name}.${form.toLowerCase()}`, await FILES[form](make())));
  return button;
}

function wakeSaving() {
  const add = (caption, said, form, make) => caption.append(" ", saveButton(form, said, make));
  for (const table of document.querySelectorAll("main table.data")) {
    add(table.caption, table.caption.firstElementChild.textContent, "CSV", () => csvText(tableRows(table)));
  }
  for (const listing of LISTINGS) {
    const {caption} = listing.root.querySelector("table");
    add(caption, caption.textContent, "CSV", () => csvText(listingRows(listing)));
  }
  for (const figure of document.querySelectorAll("main figure")) {
    const caption = figure.querySelector("figcaption"), said = caption.textContent;
    for (const form of ["SVG", "PNG"]) add(caption, said, form, () => chartText(figure, said));
  }
}
