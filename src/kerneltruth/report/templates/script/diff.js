// Which lines of a source are new against the round before: Myers' shortest edit script.
const MOST_EDITS = 1200;

// Pairs of [sign, line number before, line number after]; sign is " ", "-" or "+".
function lineDiff(before, after) {
  let start = 0, ends = 0;
  const least = Math.min(before.length, after.length);
  while (start < least && before[start] === after[start]) start += 1;
  while (ends < least - start && before[before.length - 1 - ends] === after[after.length - 1 - ends]) ends += 1;
  const a = before.slice(start, before.length - ends), b = after.slice(start, after.length - ends);
  const found = [];
  for (let i = 0; i < start; i += 1) found.push([" ", i, i]);
  for (const [sign, i, j] of middle(a, b)) found.push([sign, i + start, j + start]);
  for (let k = ends; k > 0; k -= 1) found.push([" ", before.length - k, after.length - k]);
  return found;
}

function middle(a, b) {
  const trace = searched(a, b);
  if (trace === null) {
    return [...a.map((_, i) => ["-", i, 0]), ...b.map((_, j) => ["+", a.length, j])];
  }
  const found = [];
  let x = a.length, y = b.length;
  for (let d = trace.length - 1; d >= 0; d -= 1) {
    const reach = trace[d], k = x - y, middleOf = d + 1;
    const down = k === -d || (k !== d && reach[k - 1 + middleOf] < reach[k + 1 + middleOf]);
    const from = down ? k + 1 : k - 1;
    const oldX = d === 0 ? 0 : reach[from + middleOf], oldY = d === 0 ? 0 : oldX - from;
    while (x > oldX && y > oldY) found.push([" ", (x -= 1), (y -= 1)]);
    if (d > 0) found.push(down ? ["+", x, (y -= 1)] : ["-", (x -= 1), y]);
  }
  return found.reverse();
}

// How far each diagonal reaches, before each number of edits; null where there are too many.
function searched(a, b) {
  const trace = [];
  let reach = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(MOST_EDITS, a.length + b.length); d += 1) {
    const row = [];
    for (let k = -d - 1; k <= d + 1; k += 1) row[k + d + 1] = reach.get(k) ?? -1;
    trace.push(row);
    const next = new Map(reach);
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? reach.get(k + 1) ?? 0 : (reach.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) { x += 1; y += 1; }
      next.set(k, x);
      if (x >= a.length && y >= b.length) return trace;
    }
    reach = next;
  }
  return null;
}
