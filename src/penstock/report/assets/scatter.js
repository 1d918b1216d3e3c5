// Cost against violations: each policy a point, the bound beside them.

const SHAPES = [
  (x, y, r) => `M${x - r} ${y}A${r} ${r} 0 1 0 ${x + r} ${y}A${r} ${r} 0 1 0 ${x - r} ${y}Z`,
  (x, y, r) => `M${x - r} ${y - r}H${x + r}V${y + r}H${x - r}Z`,
  (x, y, r) => `M${x} ${y - 1.2 * r}L${x + 1.2 * r} ${y + r}H${x - 1.2 * r}Z`,
  (x, y, r) => `M${x} ${y + 1.2 * r}L${x + 1.2 * r} ${y - r}H${x - 1.2 * r}Z`,
];
const DIAMOND = (x, y, r) => `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`;

function padded(values, share, floor) {
  const low = Math.min(...values), high = Math.max(...values);
  const margin = (high - low) * share || Math.abs(high) * share || 0.01;
  return { low: floor === undefined ? Math.max(0, low - margin) : floor, high: high + margin, log: false };
}

// A long name would push all labels out of the picture; the table has it in full.
const clipped = (name) => (name.length > 30 ? name.slice(0, 29) + "…" : name);

function scatterPoints(report) {
  const points = report.runs
    .map((run) => ({ number: run.number, name: clipped(run.name), cost: run.cost, share: run.share }))
    .filter((point) => point.cost !== null && point.share !== null);
  // A run that knew the future is the bound's own point.
  if (report.bound.cost !== null && !report.runs.some((run) => run.knows_future)) {
    points.push({ number: null, name: "future known", cost: report.bound.cost, share: 0 });
  }
  return points;
}

function drawScatter(holder, report) {
  const points = scatterPoints(report), lower = report.bound.lower;
  // Without a single violation there is nothing to see above the axis but labels.
  const kept = points.every((point) => point.share === 0);
  const width = holder.clientWidth, height = scatterHeight(kept), bottom = height - 40;
  const costs = padded(points.map((point) => point.cost).concat(lower === null ? [] : [lower]), 0.08);
  const shares = padded(points.map((point) => point.share), 0.12, 0);
  const x = linear(costs.low, costs.high, GUTTER.left, width - 20), y = linear(0, shares.high, bottom, 14);
  const picture = svg("svg", { width, height, role: "img", "aria-label": "Cost against the share of time missed" });
  scatterAxes(picture, { costs, shares, x, y, width, bottom, kept });
  if (lower !== null) boundLine(picture, x(lower), bottom);
  for (const point of points) Object.assign(point, { x: x(point.cost), y: y(point.share) });
  placeLabels(points, width, bottom);
  for (const point of points) drawPoint(picture, point);
  holder.replaceChildren(picture);
}

// As high as what stands beside it.
function scatterHeight(kept) {
  const beside = document.getElementById("facts").offsetHeight;
  return Math.min(Math.max(beside, kept ? 200 : 280), kept ? 300 : 420);
}

function scatterAxes(picture, { costs, shares, x, y, width, bottom, kept }) {
  for (const tick of kept ? [0] : valueTicks(shares, 5)) {
    picture.append(svg("path", { class: tick ? "grid" : "axis", d: `M${GUTTER.left} ${px(y(tick))}H${width - 20}` }));
    const at = { class: "tick end", x: GUTTER.left - 8, y: px(y(tick)) + 4 };
    picture.append(svg("text", at, threeDigits(tick * 100) + " %"));
  }
  for (const tick of valueTicks(costs, Math.max(2, Math.floor(width / 90)))) {
    picture.append(svg("path", { class: "axis", d: `M${px(x(tick))} ${bottom}v4` }));
    const at = { class: "tick middle", x: px(x(tick)), y: bottom + 17 };
    picture.append(svg("text", at, showMoney(tick).replace(".00", "")));
  }
  picture.append(svg("text", { class: "tick end", x: width - 20, y: bottom + 34 }, "cost → less is better"));
  const said = kept ? "no policy missed the objective" : "time missed ↓ less is better";
  picture.append(svg("text", { class: "tick", x: GUTTER.left + 6, y: 12 }, said));
}

function boundLine(picture, at, bottom) {
  picture.append(svg("path", { class: "bound-line", d: `M${px(at)} 20V${bottom}` }));
  picture.append(svg("text", { class: "bound-text", x: px(at) + 5, y: 32 }, "lower bound"));
}

// A label stands beside its point, at the first place where it covers no point and no other label.
function placeLabels(points, width, bottom) {
  const taken = points.map(({ x, y }) => ({ left: x - 7, right: x + 7, top: y - 7, bottom: y + 7 }));
  // From the right, so that of two neighbours the right one gets the place to its right.
  for (const point of [...points].sort((a, b) => b.x - a.x)) {
    const length = 7.2 * point.name.length;
    const places = labelPlaces(point, length, bottom);
    const boxes = places.filter(
      (box) => box.left > 2 && box.right < width - 2 && box.top > 0 && box.bottom < bottom + 12);
    const box = boxes.find((each) => !taken.some((other) => overlap(each, other))) ?? places[0];
    taken.push(box);
    point.label = box;
  }
}

const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

// Right, left, then higher and higher or lower and lower on either side; on the axis only above it.
function labelPlaces({ x, y }, length, bottom) {
  const steps = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
  const above = steps.map((step) => -12 - 14 * step), around = steps.flatMap((step) => [-14 * step, 14 * step]);
  const heights = y > bottom - 9 ? above : around;
  return heights.flatMap((away) => [x + 11 + Math.abs(away) / 4, x - 11 - length - Math.abs(away) / 4].map((left) => (
    { left, right: left + length, top: y + away - 7, bottom: y + away + 7, away })));
}

function drawPoint(picture, point) {
  const { x, y, label, number } = point;
  const group = svg("g", { class: number === null ? "bound-point" : `point ${colourOf(number)}` });
  group.append(svg("title", {}, `${point.name}: ${showMoney(point.cost)}, missed ${showShare(point.share)}`));
  const edge = label.left > x ? label.left - 3 : label.right + 3, middle = label.top + 7;
  const leader = `M${px(x)} ${px(y)}L${px(edge)} ${px(middle)}`;
  if (Math.abs(label.away) > 14) group.append(svg("path", { class: "leader", d: leader }));
  const shape = number === null ? DIAMOND(x, y, 7) : SHAPES[number % SHAPES.length](px(x), px(y), 5.5);
  group.append(svg("path", { class: "marker", d: shape }));
  const anchor = label.left > x ? { x: px(label.left) } : { x: px(label.right), "text-anchor": "end" };
  group.append(svg("text", { class: "point-label", y: px(middle) + 4, ...anchor }, point.name));
  picture.append(group);
}
