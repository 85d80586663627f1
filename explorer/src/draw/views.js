// The views: what each draws, what to look for, and what a screen reader says.

import { angles, frame, grid, pictures } from "../engine.js";
import { places } from "../twin.js";
import { embed } from "../state.js";
import { Plot, short } from "./pen.js";

/** @typedef {import("./pen.js").Pen} Pen */
/** @typedef {import("../state.js").State} State */
/** @typedef {import("../engine.js").Lane} Lane */
/** @typedef {import("../math/kernel.js").Net} Net */
/**
 * @typedef {{paper: string, ink: string, faint: string, grid: string, a: string, b: string, twin: string, dark: boolean}} Theme
 * @typedef {{state: State, result: import("../engine.js").Result | null, smooth: any[], phases: any, globes: any[] | null,
 *   runs: import("../twin.js").Run[], selected: number, hover: {id: string, x: number, y: number} | null,
 *   eye: {lon: number, lat: number}}} Scene
 * @typedef {{id: string, title: string, look: string, draw: (pen: Pen, theme: Theme, scene: Scene) => void, say: (scene: Scene) => string,
 *   key?: (scene: Scene) => unknown[], height: number, wide?: boolean, shown?: (s: State) => boolean}} View
 */

/** @type {{light: Theme, dark: Theme}} */
export const themes = {
  light: { paper: "#ffffff", ink: "#1c2430", faint: "#66707f", grid: "#e8ebf0", a: "#0072b2", b: "#c4520a", twin: "#00856a", dark: false },
  dark: { paper: "#171d26", ink: "#e8ecf2", faint: "#97a3b4", grid: "#2a323e", a: "#56b4e9", b: "#f0a02c", twin: "#2fc59b", dark: true },
};

/** A name for a network. @param {Net} n */
export const nameOf = (n) =>
  n.kind === "mlp" ? `MLP, depth ${n.depth}` : n.kind === "resnet" ? `ResNet, depth ${n.depth}, \u03b1 = ${n.alpha}` : "network from Python";

/** @param {string} colour @returns {number[]} */
const rgb = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));

/** Between the paper (0) and a colour (1 and -1). @param {Theme} theme @returns {(v: number) => number[]} */
function diverging(theme) {
  const zero = rgb(theme.dark ? "#20262f" : "#f7f8fa"), up = rgb(theme.a), down = rgb(theme.b);
  return (v) => {
    const end = v < 0 ? down : up, u = Math.min(Math.abs(v), 1) ** 0.8;
    return zero.map((z, i) => z + u * (end[i] - z));
  };
}

/** @param {number} w @param {number} h @param {(x: number, y: number) => number[] | null} colour */
function pixels(w, h, colour) {
  const out = new ImageData(w, h);
  for (let y = 0; y < h; y++) {
    for (let x = 0; x < w; x++) {
      const c = colour(x, y), k = 4 * (y * w + x);
      if (!c) continue;
      out.data[k] = c[0];
      out.data[k + 1] = c[1];
      out.data[k + 2] = c[2];
      out.data[k + 3] = 255;
    }
  }
  return out;
}

/** @param {Scene} scene @returns {{lane: Lane, colour: "a" | "b", net: Net}[]} */
function lanes({ state, result }) {
  /** @type {{lane: Lane, colour: "a" | "b", net: Net}[]} */
  const out = [];
  if (result?.b && state.b) out.push({ lane: result.b, colour: "b", net: state.b });
  if (result?.a) out.push({ lane: result.a, colour: "a", net: state.a });
  return out;
}

/** @param {Pen} pen @param {Theme} theme @param {string} text */
function nothing(pen, theme, text) {
  pen.text(text, pen.width / 2, pen.height / 2, { fill: theme.faint, align: "middle", size: 13 });
}

/** Legend entries in a row. @param {Pen} pen @param {Theme} theme @param {[string, string, number[]?][]} entries @param {number} x @param {number} y */
function legend(pen, theme, entries, x, y) {
  for (const [colour, text, dash] of entries) {
    pen.path([x, x + 16], [y - 4, y - 4], { stroke: colour, width: 2.5, dash });
    pen.text(text, x + 21, y, { fill: theme.ink, size: 12 });
    x += 34 + text.length * 6.3;
  }
}

// --- (a), (b): the function -----------------------------------------------------------------------------------------

const PI_TICKS = /** @type {[number, string][]} */ ([
  [-Math.PI, "\u2212\u03c0"], [-Math.PI / 2, "\u2212\u03c0/2"], [0, "0"], [Math.PI / 2, "\u03c0/2"], [Math.PI, "\u03c0"],
]);

