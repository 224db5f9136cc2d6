// The page's tools: elements, numbers, colours, ranges, and what a pointer or the keyboard asks about.

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; text goes in as text, never as markup. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "style") Object.assign(node.style, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// Numbers.

const MINUS = "\u2212";

/** A number in about this many significant digits. */
function short(x, digits = 4) {
  if (x === null || x === undefined || Number.isNaN(x)) return "none";
  if (x === 0) return "0";
  const size = Math.abs(x);
  let text;
  if (size >= 1e6 || size < 1e-4) {
    const [mantissa, exponent] = x.toExponential(Math.max(0, digits - 2)).split("e");
    text = `${mantissa.replace(/\.?0+$/, "")}e${exponent.replace("+", "")}`;
  } else {
    const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    text = x.toFixed(Math.min(decimals, 12));
    if (text.includes(".")) text = text.replace(/\.?0+$/, "");
  }
  return text.replace(/^-/, MINUS).replace("e-", `e${MINUS}`);
}

const whole = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
const percent = (share, digits = 0) => {
  const value = 100 * share;
  return value > 0 && value < 1 && digits === 0 ? "<1\u202f%" : `${value.toFixed(digits)}\u202f%`;
};

function duration(seconds) {
  if (!(seconds >= 0)) return "none";
  if (seconds === 0) return "0";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60 || (seconds < 100 && seconds % 60)) return `${short(seconds, 3)} s`;
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => seconds >= size);
  const [size, unit] = parts[first];
  const count = Math.floor(seconds / size);
  const next = parts[first + 1];
  const rest = next ? Math.floor((seconds - count * size) / next[0]) : 0;
  return rest ? `${count} ${unit} ${rest} ${next[1]}` : `${count} ${unit}`;
}

const moment = (ms) => new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

// Colours follow the reader's scheme.

let colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "muted", "faint", "rule", "grid", "paper", "value", "infeasible", "failed", "best", "band", "early", "late"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const [from, to] = [channels(colours.early), channels(colours.late)];
  colours.ramp = Array.from({ length: 32 }, (_, i) => {
    const mixed = from.map((a, k) => Math.round(a + ((to[k] - a) * i) / 31));
    return `rgb(${mixed.join(" ")})`;
  });
}
const shade = (share) => colours.ramp[Math.max(0, Math.min(31, Math.round(31 * share)))];

// Ranges: a parameter's places, from 0 to 1, and what they mean.

/** Packed places as numbers from 0 to 1. */
function unpack(text) {
  const bytes = atob(text || "");
  const places = new Float32Array(bytes.length / 2);
  for (let i = 0; i < places.length; i++) {
    places[i] = (bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1)) / 65535;
  }
  return places;
}

/** A text that `make` shortens, by fewer digits, until it fits into `room` characters. */
function fitted(make, room) {
  const texts = [4, 3, 2, 1].map(make);
  const text = texts.find((text) => text.length <= room) ?? texts[3];
  return text.length > room + 2 ? `${text.slice(0, Math.max(1, room - 1))}\u2026` : text;
}

/** The value at a position, in words; a real in this many digits. */
function valueAt(parameter, place, digits = 4) {
  const { kind, low, high, log, count, labels } = parameter;
  if (labels.length) {
    const index = Math.min(count - 1, Math.floor(place * count));
    return index < labels.length ? labels[index] : `#${index}`;
  }
  if (kind === "integer") {
    if (log) {
      const [a, b] = [Math.log(low - 0.5), Math.log(high + 0.5)];
      return whole(Math.min(high, Math.max(low, Math.exp(a + place * (b - a))))).replace(/^-/, MINUS);
    }
    return short(low + Math.min(count - 1, Math.floor(place * count)), 12);
  }
  if (kind === "grid") {
    const index = Math.min(count - 1, Math.floor(place * count));
    return short(low + (index * (high - low)) / Math.max(1, count - 1), 6);
  }
  return short(log ? low * Math.exp(place * Math.log(high / low)) : low + place * (high - low), digits);
}

