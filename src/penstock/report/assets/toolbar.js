// What can be chosen: policies, curves, and the stretch of time.

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