/** The axes of the main view; points are placed by them. @param {Pen} pen @param {Theme} theme @param {State} s */
export function functionPlot(pen, theme, s) {
  const circle = s.tab === "circle";
  return new Plot(
    pen, theme,
    { lo: circle ? -Math.PI : -3, hi: circle ? Math.PI : 3, ticks: circle ? PI_TICKS : undefined, label: circle ? "angle on the circle" : "x" },
    { lo: -2.2, hi: 2.2, ticks: [[-2, "\u22122"], [-1, "\u22121"], [0, "0"], [1, "1"], [2, "2"]] },
    { l: 34, r: 14, t: 10, b: s.b ? 32 + STRIP : 32 },
  );
}

const STRIP = 74; // pixels for the difference of two networks

/** A - B below the function. @param {Pen} pen @param {Theme} theme @param {Float64Array} at @param {Lane} a @param {Lane} b */
function difference(pen, theme, at, a, b) {
  const apart = a.mean.map((v, i) => v - b.mean[i]);
  const most = Number(Math.max(apart.reduce((m, v) => Math.max(m, Math.abs(v)), 0), 1e-3).toPrecision(1)), top = most * 1.5;
  const plot = new Plot(
    pen, theme, { lo: at[0], hi: at[at.length - 1], ticks: [] }, { lo: -top, hi: top, ticks: [[-most, short(-most)], [0, "0"], [most, short(most)]] },
    { l: 34, r: 14, t: pen.height - STRIP + 8, b: 6 },
  );
  plot.axes();
  plot.band(at, apart.map((v) => Math.min(v, 0)), apart.map((v) => Math.max(v, 0)), { fill: theme.faint, alpha: 0.25 });
  plot.curve(at, apart, { stroke: theme.ink, width: 1.5 });
  pen.text("A \u2212 B", plot.l + 6, plot.t + 12, { fill: theme.ink, size: 12, weight: 600 });
}

/** @type {View} */
const functions = {
  id: "function",
  title: "The function",
  look: "Line: mean over networks. Band: two standard deviations. Thin: single networks. Click adds a point, drag moves it, double-click removes it.",
  height: 330,
  wide: true,
  shown: (s) => s.tab !== "sphere",
  draw(pen, theme, scene) {
    const { state } = scene;
    const plot = functionPlot(pen, theme, state);
    plot.axes();
    const at = grid(/** @type {"circle" | "line"} */ (state.tab));
    for (const { lane, colour } of lanes(scene)) {
      if (lane.mean.length !== at.length) continue;
      const c = theme[colour];
      plot.band(at, lane.mean.map((m, i) => m - 2 * lane.std[i]), lane.mean.map((m, i) => m + 2 * lane.std[i]), { fill: c, alpha: theme.dark ? 0.2 : 0.13 });
      for (const f of lane.draws) plot.curve(at, f, { stroke: c, width: 1, alpha: 0.55 });
      plot.curve(at, lane.mean, { stroke: c, width: 2.6 });
    }
    state.points.forEach((p, i) => {
      const chosen = i === scene.selected;
      const mark = i === state.pair[0] ? "i" : i === state.pair[1] ? "j" : "";
      pen.circle(plot.x(p[0]), plot.y(p[1]), chosen ? 8 : 5.5, { fill: theme.ink, stroke: theme.paper, width: 2 });
      if (chosen) pen.circle(plot.x(p[0]), plot.y(p[1]), 11, { stroke: theme.ink, width: 1.5 });
      if (mark && state.points.length <= 40) pen.text(mark, plot.x(p[0]) + 9, plot.y(p[1]) - 7, { fill: theme.faint, size: 12, italic: true });
    });
    if (!state.points.length) pen.text("Click to add a point.", pen.width / 2, plot.y(-1.5), { fill: theme.faint, align: "middle", size: 14 });
    const { a, b } = scene.result ?? {};
    if (state.b) legend(pen, theme, [[theme.a, "A"], [theme.b, "B"]], plot.l + 8, plot.t + 16);
    if (state.b && a && b && a.mean.length === at.length && b.mean.length === at.length) difference(pen, theme, at, a, b);
  },
  say({ state, result }) {
    const lane = result?.a;
    if (!lane) return "No function.";
    const time = lane.t === Infinity ? "trained for ever" : `at time ${short(lane.t)}`;
    return `The function of ${nameOf(state.a)} ${time}, on ${state.points.length} points; ${(100 * lane.loss).toFixed(1)} per cent of the squared error is left. Mean at the probes: ${Array.from(lane.probe.mean, (v) => v.toFixed(2)).join(", ")}.`;
  },
};

// --- the sphere -----------------------------------------------------------------------------------------------------

