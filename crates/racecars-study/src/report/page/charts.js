// The charts. Points go on a canvas, since there are thousands; axes and few lines go into SVG.

/**
 * A chart with axes. `x` and `y` are {low, high, log, ticks: [{at, text}] or none, label}; `draw` gets
 * the canvas and the functions from values to pixels.
 */
function chart({ width, height, x, y, label, draw, margin }) {
  const m = { top: 10, right: 14, bottom: 34, left: 58, ...margin };
  const node = el("div", { class: "chart", role: "img", "aria-label": label, style: { height: `${height}px` } });
  const canvas = el("canvas", { "aria-hidden": "true" });
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const axes = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const place = (axis, from, to) => (value) => {
    const t = axis.log ? Math.log(value / axis.low) / Math.log(axis.high / axis.low) : (value - axis.low) / (axis.high - axis.low);
    return from + t * (to - from);
  };
  const px = place(x, m.left, width - m.right);
  const py = place(y, height - m.bottom, m.top);
  for (const { at, text } of y.ticks) {
    const v = py(at);
    if (!(v >= m.top - 1 && v <= height - m.bottom + 1)) continue;
    axes.append(svg("line", { class: "grid", x1: m.left, x2: width - m.right, y1: v, y2: v }));
    axes.append(svg("text", { x: m.left - 8, y: v + 4, "text-anchor": "end" }, text));
  }
  let end = -Infinity;
  if (x.upright) {
    // Names that have no room beside one another stand upright.
    for (const { at, text } of x.ticks) {
      const [u, v] = [px(at), height - m.bottom];
      axes.append(svg("line", { class: "axis", x1: u, x2: u, y1: v, y2: v + 4 }));
      axes.append(svg("text", { x: u + 4, y: v + 8, "text-anchor": "end", style: `font-size: ${x.upright}px`, transform: `rotate(-90 ${u + 4} ${v + 8})` }, text));
    }
  }
  for (const { at, text } of x.upright ? [] : x.ticks) {
    const u = px(at);
    const half = text.length * 3.4;
    if (!(u >= m.left - 1 && u <= width - m.right + 1) || u - half < end) continue;
    end = u + half + 6;
    axes.append(svg("line", { class: "axis", x1: u, x2: u, y1: height - m.bottom, y2: height - m.bottom + 4 }));
    const anchor = u + half > width ? "end" : "middle";
    axes.append(svg("text", { x: anchor === "end" ? width : u, y: height - m.bottom + 17, "text-anchor": anchor }, text));
  }
  axes.append(svg("line", { class: "axis", x1: m.left, x2: width - m.right, y1: height - m.bottom, y2: height - m.bottom }));
  if (x.label) axes.append(svg("text", { x: width - m.right, y: height - 4, "text-anchor": "end" }, x.label));
  if (y.label) axes.append(svg("text", { x: m.left, y: m.top - 4, "text-anchor": "start" }, y.label));
  context.save();
  context.beginPath();
  context.rect(m.left - 4, m.top - 6, width - m.left - m.right + 8, height - m.top - m.bottom + 8);
  context.clip();
  const points = draw({ context, px, py, m, width, height, axes }) || [];
  context.restore();
  node.append(axes, canvas);
  if (points.length) {
    const ring = svg("circle", { r: 5, fill: "none", stroke: colours.best, "stroke-width": 2, visibility: "hidden" });
    const overlay = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    overlay.append(ring);
    node.append(overlay);
    explore(node, points, (point) => {
      ring.setAttribute("visibility", point ? "visible" : "hidden");
      if (point) {
        ring.setAttribute("cx", point.x);
        ring.setAttribute("cy", point.y);
      }
    });
  }
  return node;
}

