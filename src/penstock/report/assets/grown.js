// A run that grows: what came last is put behind what is there.

function spliced(old, more, since) {
  const all = new Float64Array(since + more.length);
  all.set(old.subarray(0, since));
  all.set(more, since);
  return all;
}

function grownCurve(old, more, since) {
  const part = (name) => spliced(old[name], more[name], since);
  const mean = part("mean");
  return more.low === more.mean ? { mean, low: mean, high: mean } : { mean, low: part("low"), high: part("high") };
}

// From the bucket `since` on all is new, and so are the marks from `marksSince` on.
function grown(old, more, since, marksSince) {
  const names = Object.keys(more.curves);
  const curves = new Map(names.map((name) => [name, grownCurve(old.curve(name), more.curve(name), since)]));
  const kept = [...old.resumes].filter((i) => i < since), added = [...more.resumes].map((i) => i + since);
  return ended({
    ...more,
    first_s: old.first_s,
    starts: spliced(old.starts, more.starts, since),
    curve: (name) => curves.get(name),
    marks: old.marks.slice(0, marksSince).concat(more.marks),
    resumes: new Set([...kept, ...added]),
  });
}