/** @param {Pen} pen */
export function discs(pen) {
  const count = 2, stacked = pen.width < 560;
  const [columns, rows] = stacked ? [1, 2] : [count, 1];
  const r = Math.min((pen.width - 20) / columns / 2 - 8, (pen.height - 24) / rows / 2 - 6);
  return Array.from({ length: count }, (_, k) => ({
    x: (pen.width * (2 * (stacked ? 0 : k) + 1)) / (2 * columns), y: ((pen.height - 12) * (2 * (stacked ? k : 0) + 1)) / (2 * rows), r,
  }));
}

/** @type {View} */
const sphere = {
  id: "sphere",
  title: "The function on the sphere",
  look: "Drag the globe to turn it, click to add a point of the chosen value, double-click removes one. The interpolant is painted in real time.",
  height: 400,
  wide: true,
  shown: (s) => s.tab === "sphere",
  draw(pen, theme, scene) {
    const { state, globes } = scene;
    const colour = diverging(theme);
    const sides = pictures(!!state.b, scene.eye);
    discs(pen).forEach((disc, k) => {
      const { forward, east, north } = frame(sides[k]);
      const values = globes?.[k], line = rgb(theme.ink);
      if (values) {
        const size = Math.round(Math.sqrt(values.length));
        const image = pixels(size, size, (x, y) => {
          const v = values[y * size + x];
          if (!Number.isFinite(v)) return null;
          // Faint lines of equal value, every quarter.
          const level = (/** @type {number} */ w) => Math.floor(w * 4);
          const right = values[y * size + x + 1], below = values[(y + 1) * size + x];
          const edge = (Number.isFinite(right) && level(right) !== level(v)) || (Number.isFinite(below) && level(below) !== level(v));
          const c = colour(v / 1.3);
          return edge ? c.map((p, i) => p + 0.3 * (line[i] - p)) : c;
        });
        pen.image(image, disc.x - disc.r, disc.y - disc.r, 2 * disc.r, 2 * disc.r, true);
      }
      pen.circle(disc.x, disc.y, disc.r, { stroke: theme.faint, width: 1.5 });
      state.points.forEach((p, i) => {
        const q = embed("sphere", p);
        const dot = (/** @type {number[]} */ v) => q[0] * v[0] + q[1] * v[1] + q[2] * v[2];
        if (dot(forward) < 0) return;
        const c = colour(p[2] / 1.3).map(Math.round);
        pen.circle(disc.x + disc.r * dot(east), disc.y - disc.r * dot(north), i === scene.selected ? 8 : 5.5, {
          fill: `rgb(${c.join(",")})`, stroke: theme.ink, width: i === scene.selected ? 2.5 : 1.5,
        });
      });
      const name = state.b ? (k ? "B" : "A") : k ? "far side" : "near side";
      pen.text(name, disc.x - disc.r, disc.y - disc.r + 14, { fill: state.b ? (k ? theme.b : theme.a) : theme.faint, size: state.b ? 15 : 12, weight: state.b ? 700 : 400 });
    });
    const bar = pixels(64, 1, (x) => colour((x / 31.5 - 1) * 1));
    pen.image(bar, pen.width - 118, pen.height - 22, 90, 8, true);
    pen.text("\u22121.3", pen.width - 122, pen.height - 14, { fill: theme.faint, align: "end" });
    pen.text("1.3", pen.width - 24, pen.height - 14, { fill: theme.faint });
  },
  say: ({ state, result }) =>
    `The interpolant of ${state.points.length} points on the sphere. Values at the probes: ${result?.a ? Array.from(result.a.probe.mean, (v) => v.toFixed(2)).join(", ") : "none"}.`,
};

// --- (c): the kernel ------------------------------------------------------------------------------------------------