function dot(context, x, y, radius, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

/** A diamond, for the best point: a shape of its own besides a colour. */
function diamond(context, x, y, size) {
  context.beginPath();
  context.moveTo(x, y - size);
  context.lineTo(x + size, y);
  context.lineTo(x, y + size);
  context.lineTo(x - size, y);
  context.closePath();
  context.lineWidth = 2;
  context.strokeStyle = colours.paper;
  context.stroke();
  context.fillStyle = colours.best;
  context.fill();
}

/** A cross, for failures. */
function cross(context, x, y, size, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 1.4;
  context.beginPath();
  context.moveTo(x - size, y - size);
  context.lineTo(x + size, y + size);
  context.moveTo(x - size, y + size);
  context.lineTo(x + size, y - size);
  context.stroke();
}

/** A triangle at the edge, for a value beyond it. */
function arrow(context, x, y, size, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y - size);
  context.lineTo(x + size, y + size);
  context.lineTo(x - size, y + size);
  context.closePath();
  context.fill();
}

/** Failures stand where the worst values do. */
const failureHeight = (data, y, m, height) => (data.study.direction === "maximize" && !y.isGap ? height - m.bottom - 4 : m.top - 1);

/** What stands on the axis for an evaluation: its value, or its distance to the best. */
const heightOf = (sample, y, i) => (y.isGap ? sample.gap[i] : sample.value[i]);

/** A value's height within the chart, and whether it lies beyond. */
function heightWithin(y, py, value, top, bottom) {
  const v = y.log && value <= 0 ? bottom + 1 : py(value);
  return { v: Math.max(top, Math.min(bottom, v)), isBeyond: v < top - 0.5 || v > bottom + 0.5 };
}

/** A value as a dot, or, beyond the chart, as an arrow. */
function valueMark(context, u, { v, isBeyond }, bottom, radius, colour) {
  if (isBeyond) arrow(context, u, v, v >= bottom ? -radius * 1.5 : radius * 1.5, colour);
  else dot(context, u, v, radius, colour);
}

/** The axis of distances to the best, which is logarithmic: what is better is lower, and the best at the bottom. */
function gapAxis(data, most) {
  const gaps = data.sample.gap.filter((gap, i) => gap > 0 && data.sample.status[i] === 0);
  for (const [, , , gap] of data.improvements) if (gap > 0) gaps.push(gap);
  if (gaps.length < 2) return null;
  gaps.sort((a, b) => a - b);
  let [low, high] = [gaps[0], gaps.length < 40 ? gaps[gaps.length - 1] : Math.min(gaps[gaps.length - 1], 1e3 * gaps[Math.round(0.97 * (gaps.length - 1))])];
  if (!(high > low)) [low, high] = [low / 2, high * 2];
  const room = (high / low) ** 0.05;
  const isCut = gaps[gaps.length - 1] > high;
  [low, high] = [low / room, high * room];
  return { low, high, log: true, isGap: true, isCut, ticks: logTicks(low, high, most).map((x) => ({ at: x, text: short(x, 3) })) };
}

/** The axis of values: robust against a few that are far off, logarithmic where that shows more. */
function valueAxis(data, log, most = 6) {
  const byGap = log === "gap" ? gapAxis(data, most) : null;
  if (byGap) return byGap;
  const { sample, improvements, best } = data;
  const values = sample.value.filter((value, i) => value !== null && sample.status[i] === 0);
  for (const [, , value] of improvements) values.push(value);
  if (best && best.value !== null) values.push(best.value);
  if (!values.length) return null;
  values.sort((a, b) => a - b);
  const at = (share) => values[Math.round(share * (values.length - 1))];
  const maximize = data.study.direction === "maximize";
  const few = values.length < 40;
  let low = maximize && !few ? at(0.03) : values[0];
  let high = maximize || few ? values[values.length - 1] : at(0.97);
  const canLog = values[0] > 0;
  const wantsLog = canLog && high / low > 200;
  const isLog = canLog && (log === "auto" ? wantsLog : log === "log");
  // Values far off take little room on a log scale.
  if (isLog) {
    if (maximize) low = Math.max(values[0], low / 1e3);
    else high = Math.min(values[values.length - 1], high * 1e3);
  }
  const isCut = values[0] < low || values[values.length - 1] > high;
  if (isLog) {
    if (!(high > low)) [low, high] = [low / 2, high * 2];
    const room = (high / low) ** 0.04;
    [low, high] = [low / room, high * room];
    return { low, high, log: true, canLog, isCut, ticks: logTicks(low, high, most).map((x) => ({ at: x, text: short(x, 3) })) };
  }
  // Infeasible values that promise more than the best are shown too, as far as they leave room.
  const broken = sample.value.filter((value, i) => value !== null && sample.status[i] === 1);
  const span = high - low;
  if (broken.length && maximize) high = Math.max(high, Math.min(Math.max(...broken), high + 0.5 * span));
  else if (broken.length) low = Math.min(low, Math.max(Math.min(...broken), low - 0.5 * span));
  const room = high > low ? 0.05 * (high - low) : Math.abs(low) * 0.1 || 1;
  [low, high] = [low - room, high + room];
  return { low, high, log: false, canLog, isCut, ticks: ticks(low, high, most).map((x) => ({ at: x, text: short(x, 5) })) };
}

