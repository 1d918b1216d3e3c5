// Drawing: SVG elements, scales, axes, and the paths of curves.

const SVG = "http://www.w3.org/2000/svg";
const GUTTER = { left: 62, right: 14 };

// An element with attributes; text is always set as text, never as markup.
function svg(tag, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  return element;
}

function html(tag, className = "", text = null) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  return element;
}

function linear(from, to, low, high) {
  const scale = (value) => low + ((value - from) / (to - from || 1)) * (high - low);
  scale.back = (pixel) => from + ((pixel - low) / (high - low || 1)) * (to - from);
  return scale;
}

// Values at or below zero have no logarithm: they lie on the lower edge.
function logarithmic(from, to, low, high) {
  const inner = linear(Math.log(from), Math.log(to), low, high);
  return (value) => inner(Math.log(Math.max(value, from)));
}

// About a decade apart, and round for a person: ten seconds, a minute, ten minutes, an hour.
const DECADES_OF_TIME = [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, MINUTE, 10 * MINUTE, HOUR, 10 * HOUR]
  .concat([4, 40, 400, 4000].map((days) => days * DAY));

// Ticks at round values: at most `most` on a linear axis, about a decade apart on a logarithmic one.
function valueTicks(domain, most) {
  if (domain.log) {
    const inside = DECADES_OF_TIME.filter((value) => value >= domain.low && value <= domain.high);
    const every = Math.max(1, Math.ceil(inside.length / most));
    return inside.filter((_, i) => i % every === 0);
  }
  const span = domain.high - domain.low || 1;
  const time = domain.time && span / most > 1 ? TIME_STEPS.find((step) => span / step <= most) : 0;
  const step = time || Math.max(niceStep(span, most), domain.whole ? 1 : 0);
  const ticks = [];
  for (let at = Math.ceil(domain.low / step) * step; at <= domain.high + step * 1e-9; at += step) ticks.push(at);
  return ticks;
}

// Beyond eight runs the colours come again, dashed and with square dots.
const colourOf = (number) => `c${number % 8}${number >= 8 ? " again" : ""}`;

const px = (number) => Math.round(number * 10) / 10;

// Runs of neighbouring buckets without a gap or an absent value between them: [first, last] pairs.
function stretches(run, values, first, last) {
  const found = [];
  let start = -1;
  for (let i = first; i <= last + 1; i++) {
    const broken = i > last || Number.isNaN(values[i]);
    if (start >= 0 && (broken || run.resumes.has(i))) {
      found.push([start, i - 1]);
      start = -1;
    }
    if (!broken && start < 0) start = i;
  }
  return found;
}

// The corners of a curve between two buckets: their middles, or both of their ends where it goes in steps.
function corners(run, values, [first, last], space, stepped) {
  const points = [], { x, y } = space;
  for (let i = first; i <= last; i++) {
    const begin = run.starts[i], end = run.end(i);
    if (stepped || first === last) {
      const until = i < last ? run.starts[i + 1] : end;
      points.push([px(x(begin)), px(y(values[i]))], [px(x(until)), px(y(values[i]))]);
    } else points.push([px(x((begin + end) / 2)), px(y(values[i]))]);
  }
  return points;
}

const joined = (points) => points.map((point) => point.join(" ")).join("L");

function linePath(run, values, space, stepped) {
  return stretches(run, values, space.first, space.last)
    .map((stretch) => "M" + joined(corners(run, values, stretch, space, stepped)))
    .join("");
}

// What lies between two curves; `floor` alone gives the area down to the axis.
function bandPath(run, highs, lows, space, stepped) {
  return stretches(run, highs, space.first, space.last)
    .map((stretch) => {
      const over = corners(run, highs, stretch, space, stepped);
      const under = lows
        ? corners(run, lows, stretch, space, stepped).reverse()
        : [[over[over.length - 1][0], space.floor], [over[0][0], space.floor]];
      return `M${joined(over)}L${joined(under)}Z`;
    })
    .join("");
}

// Rectangles over the buckets in which the objective was missed, neighbours as one.
function missedPath(run, space, top, bottom) {
  const missed = run.curve("missed")?.mean;
  if (!missed) return "";
  let path = "";
  for (let i = space.first; i <= space.last; i++) {
    if (!(missed[i] > 0)) continue;
    const from = space.x(run.starts[i]);
    while (i < space.last && missed[i + 1] > 0 && !run.resumes.has(i + 1)) i++;
    // One minute of a year is a hundredth of a pixel, and still has to be seen.
    const to = Math.max(space.x(run.end(i)), from + 1.5);
    path += `M${px(from)} ${top}H${px(to)}V${bottom}H${px(from)}Z`;
  }
  return path;
}

// The buckets that a range of time touches, and one more on either side so that lines reach the edge.
function visible(run, [from, to]) {
  const first = run.starts.findIndex((start) => start + run.width_s >= from);
  let last = run.starts.length - 1;
  while (last > 0 && run.starts[last] > to) last--;
  return { first: Math.max(0, (first < 0 ? last : first) - 1), last: Math.min(run.starts.length - 1, last + 1) };
}