/** @type {View} */
const kernel = {
  id: "kernel",
  title: "Kernel by angle",
  look: "Peak scaled to 1. A ReLU tangent kernel has a kink at 0 (dashed tangent): sharper for a deeper MLP, almost none for a ResNet with small \u03b1.",
  height: 260,
  key: ({ state, result, hover }) => [state.kind, state.tab, result?.a?.curve[7], result?.b?.curve[7], result?.a?.kink, result?.b?.kink, result?.sibling?.curve[7], result?.sibling?.net, hover],
  draw(pen, theme, scene) {
    const { state, result } = scene;
    if (!result?.a) return nothing(pen, theme, "No kernel; see the sentence above.");
    const both = Float64Array.from([...Array.from(angles).reverse().map((v) => -v), ...angles]);
    /** @param {Float64Array} c */
    const mirror = (c) => {
      const size = c[0] || 1;
      return Float64Array.from([...Array.from(c).reverse(), ...c], (v) => v / size);
    };
    const low = Math.min(0, ...[result.a.curve, result.b?.curve, result.sibling?.curve].flatMap((c) => (c && c[0] ? [Math.min(...c) / c[0]] : [])));
    const plot = new Plot(
      pen, theme,
      { lo: -Math.PI, hi: Math.PI, ticks: PI_TICKS, label: "angle between the inputs" },
      { lo: Math.max(low, -1) - 0.05, hi: 1.08 },
      { l: 34, b: 32 },
    );
    plot.axes();
    if (result.sibling) plot.curve(both, mirror(result.sibling.curve), { stroke: theme.faint, width: 1.6, dash: [2, 3] });
    for (const { lane, colour } of lanes(scene)) {
      plot.curve(both, mirror(lane.curve), { stroke: theme[colour], width: 2.4 });
      if (state.kind === "ntk" && lane.kink > 1e-9) {
        const reach = Math.min(0.9 / lane.kink, 1.1);
        plot.curve([-reach, 0, reach], [1 - lane.kink * reach, 1, 1 - lane.kink * reach], { stroke: theme[colour], width: 1, dash: [5, 4] });
      }
      if (state.kind === "ntk") {
        const right = colour === "a";
        pen.text(`kink ${short(lane.kink)}`, right ? plot.l + plot.w - 4 : plot.l + 4, plot.t + 15, { fill: theme[colour], align: right ? "end" : "start", size: 13, weight: 600 });
      }
    }
    if (result.sibling) {
      const other = result.sibling.net.kind === "mlp" ? "MLP" : `ResNet \u03b1 = ${result.sibling.net.alpha}`;
      pen.text(other, plot.l + 4, plot.t + 15, { fill: theme.faint, size: 12 });
      if (state.kind === "ntk") pen.text(`kink ${short(result.sibling.kink)}`, plot.l + 4, plot.t + 30, { fill: theme.faint, size: 12 });
    }
    const { hover } = scene;
    if (hover?.id === "kernel") {
      const angle = Math.min(Math.abs(plot.fromX(hover.x)), Math.PI);
      const i = Math.min(angles.findIndex((v) => v >= angle), angles.length - 1);
      const x = plot.x(Math.sign(plot.fromX(hover.x)) * angle);
      pen.path([x, x], [plot.t, plot.t + plot.h], { stroke: theme.faint, width: 1 });
      const u = i > 0 ? (angle - angles[i - 1]) / (angles[i] - angles[i - 1]) : 0;
      const value = i > 0 ? result.a.curve[i - 1] + u * (result.a.curve[i] - result.a.curve[i - 1]) : result.a.curve[0];
      pen.text(`${short(angle)} rad: ${short(value)}`, Math.min(x + 6, plot.l + plot.w - 110), plot.t + plot.h - 8, { fill: theme.ink, size: 12 });
    }
  },
  say: ({ result }) =>
    result?.a
      ? `The kernel falls from ${short(result.a.curve[0])} at angle 0 to ${short(result.a.curve[angles.length - 1])} at opposite inputs; its kink is ${short(result.a.kink)}.`
      : "No kernel.",
};

// --- (d): Gram matrix, spectrum, residuals ----------------------------------------------------------------------------

/** The square of the heat map. @param {Pen} pen @param {boolean} two */
export function heatSquares(pen, two) {
  const count = two ? 2 : 1;
  const side = Math.min(pen.height - 34, (pen.width - 24) / count - 12);
  return Array.from({ length: count }, (_, k) => ({ x: (pen.width * (2 * k + 1)) / (2 * count) - side / 2, y: Math.max((pen.height - side) / 2 - 10, 10), side }));
}

/** @type {View} */
const gram = {
  id: "gram",
  title: "Gram matrix",
  look: "How much a step on one point moves another. Click an entry to choose the pair i, j of the ellipse.",
  height: 260,
  draw(pen, theme, scene) {
    const { state, result } = scene;
    const n = state.points.length;
    if (!result?.a || !n) return nothing(pen, theme, n ? "No matrix; see the sentence above." : "No points yet.");
    const colour = diverging(theme);
    const order = state.points.map((_, i) => i).sort((i, j) => state.points[i][0] - state.points[j][0]);
    [result.a, result.b].forEach((lane, k) => {
      if (!lane || lane.n !== n) return;
      const { x, y, side } = heatSquares(pen, !!result.b)[k];
      const top = lane.gram.reduce((m, v) => Math.max(m, Math.abs(v)), 0) || 1;
      pen.image(pixels(n, n, (c, r) => colour(lane.gram[order[r] * n + order[c]] / top)), x, y, side, side, false);
      pen.rect(x, y, side, side, { stroke: theme.faint, width: 1 });
      const cell = side / n;
      const [i, j] = state.pair.map((p) => order.indexOf(p));
      if (i >= 0 && j >= 0) {
        pen.rect(x + j * cell, y + i * cell, cell, cell, { stroke: theme.ink, width: 2 });
        pen.rect(x + i * cell, y + j * cell, cell, cell, { stroke: theme.ink, width: 2 });
      }
      if (n <= 8) {
        for (let r = 0; r < n; r++) {
          for (let c = 0; c < n; c++) {
            const v = lane.gram[order[r] * n + order[c]];
            const strong = Math.abs(v) / top > 0.55;
            if (cell > 26) pen.text(short(Number(v.toPrecision(2))), x + (c + 0.5) * cell, y + (r + 0.5) * cell + 4, { fill: strong ? theme.paper : theme.ink, align: "middle", size: Math.min(11, cell / 3.4) });
          }
        }
      }
      pen.text(`${result.b ? (k ? "B: " : "A: ") : ""}largest ${short(top)}`, x + side / 2, y + side + 15, { fill: theme.faint, align: "middle" });
    });
  },
  say: ({ state, result }) => {
    const lane = result?.a;
    if (!lane || !lane.n) return "No matrix.";
    const [i, j] = state.pair;
    return `Gram matrix of ${lane.n} points; entry of the chosen pair ${i + 1}, ${j + 1}: ${short(lane.gram[i * lane.n + j])}; diagonal ${short(lane.gram[0])}.`;
  },
};