const outcomeText = (sample, i) => {
  if (sample.status[i] === 2) return "failed";
  const value = sample.value[i] === null ? "" : short(sample.value[i], 6);
  return sample.status[i] === 1 ? `infeasible${value && `, ${value}`}` : value;
};

/** How many parameters a tip has. */
const TOLD = 12;

/** An evaluation in words: its outcome and its parameters, `first` before the others. */
function trialText(data, i, first = null) {
  const rows = data.sample.order.length;
  const line = (k) => `${data.parameters[k].name} = ${sampledAt(data.parameters[k], data.places[k * rows + i])}`;
  const others = data.parameters.map((_, k) => k).filter((k) => k !== first);
  const isActive = (k) => !Number.isNaN(data.places[k * rows + i]);
  const shown = (first === null ? others : [first, ...others]).filter(isActive).slice(0, TOLD);
  const left = data.parameters.filter((_, k) => isActive(k)).length - shown.length;
  return [`trial ${data.sample.trial[i]}: ${outcomeText(data.sample, i)}`, ...shown.map(line), ...(left > 0 ? [`and ${whole(left)} more`] : [])].join("\n");
}

/** Values over evaluations or time, with the best so far. */
function convergence(data, width, { over, log }) {
  const { sample, improvements, state } = data;
  const y = valueAxis(data, log);
  if (!y) return null;
  const byTime = over === "time";
  const last = byTime ? Math.max(state.seconds, 1e-3) : Math.max(state.told, 2);
  const x = {
    low: byTime ? 0 : 1, high: last, label: byTime ? "running time" : "evaluations",
    ticks: byTime
      ? timeTicks(last, width < 500 ? 4 : 8).map((at) => ({ at, text: duration(at) }))
      : ticks(0, last, width < 500 ? 4 : 8).map((at) => ({ at: at || 1, text: whole(at || 1) })),
  };
  return chart({
    width, height: Math.min(380, Math.max(240, width * 0.38)), x, y,
    label: y.isGap ? `Distances to the best over ${x.label}` : `Values over ${x.label}; the best so far comes to ${short(data.best && data.best.value, 6)}`,
    draw({ context, px, py, height, m }) {
      const points = [];
      for (let i = 0; i < sample.order.length; i++) {
        const u = px(byTime ? sample.time[i] : sample.order[i] + 1);
        if (sample.status[i] === 2) {
          cross(context, u, failureHeight(data, y, m, height), 2.5, colours.failed);
          points.push({ x: u, y: failureHeight(data, y, m, height), text: () => trialText(data, i) });
          continue;
        }
        if (heightOf(sample, y, i) === null) continue;
        const at = heightWithin(y, py, heightOf(sample, y, i), m.top, height - m.bottom);
        context.globalAlpha = 0.5;
        valueMark(context, u, at, height - m.bottom, sample.order.length > 1000 ? 1.5 : 2.2, sample.status[i] ? colours.infeasible : colours.value);
        points.push({ x: u, y: at.v, text: () => trialText(data, i) });
      }
      context.globalAlpha = 1;
      context.strokeStyle = colours.best;
      context.lineWidth = 2;
      context.beginPath();
      const level = (improvement) => heightWithin(y, py, y.isGap ? improvement[3] : improvement[2], m.top - 4, height - m.bottom).v;
      improvements.forEach((improvement, i) => {
        const [order, time, value] = improvement;
        const u = px(byTime ? time : order + 1);
        const v = level(improvement);
        if (i === 0) context.moveTo(u, v);
        else {
          context.lineTo(u, level(improvements[i - 1]));
          context.lineTo(u, v);
        }
        const row = data.rowOf.get(order);
        const point = row === undefined ? "" : `\n${trialText(data, row)}`;
        points.push({ x: u, y: v, text: `best after ${whole(order + 1)} evaluations, ${duration(time)}\n${short(value, 8)}${point}` });
      });
      if (improvements.length) {
        const final = improvements[improvements.length - 1];
        context.lineTo(px(last), level(final));
        context.stroke();
        diamond(context, px(byTime ? final[1] : final[0] + 1), level(final), 5.5);
      }
      return points;
    },
  });
}