/** The value at a place of the sample, in the digits that its 16 bits are good for. */
function sampledAt(parameter, place) {
  const { kind, low, high, log } = parameter;
  if (kind !== "real") return valueAt(parameter, place);
  if (log) return valueAt(parameter, place, 3);
  const decimals = Math.floor(-Math.log10((high - low) / 65536));
  const x = low + place * (high - low);
  return short(decimals > 0 ? Number(x.toFixed(Math.min(decimals, 100))) : x, 4);
}

/** Where to label a parameter's axis, and with what. */
function marks(parameter, most) {
  const { low, high, log, count, labels, kind } = parameter;
  if (labels.length || (count !== null && count <= most && !log)) {
    const step = Math.ceil(count / most);
    const places = [];
    for (let i = 0; i < count; i += step) places.push((i + 0.5) / count);
    return places.map((place) => ({ place, text: valueAt(parameter, place) }));
  }
  const scale = log ? logTicks(low, high, most) : ticks(low, high, most);
  const place = (x) => {
    if (kind === "integer" && log) {
      const [a, b] = [Math.log(low - 0.5), Math.log(high + 0.5)];
      return (Math.log(x) - a) / (b - a);
    }
    if (log) return Math.log(x / low) / Math.log(high / low);
    if (count !== null) return (((x - low) / (high - low)) * (count - 1) + 0.5) / count;
    return (x - low) / (high - low);
  };
  return scale.filter((x) => kind !== "integer" || Number.isInteger(x)).map((x) => ({ place: place(x), text: short(x, 4) }));
}

/** Round numbers within a range. */
function ticks(low, high, most = 6) {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) {
    found.push(Number((i * step).toPrecision(12)));
  }
  return found;
}

/** Round times within this many seconds. */
function timeTicks(seconds, most = 6) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];
  const step = steps.find((size) => seconds / size <= most);
  if (seconds < 4 || !step) return ticks(0, seconds, most);
  return Array.from({ length: Math.floor(seconds / step) + 1 }, (_, i) => i * step);
}

function logTicks(low, high, most = 6) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  const found = [];
  for (let e = first; e <= last; e += step) found.push(10 ** e);
  return found.length >= 2 ? found : ticks(low, high, most).filter((x) => x > 0);
}

// What is under the pointer, or chosen with the arrow keys.

const tip = $("tip");
function showTip(text, x, y) {
  if (tip.textContent !== text) tip.textContent = text;
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? y - height - 12 : y + 18}px`;
}
function hideTip() {
  tip.hidden = true;
}

/** A point's text, which may be a function: most are never asked for. */
const textOf = (point) => (typeof point.text === "function" ? point.text() : point.text);

/** Makes the points of a chart explorable: `points` gives {x, y, text} in its pixels. */
function explore(chart, points, mark = () => {}) {
  const nearest = (x, y) => {
    let best = null;
    let least = 30 ** 2;
    for (const point of points) {
      const d = (point.x - x) ** 2 + (point.y - y) ** 2;
      if (d < least) [best, least] = [point, d];
    }
    return best;
  };
  let chosen = -1;
  chart.tabIndex = 0;
  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect();
    const point = nearest(event.clientX - box.left, event.clientY - box.top);
    mark(point);
    if (point) showTip(textOf(point), event.clientX, event.clientY);
    else hideTip();
  });
  const leave = () => {
    mark(null);
    hideTip();
  };
  chart.addEventListener("pointerleave", leave);
  chart.addEventListener("blur", leave);
  chart.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 };
    if (event.key === "Escape") return leave();
    if (!points.length || !(event.key in steps || event.key === "Home" || event.key === "End")) return;
    event.preventDefault();
    if (!points.sorted) {
      points.sort((a, b) => a.x - b.x || a.y - b.y);
      points.sorted = true;
    }
    if (event.key === "Home") chosen = 0;
    else if (event.key === "End") chosen = points.length - 1;
    else chosen = Math.max(0, Math.min(points.length - 1, chosen + steps[event.key]));
    const point = points[chosen];
    const box = chart.getBoundingClientRect();
    mark(point);
    showTip(textOf(point), box.left + point.x, box.top + point.y);
    $("said").textContent = textOf(point);
  });
}
