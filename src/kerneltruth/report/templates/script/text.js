// Elements and words. Text from candidates is set as text, never parsed.
const SVG = "http://www.w3.org/2000/svg";
const DASH = "\u2013", TIMES = "\u00d7";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      node.setAttribute(name, String(value));
    }
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function el(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

// What cannot be seen, or turns text around, is spelt out; as visible() in report/page/wording.py.
const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const HALF = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function visible(text) {
  return text.replace(HALF, "\ufffd").replace(UNSEEN, (found) =>
    `<U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`);
}

// As breakable() in report/html.py.
function breakable(text) {
  return text.split(/(?<=[_/.:])(?=\w)/).flatMap((piece, i) => (i ? [el("wbr"), piece] : [piece]));
}

function count(number) {
  return number.toLocaleString("en-US");
}

function percent(share) {
  if (share === null) return DASH;
  const value = 100 * share;
  if (value === 0 || value === 100) return `${value}%`;
  return `${value.toFixed(Math.abs(value) < 0.05 || (value > 99.95 && value < 100.05) ? 2 : 1)}%`;
}

function figures(value) {
  if (value === 0) return "0";
  if (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5) return value.toExponential(2);
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits});
}

function times(factor) {
  return factor === null ? DASH : figures(factor) + TIMES;
}