/** @param {Lane[]} all */
function eigenAxis(all) {
  let hi = 0, lo = Infinity;
  for (const lane of all) {
    for (const v of lane.values) if (v > lane.noise) {
      hi = Math.max(hi, v);
      lo = Math.min(lo, v);
    }
  }
  if (!(hi > 0)) return null;
  const room = (hi / lo) ** 0.25;
  return { lo: Math.max(lo / 3, hi * 1e-16), hi: hi * Math.max(4, room), log: true };
}

/** @type {View} */
const spectrum = {
  id: "spectrum",
  title: "Spectrum",
  look: "Each dot is an eigenvalue of the Gram matrix. Filled: learnt. The line is at 1/t; modes above it have been learnt, those below wait.",
  height: 260,
  draw(pen, theme, scene) {
    const all = lanes(scene).filter(({ lane }) => lane.n);
    const y = eigenAxis(all.map((l) => l.lane));
    if (!y) return nothing(pen, theme, "No eigenvalues.");
    const n = all[0].lane.n;
    const plot = new Plot(pen, theme, { lo: 0.4, hi: n + 0.6, label: "mode", ticks: modeTicks(n) }, y, { l: 44, b: 32 });
    plot.axes();
    const t = all[all.length - 1].lane.t;
    if (t > 0 && t < Infinity) {
      const line = plot.y(Math.min(Math.max(1 / t, y.lo), y.hi));
      pen.path([plot.l, plot.l + plot.w], [line, line], { stroke: theme.ink, width: 1.2, dash: [6, 4] });
      pen.text("1/t", plot.l + plot.w - 4, line - 5, { fill: theme.ink, align: "end", size: 12, italic: true });
    }
    for (const { lane, colour } of all) {
      const shift = all.length > 1 ? (colour === "a" ? -0.14 : 0.14) : 0;
      const r = Math.max(Math.min(plot.w / n / 3, 6), 2.2);
      for (let i = 0; i < n; i++) {
        const v = lane.values[n - 1 - i];
        if (!(v > lane.noise)) continue;
        const learnt = lane.t === Infinity ? 1 : -Math.expm1(-v * lane.t);
        const x = plot.x(i + 1 + shift), at = plot.y(v);
        pen.path([x, x], [plot.t + plot.h, at], { stroke: theme[colour], width: 1.2, alpha: 0.35 });
        pen.circle(x, at, r, { fill: theme.paper, stroke: theme[colour], width: 1.6 });
        pen.circle(x, at, r, { fill: theme[colour], alpha: learnt });
      }
    }
    all.slice().reverse().forEach(({ lane, colour }, k) => {
      if (scene.state.tab === "sphere") return;
      const text = lane.exponent === null ? "falls faster than any power" : `decay exponent ${lane.exponent.toFixed(2)}`;
      pen.text(text, plot.l + plot.w - 4, plot.t + 13 + 15 * k, { fill: theme[colour], align: "end", size: 12, weight: 600 });
    });
  },
  say({ result }) {
    const lane = result?.a;
    if (!lane || !lane.n) return "No eigenvalues.";
    const learnt = lane.values.filter((v) => v * lane.t > 1).length;
    return `Eigenvalues from ${short(lane.values[lane.n - 1])} down to ${short(lane.values[0])}; ${lane.t === Infinity ? lane.rank : learnt} of ${lane.n} modes are learnt. ${lane.exponent === null ? "" : `On the circle the kernel's eigenvalues fall like k to the minus ${lane.exponent.toFixed(2)}.`}`;
  },
};

