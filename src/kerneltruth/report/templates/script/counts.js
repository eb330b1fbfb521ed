// What Python counted for all answers, counted again for those that a filter leaves.
const Z = 1.959963984540054;

// Wilson's interval about a share of trials, which need not be a whole number of them.
function wilson(share, trials) {
  if (!trials) return [null, null];
  const scale = 1 + Z * Z / trials;
  const centre = (share + Z * Z / (2 * trials)) / scale;
  const half = Z / scale * Math.sqrt(share * (1 - share) / trials + Z * Z / (4 * trials * trials));
  return [share === 0 ? 0 : centre - half, share === 1 ? 1 : centre + half];
}

// How many unrelated trials say as much as those of these tasks do: see `intervals.py`.
function effectiveSize(counts) {
  let hits = 0, trials = 0, squares = 0, apart = 0;
  for (const [a, b] of counts) { hits += a; trials += b; squares += b * b; }
  if (trials === counts.length || counts.length < 2) return trials;
  const size = squares / trials, all = trials + size * Z * Z;
  const share = (hits + size * Z * Z / 2) / all;
  for (const [a, b] of counts) apart += (a - share * b) ** 2;
  const added = Z * Z / 2 * size * size * (share * share + (1 - share) ** 2);
  return Math.min(trials, share * (1 - share) * all * all / (apart + added) - Z * Z);
}

// Hits and trials of each part, by task.
class Tally {
  parts = new Map(); answers = 0; right = 0; timed = 0; ranExe = 0; ranPerf = 0;

  count(part, attempt, hit) {
    if (!this.parts.has(part)) this.parts.set(part, new Map());
    const tasks = this.parts.get(part), task = COLUMN.task[attempt];
    if (!tasks.has(task)) tasks.set(task, [0, 0]);
    tasks.get(task)[0] += hit;
    tasks.get(task)[1] += 1;
  }

  add(attempt) {
    const speed = COLUMN.speed[attempt];
    this.answers += 1;
    this.right += has(attempt, FLAG.correct);
    this.timed += speed !== null;
    this.ranExe += has(attempt, FLAG.ranExe);
    this.ranPerf += has(attempt, FLAG.ranPerf);
    this.count("call", attempt, has(attempt, FLAG.called));
    this.count("exe", attempt, has(attempt, FLAG.correct));
    this.count("perf", attempt, has(attempt, FLAG.timed));
    this.count("open", attempt, !has(attempt, FLAG.judged));
    this.count("faster", attempt, speed !== null && speed > 1);
    if (speed !== null) this.count("slower", attempt, speed < 1);
  }

  // Every round of distinct kernels: the round that counts is chosen by the judge's word.
  addKernel(attempt) {
    if (has(attempt, FLAG.checked) && has(attempt, FLAG.wrong)) {
      this.count("illusions", attempt, has(attempt, FLAG.illusion));
    }
  }

  // Hits and trials, their interval, and what stands where there is no share.
  share(part) {
    const counts = [...(this.parts.get(part) || new Map()).values()];
    const hits = counts.reduce((sum, [a]) => sum + a, 0), trials = counts.reduce((sum, [, b]) => sum + b, 0);
    const untried = {exe: this.ranExe === 0, perf: this.ranPerf === 0}[part] && trials > 0;
    // Where right ones have no time, how many are faster is not known.
    const unknown = part === "faster" && this.right > 0 && this.timed === 0;
    const share = trials && !untried && !unknown ? hits / trials : null;
    const [low, high] = share === null ? [null, null] : wilson(share, effectiveSize(counts));
    return {hits, trials, share, low, high, said: untried ? "not tried" : percent(share)};
  }
}

function tally(attempts, kernels) {
  const all = new Tally(), categories = new Map(), methods = new Map();
  const into = (map, key) => map.get(key) || map.set(key, new Tally()).get(key);
  for (const attempt of attempts) {
    all.add(attempt);
    into(categories, categoryOf(attempt)).add(attempt);
    into(methods, COLUMN.method[attempt]).add(attempt);
  }
  kernels.forEach((attempt) => all.addKernel(attempt));
  return {all, categories, methods};
}

// Shows a share in a cell that Python drew: its bar, its counts and its interval.
function setShare(cell, {hits, trials, share, low, high, said}) {
  const bar = cell.querySelector(".bar");
  bar.querySelectorAll(".fill, .range").forEach((mark) => mark.remove());
  if (share !== null) {
    const at = (value) => `${(100 * value).toFixed(2)}%`;
    bar.append(
      svg("rect", {class: "fill", width: at(share), height: 7, rx: 2}),
      svg("line", {class: "range", x1: at(low), x2: at(high), y1: 3.5, y2: 3.5}),
    );
    cell.dataset.value = share;
  } else delete cell.dataset.value;
  cell.querySelector(".num").textContent = said;
  cell.querySelector(".counts").textContent = share === null && trials ? "" : `${count(hits)} of ${count(trials)}`;
  cell.querySelector(".interval").textContent =
    share === null ? "" : `${percent(low)} ${DASH} ${percent(high)}`;
}

function showCounts(attempts, kernels) {
  const {all, categories, methods} = tally(attempts, kernels);
  for (const tile of document.querySelectorAll(".tile[data-part]")) {
    setShare(tile, all.share(tile.dataset.part));
  }
  const none = new Tally();
  for (const [name, groups] of [["by-category", categories], ["funnel", methods]]) {
    for (const row of document.querySelectorAll(`table[data-filtered="${name}"] tr[data-group]`)) {
      const own = groups.get(Number(row.dataset.group)) || none;
      row.hidden = own.answers === 0;
      for (const cell of row.querySelectorAll("td[data-part]")) {
        if (cell.classList.contains("share")) setShare(cell, own.share(cell.dataset.part));
        else {
          cell.textContent = count(own.answers);
          cell.dataset.value = own.answers;
        }
      }
    }
  }
}
