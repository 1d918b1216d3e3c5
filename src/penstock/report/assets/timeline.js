// Panels of plots over one time axis.

const LANE = 20, AXIS = 22;

function runPanel(run) {
  const plots = timeline.measured().map((measure) => ({ measure, series: seriesOf(run, measure) }));
  return { title: run.name, runs: [run], plots };
}

function overlaidPanel(runs) {
  const plots = timeline.measured().map((measure) => ({
    measure: { ...measure, lane: false, height: measure.height * 1.7 },
    series: overlaidSeries(runs, measure),
  }));
  return { title: "All shown policies", runs, plots, overlaid: true };
}

// Draw everything anew: toggles, zoom and the window's size end here.
function drawTimeline() {
  const holder = document.getElementById("panels");
  timeline.width = Math.max(320, holder.clientWidth - 34);
  timeline.inner = timeline.width - GUTTER.left - GUTTER.right;
  timeline.x = linear(...timeline.range, 0, timeline.inner);
  const runs = timeline.report.runs.filter((run) => timeline.shown.has(run.number));
  const panels = timeline.overlaid ? [overlaidPanel(runs)] : runs.map(runPanel);
  for (const panel of panels) panel.plots = panel.plots.filter((plot) => plot.series.length);
  timeline.plots = panels.flatMap((panel) => panel.plots);
  for (const measure of MEASURES) {
    const same = timeline.plots.filter((plot) => plot.measure.key === measure.key);
    const domain = domainOf(measure, same.flatMap((plot) => plot.series), timeline.range, timeline.report.latency_s);
    for (const plot of same) plot.domain = domain;
  }
  const none = () => [html("p", "card empty", "No policy is selected.")];
  holder.replaceChildren(...(runs.length ? panels.map(drawPanel) : none()));
  document.getElementById("range").textContent = rangeText();
  document.getElementById("reset").disabled = !timeline.zoomed();
}

function rangeText() {
  const [from, to] = timeline.range, { origin } = timeline;
  const ends = [from, to].map((time) => showMoment(time, origin)).join(" – ");
  return `${ends}${origin === null ? "" : " UTC"} · ${showDuration(to - from)}`;
}

function drawPanel(panel) {
  const card = html("article", "card panel");
  const head = card.appendChild(html("header"));
  const title = head.appendChild(html("h3"));
  if (!panel.overlaid) title.append(html("i", `dot ${colourOf(panel.runs[0].number)}`));
  title.append(panel.title);
  const said = panel.overlaid ? "one line a policy: the mean of each point" : figures(panel.runs[0]);
  head.append(html("p", "figures", said));
  panel.plots.forEach((plot, number) => card.append(drawPlot(panel, plot, number === panel.plots.length - 1)));
  return card;
}

function figures(run) {
  const kept = run.share === 0 ? "objective kept throughout" : `missed ${showShare(run.share)} of the time`;
  const actions = run.actions === 1 ? "1 scaling action" : `${showCount(run.actions)} scaling actions`;
  const parts = [showMoney(run.cost), kept, run.actions ? actions : "no scaling action", run.parameters];
  return parts.filter(Boolean).join(" · ");
}

function drawPlot(panel, plot, isLast) {
  const holder = html("div", "holder");
  const { measure } = plot, lane = measure.lane ? LANE : 0;
  const height = measure.height;
  const size = { class: "plot", width: timeline.width, height: height + lane + (isLast ? AXIS : 6) };
  const picture = svg("svg", { ...size, tabindex: 0, role: "img", "aria-label": `${measure.title}, ${panel.title}` });
  plot.y = (plot.domain.log ? logarithmic : linear)(plot.domain.low, plot.domain.high, height, 6);
  drawGrid(picture, plot, height);
  // A nested SVG clips what a zoom leaves outside of the plot.
  const inside = svg("svg", { x: GUTTER.left, y: 0, width: timeline.inner, height: height + lane });
  if (!panel.overlaid) drawMissed(inside, panel.runs[0], height);
  for (const series of plot.series) drawSeries(inside, plot, series, height);
  if (measure.bound && timeline.report.latency_s) drawBound(inside, plot);
  if (lane) drawLane(inside, panel.runs[0], height);
  plot.cross = inside.appendChild(svg("path", { class: "cross", d: `M0 0V${height + lane}`, visibility: "hidden" }));
  plot.brush = inside.appendChild(svg("rect", { class: "brush", y: 0, height: height + lane, visibility: "hidden" }));
  picture.append(inside);
  if (lane) picture.append(svg("text", { class: "tick end", x: GUTTER.left - 8, y: height + 14 }, "actions"));
  if (isLast) drawTimeAxis(picture, height + lane);
  Object.assign(picture, { plot, panel });
  holder.append(drawLegend(plot), picture);
  return holder;
}