/** @param {number} n @returns {[number, string][]} */
function modeTicks(n) {
  const step = Math.max(1, Math.ceil(n / 10));
  return Array.from({ length: Math.ceil(n / step) }, (_, k) => [1 + k * step, String(1 + k * step)]);
}

/** @type {View} */
const residuals = {
  id: "residuals",
  title: "Residuals by mode",
  look: "Outline: how much of the data lies in each mode. Filled: what is left of it at time t. Large eigenvalues empty first.",
  height: 260,
  draw(pen, theme, scene) {
    const all = lanes(scene).filter(({ lane }) => lane.n);
    if (!all.length) return nothing(pen, theme, "No points yet.");
    const n = all[0].lane.n;
    const top = Math.max(...all.map(({ lane }) => Math.max(...lane.inner.map(Math.abs))), 1e-12);
    const plot = new Plot(pen, theme, { lo: 0.4, hi: n + 0.6, label: "mode", ticks: modeTicks(n) }, { lo: 0, hi: top * (all.length > 1 ? 1.4 : 1.25) }, { l: 40, b: 32 });
    plot.axes();
    all.forEach(({ lane, colour }) => {
      const half = all.length > 1 ? 0.2 : 0.34, shift = all.length > 1 ? (colour === "a" ? -0.21 : 0.21) : 0;
      for (let i = 0; i < n; i++) {
        const x = plot.x(i + 1 + shift - half), w = plot.x(i + 1 + shift + half) - x, base = plot.t + plot.h;
        const full = plot.y(Math.abs(lane.inner[n - 1 - i])), left = plot.y(Math.abs(lane.residual[n - 1 - i]));
        pen.rect(x, full, w, base - full, { stroke: theme[colour], width: 1.1, fill: theme[colour], alpha: 0.28 });
        pen.rect(x, left, w, base - left, { fill: theme[colour] });
      }
    });
    all.slice().reverse().forEach(({ lane, colour }, k) =>
      pen.text(`error left: ${lane.loss < 1e-10 ? "none" : `${short(100 * lane.loss)} %`}`, plot.l + plot.w - 4, plot.t + 13 + 15 * k, { fill: theme[colour], align: "end", size: 12, weight: 600 }),
    );
  },
  say: ({ result }) => (result?.a?.n ? `${short(100 * result.a.loss)} per cent of the squared error is left.` : "No points."),
};

// --- (e): the ellipse -----------------------------------------------------------------------------------------------

/** @param {Lane} lane @param {number} i @param {number} j */
export function ellipse(lane, i, j) {
  const { n, gram: g } = lane;
  const a = g[i * n + i], b = g[j * n + j], c = g[i * n + j];
  const high = (a + b) / 2 + Math.hypot((a - b) / 2, c);
  const low = high > 0 ? Math.max(a * b - c * c, 0) / high : 0;
  return { major: Math.sqrt(high), minor: Math.sqrt(low), angle: Math.atan2(2 * c, a - b) / 2 };
}

/** @type {View} */
const oval = {
  id: "ellipse",
  title: "Kernel ellipse",
  look: "Where a unit of gradient moves the outputs at i and j. Long and thin: the network moves the two together; a circle: each on its own.",
  height: 260,
  draw(pen, theme, scene) {
    const all = lanes(scene);
    const n = scene.state.points.length;
    const [i, j] = scene.state.pair;
    if (!all.length || n < 2 || i === j || i >= n || j >= n) return nothing(pen, theme, "Choose two different points.");
    const shapes = all.filter(({ lane }) => lane.n === n).map(({ lane, colour }) => ({ ...ellipse(lane, i, j), colour, size: Math.sqrt(lane.peak) || 1 }));
    const reach = Math.max(...shapes.map((e) => e.major / e.size), 1e-12) * 1.15;
    const side = Math.min(pen.width - 100, pen.height - 44);
    const left = (pen.width - side) / 2;
    const plot = new Plot(pen, theme, { lo: -reach, hi: reach, label: "output at i" }, { lo: -reach, hi: reach, label: "output at j" }, { l: Math.max(left - 10, 40), r: pen.width - Math.max(left - 10, 40) - side, t: 10, b: 34 });
    plot.axes();
    for (const e of shapes) {
      const xs = [], ys = [];
      for (let k = 0; k <= 120; k++) {
        const t = (2 * Math.PI * k) / 120, u = (e.major / e.size) * Math.cos(t), v = (e.minor / e.size) * Math.sin(t);
        xs.push(u * Math.cos(e.angle) - v * Math.sin(e.angle));
        ys.push(u * Math.sin(e.angle) + v * Math.cos(e.angle));
      }
      plot.curve(xs, ys, { stroke: theme[e.colour], width: 2.4, fill: theme[e.colour] + "22", close: true });
      for (const [length, turn] of [[e.major, 0], [e.minor, Math.PI / 2]]) {
        const u = (length / e.size) * Math.cos(e.angle + turn), v = (length / e.size) * Math.sin(e.angle + turn);
        plot.curve([-u, u], [-v, v], { stroke: theme[e.colour], width: 1, dash: [4, 3] });
      }
    }
    shapes.slice().reverse().forEach((e, k) =>
      pen.text(`${short(e.major)} : ${short(e.minor)}`, pen.width - 6, 22 + 15 * k, { fill: theme[e.colour], align: "end", size: 12, weight: 600 }),
    );
  },
  say({ state, result }) {
    const [i, j] = state.pair;
    if (!result?.a || result.a.n < 2 || i === j || i >= result.a.n || j >= result.a.n) return "No pair chosen.";
    const e = ellipse(result.a, i, j);
    return `Half-axes ${short(e.major)} and ${short(e.minor)}, turned by ${((e.angle * 180) / Math.PI).toFixed(0)} degrees.`;
  },
};