/** The room of a name on its side, the least room, and how long a name may be. */
const LINE = 12;
const TIGHT = 9;
const NAME = 16;

/** The ticks of a parameter's horizontal axis: every choice by its name, upright where they are too wide. */
function names(parameter, room) {
  if (!parameter.labels.length) return { ticks: marks(parameter, 5).map(({ place, text }) => ({ at: place, text })), extra: 0 };
  const all = marks(parameter, Math.min(parameter.count, Math.max(2, Math.floor(room / TIGHT)))).map(({ place, text }) => ({ at: place, text: cutName(text, NAME) }));
  if (widest(all) * 6.8 + 6 <= room / all.length) return { ticks: all, extra: 0 };
  const upright = room / all.length < LINE ? 9 : 11.5;
  return { ticks: all, upright, extra: Math.max(0, Math.ceil(widest(all) * 0.56 * upright) - 8) };
}

const widest = (ticks) => Math.max(0, ...ticks.map(({ text }) => text.length));
const cutName = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);

/** Whether the names of a parameter's choices need the whole width. */
const isMany = (parameter, room) => parameter.labels.length * LINE > room;

/** The parts of a range in which feasible trials are counted. */
const PARTS = 16;

/** Values over one parameter; later evaluations are darker. */
function slice(data, index, width, y) {
  const { sample, best } = data;
  const parameter = data.parameters[index];
  const rows = sample.order.length;
  const places = data.places.subarray(index * rows, (index + 1) * rows);
  const named = names(parameter, width - 52);
  const x = { low: 0, high: 1, upright: named.upright, ticks: named.ticks };
  const cell = parameter.count ? 1 / parameter.count : 0;
  return chart({
    width, height: (width > 400 ? 230 : 168) + named.extra, x, y, margin: { left: Math.max(44, widest(y.ticks) * 6.8 + 10), bottom: 22 + named.extra, right: 8, top: 8 },
    label: `Values over ${parameter.name}; the best at ${parameter.best === null ? "none" : valueAt(parameter, parameter.best)}`,
    draw({ context, px, py, height, m }) {
      const points = [];
      const last = Math.max(1, data.state.told - 1);
      for (let i = 0; i < rows; i++) {
        // Discrete values are spread over their cell, so that they do not hide one another.
        const spread = cell > 0.02 ? (((sample.trial[i] * 0.618034) % 1) - 0.5) * 0.7 * cell : 0;
        const u = px(places[i] + spread);
        if (sample.status[i] === 2) {
          cross(context, u, failureHeight(data, y, m, height), 2, colours.failed);
          points.push({ x: u, y: failureHeight(data, y, m, height), text: () => trialText(data, i, index) });
          continue;
        }
        if (heightOf(sample, y, i) === null) continue;
        const at = heightWithin(y, py, heightOf(sample, y, i), m.top, height - m.bottom);
        valueMark(context, u, at, height - m.bottom, 2, sample.status[i] ? colours.infeasible : shade(sample.order[i] / last));
        points.push({ x: u, y: at.v, text: () => trialText(data, i, index) });
      }
      if (best && best.value !== null && parameter.best !== null) {
        diamond(context, px(parameter.best), heightWithin(y, py, y.isGap ? 0 : best.value, m.top, height - m.bottom).v, 5);
      }
      return points;
    },
  });
}

