// What can be drawn over time, and which curves belong together.

const MEASURES = [
  {
    key: "rate", title: "Rate", unit: "events/s", show: showCount, height: 112, main: "capacity",
    curves: [
      { name: "rate", label: "input", look: "demand", area: true },
      { name: "capacity", label: "capacity", look: "own", stepped: true },
    ],
  },
  {
    key: "workers", title: "Workers", unit: "", show: showCount, height: 92, main: "running", whole: true, lane: true,
    curves: [
      { name: "target", label: "asked for", look: "asked", stepped: true },
      { name: "running", label: "running", look: "own", stepped: true, area: true },
    ],
  },
  {
    key: "latency", title: "Latency", unit: "", show: showDuration, height: 92, main: "latency",
    bound: true, mayLog: true,
    curves: [{ name: "latency", label: "oldest event", look: "own" }],
  },
  {
    key: "backlog", title: "Backlog", unit: "events", show: showCount, height: 80, main: "backlog",
    curves: [{ name: "backlog", label: "waiting", look: "own", area: true }],
  },
  {
    key: "load", title: "Load", unit: "", show: showShare, height: 80, main: "load",
    curves: [{ name: "load", label: "mean cpu", look: "own" }],
  },
  { key: "shares", title: "Signals from 0 to 1", unit: "", show: showCount, height: 112, main: null, curves: [] },
  { key: "signals", title: "Signals", unit: "", show: showCount, height: 92, main: null, curves: [] },
];
const SHOWN_AT_FIRST = ["rate", "workers", "latency", "shares", "signals"];
// A load and its thresholds are told apart only where no count of workers stretches their axis.
const SHARE_MAX = 1.5;
// A latency that spans more than two decades is a flat line and a spike on a linear axis.
const DECADES = 100;

const hasMeasure = (run, measure) => seriesOf(run, measure).length > 0;

// The curves of one run in one plot.
function seriesOf(run, measure) {
  if (measure.key === "signals" || measure.key === "shares") {
    // Three colours on, so that no signal wears the colour of its policy.
    const look = (i) => `c${(i + run.number + 3) % 8}`;
    return run.signals
      .map((name, i) => ({ run, name, label: name.slice("signal ".length), look: look(i) }))
      .filter(({ name }) => isShare(run.curve(name)) === (measure.key === "shares"));
  }
  return measure.curves.filter((curve) => run.curve(curve.name)).map((curve) => ({ run, ...curve }));
}

const isShare = ({ low, high }) => high.every((value, i) => !(value > SHARE_MAX || low[i] < 0));

// One curve of each run, over the demand that is the same for all of them.
function overlaidSeries(runs, measure) {
  if (!measure.main) return [];
  const main = measure.curves.find((curve) => curve.name === measure.main);
  const own = runs.filter((run) => run.curve(measure.main))
    .map((run) => ({ run, ...main, label: run.name, look: "own", area: false, plain: true }));
  return measure.key === "rate" && runs.length ? [{ run: runs[0], ...measure.curves[0] }, ...own] : own;
}

function extent(series, range) {
  let low = Infinity, high = -Infinity, least = Infinity;
  for (const { run, name, plain } of series) {
    const curve = run.curve(name), { first, last } = visible(run, range);
    const lows = plain ? curve.mean : curve.low, highs = plain ? curve.mean : curve.high;
    for (let i = first; i <= last; i++) {
      if (lows[i] < low) low = lows[i];
      if (lows[i] > 0 && lows[i] < least) least = lows[i];
      if (highs[i] > high) high = highs[i];
    }
  }
  return { low, high, least };
}

// The vertical axis of a measure, the same in all panels: what looks larger is larger.
function domainOf(measure, series, range, bound) {
  const found = extent(series, range);
  if (found.high === -Infinity) return { low: 0, high: 1, log: false, whole: false };
  const high = Math.max(found.high, measure.bound && bound ? bound : 0);
  if (measure.mayLog && found.least < Infinity && high / found.least > DECADES) {
    return { low: found.least / 1.3, high: high * 1.5, log: true, whole: false, time: true };
  }
  const low = Math.min(0, found.low);
  const kind = { whole: Boolean(measure.whole), time: measure.show === showDuration };
  return { low, high: high + (high - low) * 0.08 || 1, log: false, ...kind };
}

function bucketAt(run, time) {
  let low = 0, high = run.starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (run.starts[middle] <= time) low = middle;
    else high = middle - 1;
  }
  const followed = low + 1 < run.starts.length && !run.resumes.has(low + 1);
  const ends = followed ? run.starts[low + 1] : run.end(low);
  return time >= run.starts[low] && time <= ends ? low : -1;
}

// A value under the crosshair: the mean of its bucket, and how far it went there.
function shownValue({ run, name }, measure, time) {
  const i = bucketAt(run, time);
  if (i < 0) return NOTHING;
  const curve = run.curve(name);
  const [mean, low, high] = [curve.mean[i], curve.low[i], curve.high[i]].map(measure.show);
  return low === high ? mean : `${mean} (${low} … ${high})`;
}
