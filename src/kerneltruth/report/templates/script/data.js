// The attempts as columns, and the rest of each in compressed parts that are unpacked when asked.
const DATA = JSON.parse(document.getElementById("data").textContent);
const COLUMN = DATA.columns;
const FLAG = {
  distinct: 1, answer: 2, own: 4, illusion: 8, called: 16, correct: 32, timed: 64, judged: 128,
  finding: 256, checked: 512, wrong: 1024, ranExe: 2048, ranPerf: 4096, plain: 8192,
};
const has = (attempt, flag) => (COLUMN.flags[attempt] & flag) !== 0;

const categoryOf = (attempt) => DATA.tasks[COLUMN.task[attempt]][1];
const taskName = (attempt) => DATA.tasks[COLUMN.task[attempt]][0];
// Without the suite, where the page holds but one.
const SUITES = new Set(DATA.tasks.map(([name]) => (name.includes("/") ? name.split("/")[0] : "")));
const shortTask = (attempt) => {
  const name = taskName(attempt);
  return SUITES.size === 1 && name.includes("/") ? name.slice(name.indexOf("/") + 1) : name;
};
const methodName = (attempt) => DATA.methods[COLUMN.method[attempt]];
const verdictName = (attempt) => DATA.verdicts[COLUMN.verdict[attempt]];

// The rounds of an answer, from the first.
const AFTER = new Map();
COLUMN.before.forEach((earlier, later) => { if (earlier >= 0) AFTER.set(earlier, later); });

function chainOf(attempt) {
  let first = attempt;
  while (COLUMN.before[first] >= 0) first = COLUMN.before[first];
  const chain = [];
  for (let at = first; at !== undefined; at = AFTER.get(at)) chain.push(at);
  return chain;
}

const UNPACKED = new Map();

async function unpack(element) {
  const letters = atob(element.textContent);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// Item of a packed list: `details` by attempt, `sources` by number of source.
async function item(list, number) {
  const starts = DATA[list];
  if (!starts.length) return undefined;
  let part = starts.length - 1;
  while (part > 0 && starts[part] > number) part -= 1;
  const name = `${list} ${part}`;
  if (!UNPACKED.has(name)) {
    const elements = document.querySelectorAll(`script[data-part-of="${list}"]`);
    UNPACKED.set(name, unpack(elements[part]));
  }
  return (await UNPACKED.get(name))[number - starts[part]];
}