function drawLegend(plot) {
  const legend = html("div", "legend");
  legend.append(html("strong", "", plot.measure.title), html("span", "unit", plot.measure.unit));
  plot.values = plot.series.map((series) => {
    const item = legend.appendChild(html("span", `item ${lookOf(series)}`));
    item.append(html("i", "stroke"), series.label, " ", html("b"));
    return item.lastChild;
  });
  return legend;
}

const lookOf = ({ look, run }) => (look === "own" ? `own ${colourOf(run.number)}` : look);

function drawGrid(picture, plot, height) {
  const right = GUTTER.left + timeline.inner;
  for (const tick of valueTicks(plot.domain, Math.floor(height / 26))) {
    const y = px(plot.y(tick));
    picture.append(svg("path", { class: "grid", d: `M${GUTTER.left} ${y}H${right}` }));
    picture.append(svg("text", { class: "tick end", x: GUTTER.left - 8, y: y + 4 }, plot.measure.show(tick)));
  }
  picture.append(svg("path", { class: "axis", d: `M${GUTTER.left} ${height + 0.5}H${right}` }));
}

function drawMissed(inside, run, height) {
  const space = { x: timeline.x, ...visible(run, timeline.range) };
  inside.append(svg("path", { class: "missed", d: missedPath(run, space, 0, height) }));
  inside.append(svg("path", { class: "missed-edge", d: missedPath(run, space, 0, 3) }));
}

function drawSeries(inside, plot, series, height) {
  const { run, name, stepped } = series, curve = run.curve(name);
  const space = { x: timeline.x, y: plot.y, floor: height, ...visible(run, timeline.range) };
  const group = inside.appendChild(svg("g", { class: `series ${lookOf(series)}` }));
  if (series.area) group.append(svg("path", { class: "area", d: bandPath(run, curve.mean, null, space, stepped) }));
  if (!series.plain && curve.low !== curve.high) {
    group.append(svg("path", { class: "band", d: bandPath(run, curve.high, curve.low, space, stepped) }));
  }
  group.append(svg("path", { class: "line", d: linePath(run, curve.mean, space, stepped) }));
}

function drawBound(inside, plot) {
  const y = px(plot.y(timeline.report.latency_s));
  inside.append(svg("path", { class: "objective", d: `M0 ${y}H${timeline.inner}` }));
  const text = `objective ${showDuration(timeline.report.latency_s)}`;
  inside.append(svg("text", { class: "objective-text", x: timeline.inner - 6, y: y < 20 ? y + 12 : y - 4 }, text));
}

// Scaling actions below the workers: up above the middle, down below it. Far apart they are triangles, else ticks.
function drawLane(inside, run, height) {
  const middle = height + LANE / 2 + 1, [from, to] = timeline.range;
  const marks = run.marks.filter((mark) => mark.time >= from && mark.time <= to);
  if (!marks.length) {
    const text = run.actions ? "none in this range" : "no scaling action: the number of workers never changed";
    inside.append(svg("text", { class: "tick", x: 6, y: middle + 4 }, text));
    return;
  }
  const sparse = timeline.inner / marks.length > 12;
  const triangle = (x, way) => `M${px(x)} ${middle - 8 * way}l3.6 ${7 * way}h-7.2Z`;
  const tick = (x, way) => `M${px(x)} ${middle - way}v${-7 * way}`;
  for (const [kind, way] of [["up", 1], ["down", -1]]) {
    const some = marks.filter((mark) => mark.count > 1 || Math.sign(mark.after - mark.before) !== -way);
    const d = some.map((mark) => (sparse ? triangle : tick)(timeline.x(mark.time), way)).join("");
    inside.append(svg("path", { class: `mark ${kind} ${colourOf(run.number)} ${sparse ? "sparse" : ""}`, d }));
  }
}

function drawTimeAxis(picture, top) {
  const most = Math.max(2, Math.floor(timeline.inner / 78));
  let before = -Infinity;
  for (const { at, label, strong } of timeTicks(...timeline.range, most, timeline.origin)) {
    const x = px(GUTTER.left + timeline.x(at)), side = x > timeline.width - 30 ? "end" : "middle";
    picture.append(svg("path", { class: "axis", d: `M${x} ${top}v4` }));
    // A label that ends at its tick reaches twice as far to the left.
    if (side === "end" && x - before < 10 * label.length) continue;
    before = x;
    picture.append(svg("text", { class: `tick ${side} ${strong ? "strong" : ""}`, x, y: top + 17 }, label));
  }
}