// --- (f): the finite twin ---------------------------------------------------------------------------------------------

/** The snapshot next to a time. @param {import("../twin.js").Run} run @param {number} t */
export function snapshot(run, t) {
  let k = 0;
  while (k + 1 < run.times.length && run.times[k + 1] <= t * (1 + 1e-9)) k++;
  return k;
}

/** @type {View} */
const twin = {
  id: "twin",
  title: "The finite twin",
  look: "Dashed: networks with n real neurons a layer, trained by gradient descent. Solid: the infinite network from the same start. Right: their gap falls like 1/\u221an.",
  height: 280,
  wide: true,
  shown: (s) => s.tab !== "sphere",
  key: ({ state, result, runs }) => [state.points, state.tab, state.width, result?.a?.t, runs.length, runs.map((r) => r.done)],
  draw(pen, theme, scene) {
    const { state, result, runs } = scene;
    const lane = result?.a;
    const beside = pen.width > 560;
    const first = beside ? pen.width * 0.62 : pen.width, high = beside ? pen.height : pen.height * 0.58;
    const t = lane ? lane.t : Infinity;
    const mine = runs.filter((r) => r.width === state.width && r.finite.length);
    const left = functionPlot({ ...pen, width: first, height: high }, theme, { ...state, b: null });
    left.axes();
    const at = places(/** @type {"circle" | "line"} */ (state.tab));
    for (const run of mine) {
      const k = snapshot(run, t);
      left.curve(at, run.limit[k], { stroke: theme.a, width: 1.4, alpha: 0.8 });
      left.curve(at, run.finite[k], { stroke: theme.twin, width: 1.8, dash: [6, 4] });
    }
    state.points.forEach((p) => pen.circle(left.x(p[0]), left.y(p[1]), 3.5, { fill: theme.ink }));
    if (!mine.length) pen.text("Press Train to follow real networks.", first / 2, left.t + 24, { fill: theme.faint, align: "middle", size: 14 });
    else {
      legend(pen, theme, [[theme.twin, `n = ${state.width}`, [6, 4]], [theme.a, "n = \u221e"]], left.l + 8, left.t + 16);
      const end = Math.max(...mine.map((r) => r.times[r.times.length - 1]));
      if (t > end) pen.text(`trained until t = ${short(end)}`, left.l + left.w - 6, left.t + 16, { fill: theme.faint, align: "end", size: 12 });
    }
    const done = runs.filter((r) => r.gap.length && r.done === 1 && !r.diverged);
    const gaps = done.map((r) => ({ n: r.width, gap: r.gap[snapshot(r, t)] })).filter((g) => g.gap > 0);
    const hi = Math.max(...gaps.map((g) => g.gap), 0.1) * 2, lo = Math.min(...gaps.map((g) => g.gap), 0.01) / 2;
    const right = new Plot(
      pen, theme,
      { lo: 6, hi: 1400, log: true, label: "width n", ticks: [8, 32, 128, 512].map((v) => [v, String(v)]) },
      { lo, hi, log: true, label: "gap to the limit" },
      beside ? { l: first + 50, r: 14, t: 10, b: 32 } : { l: 44, r: 14, t: high + 14, b: 32 },
    );
    right.axes();
    if (gaps.length) {
      const level = Math.exp(gaps.reduce((a, g) => a + Math.log(g.gap * Math.sqrt(g.n)), 0) / gaps.length);
      right.curve([6, 1400], [level / Math.sqrt(6), level / Math.sqrt(1400)], { stroke: theme.faint, width: 1.5, dash: [5, 4] });
      pen.text("1/\u221an", right.x(900), right.y(level / Math.sqrt(900)) - 8, { fill: theme.faint, align: "end", size: 12, italic: true });
      for (const g of gaps) pen.circle(right.x(g.n), right.y(g.gap), 4.5, { fill: theme.twin, stroke: theme.paper, width: 1.2 });
    }
  },
  say({ state, result, runs }) {
    const done = runs.filter((r) => r.done === 1 && r.gap.length);
    if (!done.length) return "No finite network has been trained yet.";
    const t = result?.a ? result.a.t : Infinity;
    const mean = (/** @type {number} */ n) => {
      const g = done.filter((r) => r.width === n).map((r) => r.gap[snapshot(r, t)]);
      return g.reduce((a, v) => a + v, 0) / g.length;
    };
    const widths = [...new Set(done.map((r) => r.width))].sort((a, b) => a - b);
    return `Finite networks of width ${state.width}. Gap to the limit by width: ${widths.map((n) => `${n}: ${short(mean(n))}`).join("; ")}.`;
  },
};

