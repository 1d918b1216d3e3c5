// The crosshair over all plots, the words beside it, and the zoom: by pointer and by keys.

const REACH = 6; // pixels within which an action counts as pointed at
const tip = html("div");

function followPointer(holder) {
  tip.id = "tip";
  tip.setAttribute("role", "status");
  document.body.append(tip);
  holder.addEventListener("pointermove", (event) => pointed(event));
  holder.addEventListener("pointerleave", () => moveCross(null));
  holder.addEventListener("pointerdown", beginDrag);
  holder.addEventListener("dblclick", () => zoomTo(timeline.full));
  holder.addEventListener("keydown", pressed);
  holder.addEventListener("focusout", () => moveCross(null));
  window.addEventListener("pointerup", endDrag);
}

const plotUnder = (event) => event.target.closest?.("svg.plot");

function timeUnder(picture, event) {
  const pixel = event.clientX - picture.getBoundingClientRect().left - GUTTER.left;
  return timeline.x.back(Math.min(Math.max(pixel, 0), timeline.inner));
}

function pointed(event) {
  const picture = timeline.drag?.picture ?? plotUnder(event);
  if (!picture) return moveCross(null);
  const time = timeUnder(picture, event);
  moveCross(time);
  if (timeline.drag) return brush(timeline.drag.from, time);
  showTip(picture, time, event.clientX, event.clientY);
}

// The crosshair stands at one time in every plot, and each legend shows its values there.
function moveCross(time) {
  timeline.at = time;
  const x = time === null ? 0 : px(timeline.x(time));
  for (const plot of timeline.plots) {
    plot.cross.setAttribute("visibility", time === null ? "hidden" : "visible");
    plot.cross.setAttribute("transform", `translate(${x} 0)`);
    plot.values.forEach((cell, i) => {
      cell.textContent = time === null ? "" : shownValue(plot.series[i], plot.measure, time);
    });
  }
  if (time === null) tip.classList.remove("on");
}

function showTip(picture, time, x, y) {
  const { panel, plot } = picture;
  const lines = [html("p", "when", showMoment(time, timeline.origin) + (timeline.origin === null ? "" : " UTC"))];
  for (const series of plot.series) {
    const line = html("p", `item ${lookOf(series)}`);
    line.append(html("i", "stroke"), series.label, html("b", "", shownValue(series, plot.measure, time)));
    lines.push(line);
  }
  if (!panel.overlaid) lines.push(...missedLine(panel.runs[0], time), ...actionLines(panel.runs[0], time));
  tip.replaceChildren(...lines);
  tip.classList.add("on");
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${x + 16 + width > window.innerWidth ? Math.max(4, x - 16 - width) : x + 16}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - height - 4))}px`;
}

function missedLine(run, time) {
  const share = run.curve("missed")?.mean[bucketAt(run, time)];
  if (!(share > 0)) return [];
  const part = share === 1 ? "" : ` ${showShare(share)} of ${showDuration(run.width_s)}`;
  return [html("p", "bad", `objective missed${part}`)];
}

function nearestMark(run, time) {
  let best = null;
  for (const mark of run.marks) {
    const away = time < mark.time ? mark.time - time : Math.max(0, time - mark.until);
    if (best === null || away < best.away) best = { mark, away };
  }
  return best && best.away * (timeline.inner / (timeline.range[1] - timeline.range[0])) <= REACH ? best.mark : null;
}

function actionLines(run, time) {
  const mark = nearestMark(run, time);
  if (!mark) return [];
  const moved = mark.before === mark.after && mark.count === 1;
  const change = moved ? `${mark.after} workers, moved` : `${mark.before} → ${mark.after} workers`;
  if (mark.count === 1) {
    return [html("p", "action", `${change} (step ${mark.step})`), html("p", "reason", mark.reason)];
  }
  const title = `${showCount(mark.count)} actions in ${showDuration(mark.until - mark.time)}: ${change}`;
  const reasons = [`first: ${mark.reason}`, `last: ${mark.lastReason}`].map((text) => html("p", "reason", text));
  return [html("p", "action", `${title} (from step ${mark.step})`), ...reasons];
}

function beginDrag(event) {
  const picture = plotUnder(event);
  if (!picture || event.button !== 0) return;
  timeline.drag = { picture, from: timeUnder(picture, event) };
  tip.classList.remove("on");
}

function endDrag(event) {
  if (!timeline.drag) return;
  const { picture, from } = timeline.drag, to = timeUnder(picture, event);
  timeline.drag = null;
  brush(0, 0);
  // Four pixels: less is a click with an unsteady hand.
  if (Math.abs(timeline.x(to) - timeline.x(from)) > 4) zoomTo([Math.min(from, to), Math.max(from, to)]);
}

function brush(from, to) {
  const [left, right] = [timeline.x(Math.min(from, to)), timeline.x(Math.max(from, to))];
  for (const plot of timeline.plots) {
    plot.brush.setAttribute("visibility", right > left ? "visible" : "hidden");
    plot.brush.setAttribute("x", px(left));
    plot.brush.setAttribute("width", px(right - left));
  }
}

function zoomTo([from, to]) {
  const [first, last] = timeline.full, least = timeline.least_s;
  const middle = (from + to) / 2, half = Math.max(to - from, least) / 2;
  timeline.range = [Math.max(first, middle - half), Math.min(last, middle + half)];
  timeline.held = timeline.zoomed();
  drawTimeline();
  moveCross(null);
}

function pressed(event) {
  const number = [...document.querySelectorAll("svg.plot")].indexOf(event.target);
  if (number < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  const [from, to] = timeline.range, at = timeline.at ?? (from + to) / 2, step = (to - from) / 100;
  const about = (factor) => [at - (at - from) * factor, at + (to - at) * factor];
  const zooms = { "+": about(0.5), "=": about(0.5), "-": about(2), 0: timeline.full, Escape: timeline.full };
  const jump = (way) => nextMark(event.target, at, way);
  const moves = { ArrowLeft: at - step, ArrowRight: at + step, n: jump(1), p: jump(-1) };
  if (event.key in zooms) {
    zoomTo(zooms[event.key]);
    document.querySelectorAll("svg.plot")[number].focus({ preventScroll: true });
  } else if (event.key in moves) stand(event.target, Math.min(Math.max(moves[event.key], from), to));
  else return;
  event.preventDefault();
}

function stand(picture, time) {
  const box = picture.getBoundingClientRect();
  moveCross(time);
  showTip(picture, time, box.left + GUTTER.left + timeline.x(time), box.top + box.height / 2);
}

function nextMark({ panel }, at, way) {
  const times = panel.runs[0].marks.map((mark) => mark.time).filter((time) => (time - at) * way > 1e-9);
  return times.length ? (way > 0 ? Math.min(...times) : Math.max(...times)) : at;
}