/** How many trials along one parameter were feasible and infeasible, in parts of its range. */
function feasibleParts(data, index) {
  const { sample } = data;
  const parameter = data.parameters[index];
  const rows = sample.order.length;
  const places = data.places.subarray(index * rows, (index + 1) * rows);
  const parts = Array.from({ length: parameter.count && parameter.count <= PARTS ? parameter.count : PARTS }, () => [0, 0]);
  for (let i = 0; i < rows; i++) {
    if (sample.status[i] < 2 && places[i] >= 0) parts[Math.min(parts.length - 1, Math.floor(places[i] * parts.length))][sample.status[i]]++;
  }
  return parts;
}

/** The share of feasible trials along one parameter. */
function feasibilityChart(data, index, width) {
  const parameter = data.parameters[index];
  const parts = feasibleParts(data, index);
  const named = names(parameter, width - 52);
  const x = { low: 0, high: 1, upright: named.upright, ticks: named.ticks };
  const y = { low: 0, high: 1, ticks: [0, 0.5, 1].map((at) => ({ at, text: percent(at) })) };
  return chart({
    width, height: (width > 400 ? 180 : 132) + named.extra, x, y, margin: { left: 48, bottom: 22 + named.extra, right: 8, top: 8 },
    label: `Share of feasible trials over ${parameter.name}; the best at ${parameter.best === null ? "none" : valueAt(parameter, parameter.best)}`,
    draw({ context, px, py }) {
      const points = [];
      parts.forEach(([feasible, infeasible], i) => {
        if (!feasible && !infeasible) return;
        const [u, w] = [px(i / parts.length), px((i + 1) / parts.length)];
        const share = feasible / (feasible + infeasible);
        context.fillStyle = colours.value;
        context.fillRect(u + 0.5, py(share), Math.max(1, w - u - 1), py(0) - py(share));
        context.fillStyle = colours.infeasible;
        context.fillRect(u + 0.5, py(1), Math.max(1, w - u - 1), py(share) - py(1));
        const ends = parameter.labels.length ? "" : `${valueAt(parameter, i / parts.length + 1e-6)} to ${valueAt(parameter, (i + 1) / parts.length - 1e-6)}\n`;
        points.push({ x: (u + w) / 2, y: py(0.5), text: `${ends}${whole(feasible)} feasible, ${whole(infeasible)} infeasible` });
      });
      if (parameter.best !== null) diamond(context, px(parameter.best), py(1), 5);
      return points;
    },
  });
}