// --- (g): smoothness and phases -----------------------------------------------------------------------------------------

/** @param {Pen} pen @param {Theme} theme */
export function phasePlot(pen, theme) {
  return new Plot(pen, theme, { lo: 0, hi: 3, label: "\u03c3w" }, { lo: 0, hi: 2, label: "\u03c3b" }, { l: 30, b: 32, r: 12 });
}

/** @type {View} */
const phase = {
  id: "phase",
  title: "Phase diagram of the MLP",
  look: "Blue: ordered, depth makes all inputs alike. Orange: chaotic, depth tears neighbours apart. Drag the point to set \u03c3w and \u03c3b.",
  height: 260,
  key: ({ state, phases }) => [phases?.act, state.a.w, state.a.b, state.a.kind, state.b?.w, state.b?.b, state.b?.kind],
  draw(pen, theme, scene) {
    const plot = phasePlot(pen, theme);
    const map = scene.phases;
    if (map) {
      const up = rgb(theme.b), down = rgb(theme.a), zero = rgb(theme.dark ? "#20262f" : "#f7f8fa"), none = rgb(theme.grid);
      const image = pixels(map.columns, map.rows, (x, y) => {
        const chi = map.chi[(map.rows - 1 - y) * map.columns + x];
        if (!Number.isFinite(chi)) return none;
        const v = Math.min(Math.max(Math.log(Math.max(chi, 1e-9)) / 2, -1), 1);
        return zero.map((z, i) => z + 0.75 * Math.abs(v) * ((v > 0 ? up : down)[i] - z));
      });
      pen.image(image, plot.l, plot.t, plot.w, plot.h, true);
      const xs = [], ys = [];
      for (let r = 0; r < map.rows; r++) {
        for (let c = 0; c + 1 < map.columns; c++) {
          const a = Math.log(map.chi[r * map.columns + c]), b = Math.log(map.chi[r * map.columns + c + 1]);
          if (a <= 0 && b > 0) {
            xs.push((3 * (c + 0.5 + a / (a - b))) / map.columns);
            ys.push((2 * (r + 0.5)) / map.rows);
            break;
          }
        }
      }
      plot.axes();
      plot.curve(xs, ys, { stroke: theme.ink, width: 1.8 });
      pen.text("ordered", plot.x(0.25), plot.y(0.12), { fill: theme.ink, size: 12, alpha: 0.75 });
      pen.text("chaotic", plot.x(2.9), plot.y(0.12), { fill: theme.ink, size: 12, align: "end", alpha: 0.75 });
    } else plot.axes();
    const { a, b } = scene.state;
    if (b && b.kind !== "profile") pen.circle(plot.x(b.w), plot.y(b.b), 6, { fill: theme.b, stroke: theme.paper, width: 2 });
    if (a.kind !== "profile") pen.circle(plot.x(a.w), plot.y(a.b), 7, { fill: theme.a, stroke: theme.paper, width: 2.5 });
    if (a.kind === "resnet") pen.text("as an MLP with these numbers", plot.l + plot.w - 4, plot.t + 14, { fill: theme.ink, align: "end", size: 11 });
  },
  say({ state, phases }) {
    if (!phases) return "No diagram.";
    const c = Math.min(Math.floor((state.a.w / 3) * phases.columns), phases.columns - 1), r = Math.min(Math.floor((state.a.b / 2) * phases.rows), phases.rows - 1);
    const chi = phases.chi[r * phases.columns + c];
    return `Phase diagram: at \u03c3w = ${state.a.w}, \u03c3b = ${state.a.b} an MLP is ${chi > 1 ? "chaotic" : "ordered"}, \u03c7 = ${short(chi)}.`;
  },
};

export const views = [functions, sphere, kernel, spectrum, residuals, gram, oval, phase, twin];
