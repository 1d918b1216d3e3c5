"use strict";

// Numbers and times as people read them.

const MINUTE = 60, HOUR = 3600, DAY = 86400;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const NOTHING = "–";

function threeDigits(number) {
  return String(Number(number.toPrecision(3)));
}

function showCount(number) {
  if (!Number.isFinite(number)) return NOTHING;
  const units = [["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]];
  const [unit, size] = units.find(([, each]) => Math.abs(number) < 999.5 * each) || units[4];
  return threeDigits(number / size) + unit;
}

function showMoney(amount) {
  if (!Number.isFinite(amount)) return NOTHING;
  if (amount > 0 && amount < 0.1) return "$" + Number(amount.toPrecision(2));
  const digits = amount >= 1000 ? 0 : 2;
  return "$" + amount.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function showShare(part) {
  if (!Number.isFinite(part)) return NOTHING;
  if (part > 0 && part < 0.0001) return "<0.01 %";
  return Number((part * 100).toPrecision(part < 0.001 ? 2 : 3)) + " %";
}

function showDuration(seconds) {
  if (!Number.isFinite(seconds)) return NOTHING;
  const units = [["d", DAY, 2], ["h", HOUR, 2], ["min", MINUTE, 2], ["s", 1, 1], ["ms", 1e-3, 1], ["µs", 1e-6, 0]];
  if (seconds <= 0) return "0 s";
  // Whole units as they are: an hour is 1 h, and 64 minutes are 64 min.
  const [unit, size] = units.find(([, each, least]) => seconds >= each * least || seconds === each);
  return threeDigits(seconds / size) + " " + unit;
}

const two = (number) => String(number).padStart(2, "0");

// A moment in full: the date in UTC where the origin is known, else the time since the beginning.
function showMoment(time, origin) {
  if (origin !== null) return new Date((origin + time) * 1000).toISOString().slice(0, 19).replace("T", " ");
  const rounded = Math.round(time), clock = rounded % DAY;
  const days = Math.floor(rounded / DAY);
  const hours = `${Math.floor(clock / HOUR)}:${two(Math.floor(clock / MINUTE) % 60)}:${two(clock % 60)}`;
  return days ? `${days} d ${hours}` : hours;
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30].concat(
  [1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  [1, 2, 3, 6, 12].map((hours) => hours * HOUR),
  [1, 2, 4, 7, 14, 28, 56, 91, 182, 364].map((days) => days * DAY),
);

// Times of the ticks between two times, at most `most` of them, with their labels.
function timeTicks(from, to, most, origin) {
  const step = TIME_STEPS.find((each) => (to - from) / each <= most) || niceStep((to - from) / DAY, most) * DAY;
  const shift = origin === null ? 0 : origin;
  const ticks = [];
  for (let at = Math.ceil((from + shift) / step) * step; at <= to + shift; at += step) {
    ticks.push({ at: at - shift, ...(origin === null ? durationLabel(at, step) : dateLabel(at, step)) });
  }
  return ticks;
}

function dateLabel(unix, step) {
  const date = new Date(unix * 1000);
  if (unix % DAY === 0 || step >= DAY) {
    const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
    return { label: step > 90 * DAY ? `${day} ${date.getUTCFullYear()}` : day, strong: step < DAY };
  }
  const seconds = step < MINUTE ? ":" + two(date.getUTCSeconds()) : "";
  return { label: `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}${seconds}`, strong: false };
}

function durationLabel(time, step) {
  const parts = [["d", DAY], ["h", HOUR], ["min", MINUTE], ["s", 1]];
  let rest = Math.round(time);
  const words = [];
  for (const [unit, size] of parts) {
    const whole = Math.floor(rest / size);
    rest -= whole * size;
    if (whole) words.push(`${whole} ${unit}`);
  }
  return { label: words.slice(0, 2).join(" ") || "0", strong: step < DAY && time % DAY === 0 };
}

// 1, 2 or 5 times a power of ten, so that at most `most` steps cover the span.
function niceStep(span, most) {
  const power = 10 ** Math.floor(Math.log10(span / most));
  return [1, 2, 5, 10].map((each) => each * power).find((step) => span / step <= most * (1 + 1e-9));
}