/** Where the search looked along one parameter, over time. */
function regionChart(data, index, width) {
  const { sample, region, state } = data;
  const parameter = data.parameters[index];
  const rows = sample.order.length;
  const places = data.places.subarray(index * rows, (index + 1) * rows);
  const count = region ? region.told.length : 0;
  const [low, high] = count ? [data.low, data.high].map((all) => all.subarray(index * count, (index + 1) * count)) : [[], []];
  const last = Math.max(2, state.told);
  const x = { low: 1, high: last, ticks: ticks(0, last, 3).map((at) => ({ at: at || 1, text: whole(at || 1) })) };
  // Every choice by its name, in a chart that is high enough for all.
  const isList = parameter.labels.length > 0;
  const named = marks(parameter, isList ? parameter.count : 4).map(({ place, text }) => ({ at: place, text: cutName(text, isList ? NAME : 7) }));
  const y = { low: 0, high: 1, ticks: named };
  const hasBand = count && parameter.ordered;
  return chart({
    width, height: Math.max(width > 400 ? 230 : 168, isList ? named.length * LINE + 30 : 0), x, y, margin: { left: Math.max(50, Math.ceil(widest(named) * 6.6) + 12), bottom: 22, right: 8, top: 8 },
    label: hasBand
      ? `${parameter.name}: searched from ${valueAt(parameter, low[count - 1])} to ${valueAt(parameter, high[count - 1])} at the end`
      : `${parameter.name}: values over evaluations`,
    draw({ context, px, py }) {
      const points = [];
      if (hasBand) {
        const isRegion = region.source === "region";
        context.fillStyle = colours.band;
        context.globalAlpha = 0.28;
        context.beginPath();
        const corners = [];
        if (isRegion) corners.push([1, 0, 1]);
        for (let k = 0; k < count; k++) corners.push([Math.max(1, region.told[k]), low[k], high[k]]);
        const outline = (side) => corners.flatMap((corner, k) => {
          const next = k + 1 < corners.length ? corners[k + 1][0] : last;
          return [[px(corner[0]), py(corner[side])], [px(next), py(corner[side])]];
        });
        [...outline(1), ...outline(2).reverse()].forEach(([u, v], k) => (k ? context.lineTo(u, v) : context.moveTo(u, v)));
        context.closePath();
        context.fill();
        context.globalAlpha = 1;
      }
      for (let i = 0; i < rows; i++) {
        const [u, v] = [px(sample.order[i] + 1), py(places[i])];
        if (sample.status[i] === 2) cross(context, u, v, 1.8, colours.failed);
        else {
          context.globalAlpha = 0.6;
          dot(context, u, v, 1.3, colours.value);
          context.globalAlpha = 1;
        }
        points.push({ x: u, y: v, text: () => trialText(data, i, index) });
      }
      if (parameter.best !== null && data.best) diamond(context, px(data.best.order + 1), py(parameter.best), 5);
      return points;
    },
  });
}

