// Reads what the page carries, and sets its parts in motion.

const ABSENT = 65535;
const PANELS_AT_FIRST = 6;

const timeline = {
  overlaid: false,
  measures: new Set(SHOWN_AT_FIRST),
  at: null,
  drag: null,
  measured: () => MEASURES.filter((measure) => timeline.measures.has(measure.key)),
  zoomed: () => timeline.range[0] > timeline.full[0] || timeline.range[1] < timeline.full[1],
};

function words(text) {
  return new Uint16Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

// Code 0 of a logarithmic array is zero itself.
function decoded(blobs, [blob, logarithmic, offset, step]) {
  const value = logarithmic
    ? (code) => (code ? Math.exp(offset + step * (code - 1)) : 0)
    : (code) => offset + step * code;
  return Float64Array.from(words(blobs[blob]), (code) => (code === ABSENT ? NaN : value(code)));
}

function opened(run, number, blobs) {
  const known = new Map();
  const curve = (name) => {
    if (!known.has(name) && run.curves[name]) {
      const [mean, low, high] = run.curves[name].map((coded) => decoded(blobs, coded));
      known.set(name, { mean, low: low ?? mean, high: high ?? mean });
    }
    return known.get(name);
  };
  const marks = run.marks.map(([time, step, before, after, reason, count = 1, until = time, lastReason = ""]) => (
    { time, step, before, after, reason, count, until, lastReason }));
  const starts = Float64Array.from(words(blobs[run.places]), (place) => run.first_s + place * run.width_s);
  const signals = Object.keys(run.curves).filter((name) => name.startsWith("signal "));
  const end = (i) => Math.min(starts[i] + run.width_s, run.last_s);
  return { ...run, number, curve, marks, starts, end, signals, resumes: new Set(run.resumes) };
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const rising = head.getAttribute("aria-sort") !== "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.v;
    const compare = (a, b) => (column ? key(a) - key(b) : key(a).localeCompare(key(b)));
    body.append(...[...body.rows].sort((a, b) => (rising ? compare(a, b) : compare(b, a))));
  }));
}

// Bars behind the numbers that a reader compares first.
function barred(table) {
  const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  for (const heading of ["Cost", "Missed", "Actions"]) {
    const cells = [...table.tBodies[0].rows].map((row) => row.cells[heads.indexOf(heading)]);
    const most = Math.max(...cells.map((cell) => Number(cell.dataset.v)));
    for (const cell of cells) {
      cell.classList.add("bar");
      cell.style.setProperty("--part", `${most > 0 ? (100 * cell.dataset.v) / most : 0}%`);
    }
  }
}

function toggle(label, className, on, changed) {
  const chip = html("label", `chip ${className}`), box = html("input");
  Object.assign(box, { type: "checkbox", checked: on });
  box.addEventListener("change", () => changed(box.checked));
  chip.append(box, html("i", "dot"), label);
  return chip;
}

function group(label, chips) {
  const holder = html("div", "group");
  holder.setAttribute("role", "group");
  holder.setAttribute("aria-label", label);
  holder.append(html("span", "label", label), ...chips);
  return holder;
}

function button(text, pressed) {
  const made = html("button", "plain", text);
  made.type = "button";
  made.addEventListener("click", pressed);
  return made;
}

function set(keys, key, on) {
  if (on) keys.add(key);
  else keys.delete(key);
  drawTimeline();
}

function policyChips(runs) {
  const chips = runs.map(({ name, number }) => (
    toggle(name, colourOf(number), timeline.shown.has(number), (on) => set(timeline.shown, number, on))));
  const all = (on) => () => {
    for (const chip of chips) chip.firstChild.checked = on;
    timeline.shown = new Set(on ? runs.map((run) => run.number) : []);
    drawTimeline();
  };
  const overlay = toggle("overlay", "switch", false, (on) => { timeline.overlaid = on; drawTimeline(); });
  return group("Policies", [...chips, button("all", all(true)), button("none", all(false)), overlay]);
}

function toolbar(runs) {
  const bar = html("div", "card toolbar");
  const line = bar.appendChild(html("div", "line"));
  const range = html("span", "range"), reset = button("Show all", () => zoomTo(timeline.full));
  range.id = "range";
  reset.id = "reset";
  line.append(html("h2", "", "Over time"), range, reset);
  if (runs.length > 1) bar.append(policyChips(runs));
  const measures = MEASURES.filter((measure) => runs.some((run) => hasMeasure(run, measure)));
  bar.append(group("Curves", measures.map(({ key, title }) => (
    toggle(title, "switch", timeline.measures.has(key), (on) => set(timeline.measures, key, on))))));
  return bar;
}

function hint(runs) {
  const each = Math.max(...runs.map((run) => run.width_s));
  const merged = runs.some((run) => run.steps > run.starts.length);
  const point = merged ? `A point is ${showDuration(each)}: line = mean, band = least to greatest. ` : "";
  const keys = "On a focused plot: ← → move, + − zoom, 0 all, N P next and previous action.";
  return html("p", "hint", `${point}Drag to zoom, double-click for all. ${keys}`);
}

function begin() {
  const report = JSON.parse(document.getElementById("run-data").textContent);
  report.runs = report.runs.map((run, number) => opened(run, number, report.blobs)).filter((run) => run.starts.length);
  const table = document.getElementById("scores"), runs = report.runs;
  sortable(table);
  if (runs.length > 1) barred(table);
  if (!runs.length) return;
  timeline.report = report;
  timeline.origin = runs[0].origin_s;
  timeline.full = [Math.min(...runs.map((run) => run.first_s)), Math.max(...runs.map((run) => run.last_s))];
  timeline.range = timeline.full;
  timeline.least_s = 4 * Math.min(...runs.map((run) => run.width_s));
  timeline.shown = new Set(runs.slice(0, PANELS_AT_FIRST).map((run) => run.number));
  const section = document.getElementById("timeline"), panels = html("div");
  panels.id = "panels";
  section.replaceChildren(toolbar(runs), panels, hint(runs));
  followPointer(panels);
  redrawn();
  new ResizeObserver(redrawn).observe(document.querySelector("main"));
  document.documentElement.dataset.drawn = "yes";
}

let drawnWidth = 0;

function redrawn() {
  const width = document.querySelector("main").clientWidth;
  if (width === drawnWidth) return;
  drawnWidth = width;
  const card = document.getElementById("scatter-card");
  card.hidden = timeline.report.runs.length < 2;
  if (!card.hidden) drawScatter(document.getElementById("scatter"), timeline.report);
  drawTimeline();
}

begin();
