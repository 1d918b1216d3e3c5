// Asks the server for what is new, once a second while somebody looks, and draws it.

const EVERY_MS = 1000, RETRY_MS = 2000;
const WINDOWS = [["10 min", 10 * MINUTE], ["1 h", HOUR], ["6 h", 6 * HOUR], ["1 d", DAY], ["7 d", 7 * DAY]];
const live = { known: "", run: null, window_s: null, timer: null, asking: false, heard_ms: 0, last: {}, isLost: false };
// A live run is watched for what waits, a report is read for what was late.
timeline.measures.add("backlog");
const byId = (id) => document.getElementById(id);

async function ask() {
  if (live.asking || document.hidden) return;
  live.asking = true;
  clearTimeout(live.timer);
  let next_ms = RETRY_MS;
  try {
    const reply = await fetch(`news?known=${live.known}`, { cache: "no-store" });
    if (!reply.ok) throw new Error(reply.statusText);
    take(await reply.json());
    // A long journal comes in parts; the next one is ready at once.
    next_ms = live.last.share < 1 ? 0 : EVERY_MS;
  } catch (error) {
    // A server that has ended is a TypeError; anything else is a fault of this page, and not to be hidden.
    if (!(error instanceof TypeError)) console.error(error);
    live.isLost = true;
  }
  live.asking = false;
  showState();
  if (!document.hidden) live.timer = setTimeout(ask, next_ms);
}

function take(reply) {
  live.heard_ms = performance.now();
  live.isLost = false;
  live.known = reply.known;
  live.last = { ...live.last, ...reply, run: null, blobs: null };
  byId("trouble").hidden = !reply.trouble;
  byId("trouble").textContent = reply.trouble;
  if (reply.figures) showFigures(reply.figures);
  if (reply.decisions) showDecisions(reply.decisions);
  if (reply.title) document.querySelector("h1").textContent = reply.title;
  if (reply.run) {
    const part = opened(reply.run, 0, reply.blobs), isWhole = !live.run || reply.since === 0;
    live.run = isWhole ? part : grown(live.run, part, reply.since, reply.marks_since);
    draw(reply.latency_s, isWhole);
  }
}

function stateOf() {
  if (document.hidden) return ["waiting", "paused while nobody looks"];
  const { last } = live;
  if (live.isLost) return ["bad", "no answer: penstock serve has ended"];
  if (last.share < 1) return ["waiting", `reading the journal: ${Math.floor(100 * last.share)} %`];
  if (!last.steps) return ["waiting", "no step yet"];
  const silent = Math.round(last.silent_s + (performance.now() - live.heard_ms) / 1000);
  const lasts = silent < 120 ? `${silent} s` : showDuration(silent);
  return last.is_silent ? ["late", `no new step for ${lasts}`] : ["fresh", `last step ${lasts} ago`];
}

function showState() {
  const [kind, text] = stateOf(), { last } = live;
  byId("state").className = kind;
  const where = last.steps ? `step ${last.steps.toLocaleString("en-US")} · ${last.moment}` : "";
  byId("state").querySelector("span").replaceChildren(html("b", "", text), html("small", "", where));
}

function showFigures(figures) {
  byId("figures").replaceChildren(...figures.map(({ label, value, beside, is_bad }) => {
    const tile = html("div", is_bad ? "tile bad" : "tile");
    tile.append(html("span", "", label), html("strong", "", value), html("p", "", beside));
    return tile;
  }));
  if (figures.length) document.title = `${figures[0].value} workers · ${document.querySelector("h1").textContent}`;
}

const ARROWS = { up: "▲", down: "▼", moved: "◆", kept: "·" };

function showDecisions(decisions) {
  byId("decisions").replaceChildren(...decisions.map(({ way, outcome, reason, time, count, step }) => {
    const item = html("li", way), head = item.appendChild(html("p", "outcome"));
    head.append(html("i", "", ARROWS[way]), html("b", "", outcome), html("time", "", time));
    head.title = `step ${step}`;
    item.append(html("p", "reason", count > 1 ? `${reason} (and ${count - 1} before)` : reason));
    return item;
  }));
}

// What the reader zoomed to stays; else the picture follows the newest step.
function draw(latency_s, isWhole) {
  const { run } = live;
  timeline.report = { runs: [run], latency_s };
  timeline.origin = run.origin_s;
  timeline.full = [run.first_s, run.last_s];
  timeline.least_s = 4 * run.width_s;
  timeline.shown = new Set([0]);
  if (isWhole) frame(run);
  offerWindows(run);
  if (!timeline.held) timeline.range = followed();
  redraw();
}

function followed() {
  const [from, to] = timeline.full;
  return live.window_s ? [Math.max(from, to - live.window_s), to] : [from, to];
}

function redraw() {
  // Under a drag the plots must stay where they are; the next step draws them.
  if (timeline.drag) return;
  const plots = () => [...document.querySelectorAll("svg.plot")];
  const focused = plots().indexOf(document.activeElement);
  drawTimeline();
  if (focused >= 0) plots()[focused]?.focus({ preventScroll: true });
  if (timeline.at !== null) moveCross(timeline.at);
  document.documentElement.dataset.drawn = "yes";
}

function frame(run) {
  const section = byId("timeline"), panels = byId("panels") ?? html("div");
  if (!panels.id) {
    panels.id = "panels";
    followPointer(panels);
    new ResizeObserver(redraw).observe(document.querySelector("main"));
  }
  const bar = toolbar([run]), label = html("label", "follow", "follow "), choice = html("select");
  choice.addEventListener("change", () => follow(Number(choice.value) || null));
  label.append(choice);
  bar.querySelector(".line").append(label);
  section.replaceChildren(bar, panels, hint([run]));
}

// The stretches that are shorter than the run and have points enough; a run that grows gets more of them.
function offerWindows(run) {
  const long = run.last_s - run.first_s, choice = document.querySelector(".follow select");
  const fitting = WINDOWS.filter(([, window_s]) => window_s >= 8 * run.width_s && window_s < long);
  if (!fitting.some(([, window_s]) => window_s === live.window_s)) live.window_s = null;
  if (choice.options.length === fitting.length + 1) return;
  choice.replaceChildren(...[["all", ""], ...fitting].map(([label, window_s]) => new Option(label, window_s)));
  choice.value = live.window_s ?? "";
}

function follow(window_s) {
  live.window_s = window_s;
  timeline.range = followed();
  timeline.held = false;
  redraw();
}

document.addEventListener("visibilitychange", () => { showState(); ask(); });
setInterval(() => { if (!document.hidden) showState(); }, EVERY_MS);
ask();