/** The best tenth, each a line through its parameters. */
function parallel(data, indices, width, zoom) {
  const { sample } = data;
  const rows = sample.order.length;
  const chosen = [];
  for (let i = 0; i < rows; i++) if (sample.tenth[i]) chosen.push(i);
  if (chosen.length < 2 || !indices.length) return null;
  const maximize = data.study.direction === "maximize";
  const better = (a, b) => (maximize ? sample.value[b] - sample.value[a] : sample.value[a] - sample.value[b]);
  chosen.sort((a, b) => better(b, a));
  const values = chosen.map((i) => sample.value[i]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const axes = [null, ...indices];
  // High enough for the names of all choices, and with room for those of the last axis.
  const lists = indices.map((index) => data.parameters[index]).filter((parameter) => parameter.labels.length);
  const height = Math.max(340, 70 + TIGHT * Math.max(0, ...lists.map((parameter) => parameter.labels.length)));
  const end = data.parameters[indices[indices.length - 1]];
  const last = end && end.labels.length ? Math.max(...end.labels.map((text) => Math.min(NAME, text.length))) : 0;
  const m = { top: 44, bottom: 26, left: 34, right: Math.max(56, Math.min(0.3 * width, last * 6.6 + 10)) };
  const at = (k) => m.left + (k * (width - m.left - m.right)) / (axes.length - 1);
  // Each axis is its whole range, or the part of it that the best tenth takes.
  const extents = axes.map((index) => {
    if (index === null || !zoom || !data.parameters[index].ordered) return [0, 1];
    let [from, to] = [1, 0];
    for (const i of chosen) {
      const p = data.places[index * rows + i];
      if (!Number.isNaN(p)) [from, to] = [Math.min(from, p), Math.max(to, p)];
    }
    if (from > to) return [0, 1];
    const { count } = data.parameters[index];
    const room = Math.max(0.02 * (to - from), count ? 0.5 / count : 1e-4);
    return [Math.max(0, from - room), Math.min(1, to + room)];
  });
  const place = (i, k) => {
    if (k === 0) return high > low ? (sample.value[i] - low) / (high - low) : 0.5;
    const [from, to] = extents[k];
    return (data.places[axes[k] * rows + i] - from) / (to - from);
  };
  const up = (p) => height - m.bottom - p * (height - m.top - m.bottom);
  const node = el("div", { class: "chart", role: "img", style: { height: `${height}px` }, "aria-label": `The best tenth: ${chosen.length} evaluations over ${indices.length} parameters` });
  const canvas = el("canvas", { "aria-hidden": "true" });
  const ratio = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const trace = (i, colour, line) => {
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.beginPath();
    axes.forEach((_, k) => (k ? context.lineTo(at(k), up(place(i, k))) : context.moveTo(at(k), up(place(i, k)))));
    context.stroke();
  };
  const draw = (marked) => {
    context.clearRect(0, 0, width, height);
    context.globalAlpha = chosen.length > 80 ? 0.5 : 0.75;
    chosen.forEach((i, rank) => trace(i, shade(rank / (chosen.length - 1)), 1));
    context.globalAlpha = 1;
    trace(chosen[chosen.length - 1], colours.best, 2);
    if (marked !== null) trace(marked, colours.ink, 2.5);
  };
  draw(null);
  const frame = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  axes.forEach((index, k) => {
    const u = at(k);
    const name = k === 0 ? "value" : data.parameters[index].name;
    const room = Math.max(4, Math.floor((width - m.left - m.right) / (axes.length - 1) / 7));
    const cut = name.length > room ? `${name.slice(0, room - 1)}\u2026` : name;
    const [x, anchor] = k === 0 ? [2, "start"] : [u, "middle"];
    frame.append(svg("line", { class: "axis", x1: u, x2: u, y1: m.top, y2: height - m.bottom }));
    frame.append(svg("text", { x, y: 14, "text-anchor": anchor, style: "fill: var(--ink); font-weight: 600" }, cut));
    const parameter = k > 0 ? data.parameters[index] : null;
    const [from, to] = extents[k];
    const cells = parameter && parameter.count ? parameter.count * (to - from) : Infinity;
    if (cells <= 8.01 || (parameter && parameter.labels.length && cells * (TIGHT - 0.01) <= height - m.top - m.bottom)) {
      // Few values: each is named where it stands, beside its axis.
      for (const { place: p, text } of marks(parameter, parameter.count)) {
        if (p < from || p > to) continue;
        const size = cells * LINE <= height - m.top - m.bottom ? 11.5 : 9;
        const space = k + 1 < axes.length ? room - 1 : Math.floor(m.right / 6.6);
        frame.append(svg("text", { class: "halo", style: `font-size: ${size}px`, x: u + 6, y: up((p - from) / (to - from)) + 4 }, cutName(text, Math.max(3, Math.min(space, NAME)))));
      }
      return;
    }
    const limit = (p, value) => fitted((digits) => (k === 0 ? short(value, digits) : valueAt(parameter, p, digits)), room);
    frame.append(svg("text", { x, y: 34, "text-anchor": anchor }, limit(to - 1e-9, high)));
    frame.append(svg("text", { x, y: height - m.bottom + 18, "text-anchor": anchor }, limit(from + 1e-9, low)));
  });
  node.append(canvas, frame);
  const points = chosen.flatMap((i) => axes.map((_, k) => ({ x: at(k), y: up(place(i, k)), text: () => trialText(data, i), i })));
  explore(node, points, (point) => draw(point ? point.i : null));
  return node;
}

/** Whether the best tenth keeps to small parts of the ranges, so that whole ranges would show little. */
function isNarrow(data, indices) {
  const rows = data.sample.order.length;
  const spans = indices.filter((index) => data.parameters[index].ordered).map((index) => {
    let [from, to] = [1, 0];
    for (let i = 0; i < rows; i++) {
      if (!data.sample.tenth[i]) continue;
      const p = data.places[index * rows + i];
      if (!Number.isNaN(p)) [from, to] = [Math.min(from, p), Math.max(to, p)];
    }
    return Math.max(0, to - from);
  });
  return spans.length > 0 && spans.reduce((sum, span) => sum + span, 0) / spans.length < 0.25;
}

/** Outcomes over time, as stacked columns. */
function failureChart(data, width) {
  const { over } = data.failures;
  if (!over.length) return null;
  const last = Math.max(2, data.state.told);
  const x = { low: 0, high: last, label: "evaluations", ticks: ticks(0, last, 7).map((at) => ({ at, text: whole(at) })) };
  const y = { low: 0, high: 1, ticks: [0, 0.5, 1].map((at) => ({ at, text: percent(at) })) };
  return chart({
    width, height: 190, x, y, label: `Share of evaluations that failed: ${data.state.failed} of ${data.state.told}`,
    draw({ context, px, py }) {
      const points = [];
      over.forEach(([good, infeasible, failed], i) => {
        const total = good + infeasible + failed;
        const [u, w] = [px((i * last) / over.length), px(((i + 1) * last) / over.length)];
        let base = 0;
        for (const [count, colour] of [[failed, colours.failed], [infeasible, colours.infeasible]]) {
          const share = count / total;
          context.fillStyle = colour;
          context.fillRect(u + 0.5, py(base + share), Math.max(1, w - u - 1), py(base) - py(base + share));
          base += share;
        }
        points.push({ x: (u + w) / 2, y: py(base / 2), text: `evaluations ${whole(Math.floor((i * last) / over.length) + 1)} to ${whole(Math.floor(((i + 1) * last) / over.length))}\n${failed} failed, ${infeasible} infeasible, ${good} good` });
      });
      return points;
    },
  });
}

/** Who was busy when. */
function timelineChart(data, width) {
  const { workers, span, resumed } = data.timeline;
  const row = workers.length > 16 ? 14 : 22;
  const m = { top: 8, bottom: 34, left: 46, right: 52 };
  const height = workers.length * row + m.top + m.bottom;
  const x = { low: 0, high: span, label: "running time", ticks: timeTicks(span, width < 500 ? 4 : 8).map((at) => ({ at, text: duration(at) })) };
  const y = { low: workers.length, high: 0, ticks: [] };
  const kinds = ["value", "infeasible", "failed"];
  return chart({
    width, height, x, y, margin: m,
    label: `Timeline of ${workers.length} workers, busy ${percent(data.timeline.busy)} of the time`,
    draw({ context, px, py, axes }) {
      const points = [];
      workers.forEach(({ worker, evaluations, busy, bars, pieces }, k) => {
        const [top, tall] = [py(k) + 2, row - 4];
        axes.append(svg("text", { x: m.left - 8, y: py(k) + row / 2 + 4, "text-anchor": "end" }, `${worker}`));
        axes.append(svg("text", { x: width, y: py(k) + row / 2 + 4, "text-anchor": "end" }, percent(busy)));
        context.fillStyle = colours.grid;
        context.fillRect(px(0), top, px(span) - px(0), tall);
        for (const [start, end, kind] of bars) {
          context.fillStyle = colours[kinds[kind]];
          const w = px(end) - px(start);
          context.fillRect(px(start), top, Math.max(0.7, w > 3 ? w - 0.7 : w), tall);
          points.push({ x: (px(start) + px(end)) / 2, y: top + tall / 2, text: `worker ${worker}: ${duration(end - start)}\n${kinds[kind]}, from ${duration(start)}` });
        }
        const wide = span / Math.max(1, pieces.length);
        pieces.forEach((shares, i) => {
          let base = top + tall;
          shares.forEach((share, kind) => {
            context.fillStyle = colours[kinds[kind]];
            const h = (tall * share) / 100;
            base -= h;
            // Whole pixels, so that neighbours leave no seam.
            const [from, to] = [Math.round(px(i * wide)), Math.round(px((i + 1) * wide))];
            context.fillRect(from, base, to - from, h);
          });
        });
        if (pieces.length) points.push({ x: px(span / 2), y: top + tall / 2, text: `worker ${worker}: ${whole(evaluations)} evaluations, busy ${percent(busy)}` });
      });
      context.strokeStyle = colours.ink;
      context.setLineDash([3, 3]);
      for (const at of resumed) {
        context.beginPath();
        context.moveTo(px(at), m.top - 4);
        context.lineTo(px(at), height - m.bottom);
        context.stroke();
      }
      return points;
    },
  });
}
