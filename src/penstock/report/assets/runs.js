// Runs as they come from the server or the page: decoded, and what is shown of them.

const ABSENT = 65535;

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
  return ended({ ...run, number, curve, marks, starts, signals, resumes: new Set(run.resumes) });
}

// The last bucket may not be full yet.
const ended = (run) => ({ ...run, end: (i) => Math.min(run.starts[i] + run.width_s, run.last_s) });
