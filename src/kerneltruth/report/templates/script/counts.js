// What Python counted for all answers, counted again for those that a filter leaves.
const Z = 1.959963984540054;

function wilson(successes, trials) {
  if (trials === 0) return [null, null];
  const share = successes / trials, scale = 1 + Z * Z / trials;
  const centre = (share + Z * Z / (2 * trials)) / scale;
  const half = Z / scale * Math.sqrt(share * (1 - share) / trials + Z * Z / (4 * trials * trials));
  return [successes === 0 ? 0 : centre - half, successes === trials ? 1 : centre + half];
}

class Tally {
  answers = 0; call = 0; exe = 0; perf = 0; slower = 0; faster = 0; compared = 0;
  illusions = 0; deniable = 0; open = 0;

  add(attempt) {
    const flags = COLUMN.flags[attempt], speed = COLUMN.speed[attempt];
    this.answers += 1;
    this.call += (flags & FLAG.called) !== 0;
    this.exe += (flags & FLAG.correct) !== 0;
    this.perf += (flags & FLAG.timed) !== 0;
    this.open += (flags & FLAG.judged) === 0;
    this.illusions += (flags & FLAG.illusion) !== 0;
    this.deniable += (flags & FLAG.asked) !== 0 && (flags & FLAG.wrong) !== 0;
    if (speed !== null) {
      this.compared += 1;
      this.slower += speed < 1;
      this.faster += speed > 1;
    }
  }

  share(part) {
    if (part === "slower") return [this.slower, this.compared];
    if (part === "illusions") return [this.illusions, this.deniable];
    // Where right ones have no time, how many are faster is not known.
    if (part === "faster" && this.exe > 0 && this.compared === 0) return [0, this.answers, true];
    return [this[part], this.answers];
  }
}

function tally(attempts) {
  const all = new Tally(), categories = new Map(), methods = new Map();
  const into = (map, key) => map.get(key) || map.set(key, new Tally()).get(key);
  for (const attempt of attempts) {
    all.add(attempt);
    into(categories, categoryOf(attempt)).add(attempt);
    into(methods, COLUMN.method[attempt]).add(attempt);
  }
  return {all, categories, methods};
}

// Shows a share in a cell that Python drew: its bar, its counts and its interval.
function setShare(cell, successes, trials, unknown = false) {
  const share = trials && !unknown ? successes / trials : null, [low, high] = wilson(successes, trials);
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
  cell.querySelector(".num").textContent = percent(share);
  cell.querySelector(".counts").textContent = `${count(successes)} of ${count(trials)}`;
  cell.querySelector(".interval").textContent =
    share === null ? "" : `${percent(low)} ${DASH} ${percent(high)}`;
}

function showCounts(attempts) {
  const {all, categories, methods} = tally(attempts);
  for (const tile of document.querySelectorAll(".tile[data-part]")) {
    setShare(tile, ...all.share(tile.dataset.part));
  }
  const none = new Tally();
  for (const [name, groups] of [["by-category", categories], ["funnel", methods]]) {
    for (const row of document.querySelectorAll(`table[data-filtered="${name}"] tr[data-group]`)) {
      const own = groups.get(Number(row.dataset.group)) || none;
      row.hidden = own.answers === 0;
      for (const cell of row.querySelectorAll("td[data-part]")) {
        if (cell.classList.contains("share")) setShare(cell, ...own.share(cell.dataset.part));
        else {
          cell.textContent = count(own.answers);
          cell.dataset.value = own.answers;
        }
      }
    }
  }
}
