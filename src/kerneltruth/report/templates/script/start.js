// The page begins.
const BELONGS = {
  illusions: (attempt) => has(attempt, FLAG.illusion),
  findings: (attempt) => has(attempt, FLAG.finding),
  attempts: () => true,
};
const LISTINGS = [...document.querySelectorAll("[data-listing]")].map(
  (root) => new Listing(root, BELONGS[root.dataset.listing]));

// Without a filter the page shows what Python counted.
let recounted = false;

function refresh() {
  const left = selection(), kernels = selection(true);
  sayStatus(left);
  recounted ||= activeFilters().length > 0;
  if (recounted) showCounts(left, kernels);
  showMap(left, recounted);
  for (const listing of LISTINGS) {
    listing.set(listing.root.dataset.listing === "illusions" ? kernels : left);
  }
}

function setFilters(values) {
  for (const name of FIELDS) {
    if (name in values) FORM.elements[name].value = String(values[name]);
  }
  writeAddress();
  refresh();
}

function followAddress() {
  const address = readAddress();
  applyAddress(address);
  refresh();
  const attempt = Number(address.attempt);
  if ("attempt" in address && Number.isInteger(attempt) && attempt >= 0 && attempt < DATA.count) {
    openAttempt(attempt, [attempt]);
  } else if ("attempt" in address === false && SHEET.open) SHEET.close();
}

function wakeFilters() {
  let waiting = null;
  FORM.addEventListener("submit", (event) => event.preventDefault());
  FORM.addEventListener("input", (event) => {
    clearTimeout(waiting);
    const change = () => { writeAddress(); refresh(); };
    if (event.target.name === "text") waiting = setTimeout(change, 150);
    else change();
  });
  FORM.addEventListener("reset", () => setTimeout(() => { writeAddress(); refresh(); }));
  if (matchMedia("(max-width: 40rem)").matches) FORM.querySelector("details").open = false;
}

const THEMES = ["system", "light", "dark"];

function wakeTheme() {
  const button = document.getElementById("theme");
  let theme = "system";
  const show = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  try { theme = THEMES.find((name) => name === localStorage.getItem("kerneltruth-theme")) || theme; } catch { /* not kept here */ }
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try { localStorage.setItem("kerneltruth-theme", theme); } catch { /* not kept here */ }
    show();
  });
  show();
  button.hidden = false;
}

function followReading() {
  const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, {rootMargin: "-15% 0px -75% 0px"});
  for (const section of document.querySelectorAll("main section")) watch.observe(section);
}

sortableTables();
fillFilters();
wakeMap();
wakeFilters();
wakeSheet();
wakeSaving();
wakeTheme();
followReading();
followAddress();
addEventListener("hashchange", followAddress);
document.documentElement.dataset.ready = "true";
