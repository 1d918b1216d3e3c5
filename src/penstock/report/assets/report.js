// Reads what the page carries, and sets its parts in motion.

const PANELS_AT_FIRST = 6;

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
