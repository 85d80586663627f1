// The whole state of the page: a plain value, its short form in the URL, and the Python that reproduces it.

import { activations } from "./math/activations.js";

/** @typedef {import("./math/kernel.js").Net} Net */
/** @typedef {import("./math/kernel.js").Kind} Kind */
/** @typedef {"circle" | "line" | "sphere"} Tab */
/**
 * @typedef {object} State
 * @property {Tab} tab
 * @property {Kind} kind Which kernel trains.
 * @property {Net} a @property {Net | null} b The second lane.
 * @property {number} time log10 of t Theta(x, x); Infinity: for ever; -Infinity: at the start.
 * @property {number[][]} points [angle, y], [position, y] or [longitude, latitude, y].
 * @property {[number, number]} pair The two points of the ellipse.
 * @property {number} draws How many functions are drawn from the prior. @property {number} seed Of the draws and the twin.
 * @property {number} width Of the finite twin.
 */

export const LIMITS = { depth: [1, 100], w: [0, 3], b: [0, 2], alpha: [0.001, 2], width: [8, 1024] };
export const TIME = { first: -2, last: 8 };
export const MOST_POINTS = 500;

/** @param {Partial<Net>} [over] @returns {Net} */
export const newNet = (over) => ({ kind: "mlp", act: "relu", depth: 3, w: 1.414, b: 0, alpha: 0.1, ...over });

/** Numbers that a URL writes exactly. @param {number} v @param {number} [digits] */
export const round = (v, digits = 4) => Number(v.toFixed(digits)) + 0; // no negative zero

const target = (/** @type {number} */ b) => Math.cos(b) / 2 + Math.sin(4 * b);

/** A small generator with a long period, so that seeds mean the same everywhere. @param {number} seed */
export function random(seed) {
  let a = (seed * 2654435761) >>> 0;
  const uniform = () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}

/** @type {Record<string, {label: string, make: (tab: Tab) => number[][]}>} */
export const presets = {
  six: { label: "the papers' target, 6 samples", make: (tab) => sampled(tab, 6) },
  ten: { label: "the papers' target, 10 samples", make: (tab) => sampled(tab, 10) },
  step: { label: "a step", make: (tab) => spread(tab, 10, (u) => (u < 0 ? -1 : 1)) },
  noise: {
    label: "noise",
    make(tab) {
      const { normal } = random(3);
      return spread(tab, 14, () => 0.7 * normal());
    },
  },
  clusters: {
    label: "two clusters",
    make(tab) {
      const { normal } = random(5);
      if (tab === "sphere") {
        return Array.from({ length: 16 }, (_, k) => {
          const side = k % 2 ? 1 : -1;
          return [round(side * 0.9 + 0.25 * normal()), round(side * 0.3 + 0.25 * normal()), side];
        });
      }
      return Array.from({ length: 12 }, (_, k) => {
        const side = k % 2 ? 1 : -1;
        return [round(side * 1.5 + 0.25 * normal()), round(side * 0.7 + 0.1 * normal())];
      });
    },
  },
  empty: { label: "empty", make: () => [] },
};

/** @param {Tab} tab @param {number} n */
export function sampled(tab, n) {
  // Equispaced, the end of the period not repeated.
  if (tab === "circle") return spread(tab, n, (_, angle) => target(angle));
  return spread(tab, n, (u) => target(u * Math.PI));
}

/** @param {Tab} tab @param {number} n @param {(u: number, at: number) => number} y u from -1 to 1 @returns {number[][]} */
function spread(tab, n, y) {
  if (tab === "sphere") {
    return Array.from({ length: 2 * n }, (_, k) => {
      const z = 1 - (2 * k + 1) / (2 * n);
      const turn = ((k * 2.399963) % (2 * Math.PI)) - Math.PI;
      return [round(turn), round(Math.asin(z)), round(y(turn / Math.PI, turn), 3)];
    });
  }
  return Array.from({ length: n }, (_, k) => {
    const u = tab === "circle" ? -1 + (2 * k) / n : -1 + (2 * k + 1) / n;
    const at = tab === "circle" ? u * Math.PI : u * 2.6;
    return [round(at), round(y(u, at), 3)];
  });
}

/** @returns {State} */
export const initial = () => ({
  tab: "circle",
  kind: "ntk",
  a: newNet({ depth: 5 }),
  b: null,
  time: Infinity,
  points: presets.six.make("circle"),
  pair: [1, 2],
  draws: 3,
  seed: 1,
  width: 128,
});

// --- the URL ------------------------------------------------------------------------------------------------------

const KINDS = { m: "mlp", r: "resnet" };

/** @param {Net} n */
const netCode = (n) => [n.kind[0], n.act.replace("(0.1)", ""), n.depth, n.w, n.b, n.alpha].join(",");

/** @param {State} s */
export function encode(s) {
  const time = s.time === Infinity ? "inf" : s.time === -Infinity ? "0" : `e${s.time}`;
  const parts = [
    "1",
    s.tab[0],
    s.kind,
    netCode(s.a),
    s.b ? netCode(s.b) : "",
    time,
    s.points.map((p) => p.join(",")).join("_"),
    s.pair.join(","),
    `${s.draws},${s.seed},${s.width}`,
  ];
  return parts.join("!");
}

/** A number between two, or what stands for it. @param {unknown} v @param {number[]} range @param {number} otherwise */
export function within(v, [low, high], otherwise) {
  const x = Number(v);
  return v === "" || v === undefined || v === null || !Number.isFinite(x) ? otherwise : Math.min(Math.max(x, low), high);
}

/** @param {string | undefined} code @param {Net} otherwise @returns {Net} */
function readNet(code, otherwise) {
  const [kind, act, depth, w, b, alpha] = (code ?? "").split(",");
  const name = act === "leaky_relu" ? "leaky_relu(0.1)" : act;
  return {
    kind: kind in KINDS ? /** @type {"mlp" | "resnet"} */ (KINDS[/** @type {"m" | "r"} */ (kind)]) : otherwise.kind,
    act: activations.has(name) ? name : otherwise.act,
    depth: Math.round(within(depth, LIMITS.depth, otherwise.depth)),
    w: round(within(w, LIMITS.w, otherwise.w)),
    b: round(within(b, LIMITS.b, otherwise.b)),
    alpha: Number(within(alpha, LIMITS.alpha, otherwise.alpha).toPrecision(4)),
  };
}

/** Points brought into range; what is no point is left out. @param {Tab} tab @param {unknown[][]} list @returns {number[][]} */
export function cleanPoints(tab, list) {
  const size = tab === "sphere" ? 3 : 2;
  /** @type {number[][]} */
  const found = [];
  for (const p of list) {
    if (found.length >= MOST_POINTS || p.length < size) continue;
    const v = p.slice(0, size).map((x) => (x === "" || x === null ? NaN : Number(x)));
    if (!v.every((x) => Number.isFinite(x) && Math.abs(x) < 1e6)) continue;
    const turned = (/** @type {number} */ u) => u - 2 * Math.PI * Math.round(u / (2 * Math.PI));
    if (tab === "line") v[0] = Math.min(Math.max(v[0], -3), 3);
    else if (Math.abs(v[0]) > 3.1416) v[0] = turned(v[0]);
    if (tab === "sphere") v[1] = Math.min(Math.max(v[1], -1.5708), 1.5708);
    v[size - 1] = Math.min(Math.max(v[size - 1], -3), 3);
    found.push(v.map((x) => round(x)));
  }
  return found;
}

/**
 * Any text to a state: what cannot be read is left as it is at the start.
 * @param {string} hash @returns {State}
 */
export function decode(hash) {
  const s = initial();
  let text = hash.replace(/^#/, "").slice(0, 20000);
  try {
    text = decodeURIComponent(text);
  } catch {
    return s;
  }
  const [version, tab, kind, a, b, time, points, pair, rest] = text.split("!");
  if (version !== "1") return s;
  const tabs = { c: "circle", l: "line", s: "sphere" };
  if (tab in tabs) s.tab = /** @type {Tab} */ (tabs[/** @type {"c"} */ (tab)]);
  if (kind === "nngp") s.kind = "nngp";
  s.a = readNet(a, s.a);
  s.b = b ? readNet(b, newNet({ kind: "resnet", depth: 5 })) : null;
  if (time === "0") s.time = -Infinity;
  else if (time && time[0] === "e") s.time = round(within(time.slice(1), [TIME.first, TIME.last], 0), 2);
  if (points !== undefined) s.points = cleanPoints(s.tab, points.split("_").map((p) => p.split(",")));
  else s.points = presets.six.make(s.tab);
  const n = s.points.length;
  const [i, j] = (pair ?? "").split(",");
  const index = (/** @type {string | undefined} */ v, /** @type {number} */ otherwise) => Math.round(within(v, [0, Math.max(n - 1, 0)], Math.min(otherwise, Math.max(n - 1, 0))));
  s.pair = [index(i, 0), index(j, 1)];
  const [draws, seed, width] = (rest ?? "").split(",");
  s.draws = Math.round(within(draws, [0, 8], s.draws));
  s.seed = Math.round(within(seed, [0, 9999], s.seed));
  s.width = Math.round(within(width, LIMITS.width, s.width));
  return s;
}

// --- Python and LaTeX ---------------------------------------------------------------------------------------------

/** @param {Net} n */
export function pythonNet(n) {
  const act = JSON.stringify(n.act);
  if (n.kind === "mlp") {
    return `wl.mlp(depth=${n.depth}, activation=${act}, w_std=${n.w}, b_std=${n.b})`;
  }
  if (n.b === 0) return `wl.resnet(depth=${n.depth}, alpha=${n.alpha}, activation=${act}, w_std=${n.w})`;
  return (
    `(\n    wl.Dense()\n    >> wl.Repeat(\n        wl.Residual(wl.Dense(w_std=${n.w}, b_std=${n.b}) >> wl.Phi(${act}) >> wl.Dense(), alpha=${n.alpha}),\n` +
    `        ${n.depth},\n    )\n    >> wl.Dense(w_std=${n.w}, b_std=${n.b})\n)`
  );
}

/** Where the script evaluates, and the page with it. @param {Tab} tab @returns {number[][]} */
export const probes = (tab) =>
  tab === "sphere"
    ? [[0, 0], [1, 0.5], [-1, 0.5], [2, -0.5], [-2, -1], [3, 1]]
    : [-2.5, -2, -1, -0.5, 0, 0.5, 1, 2, 2.5].map((v) => [v]);

/** @param {Tab} tab @param {number[]} p @returns {number[]} */
export function embed(tab, p) {
  if (tab === "circle") return [Math.cos(p[0]), Math.sin(p[0])];
  if (tab === "line") return [p[0], 1];
  return [Math.cos(p[1]) * Math.cos(p[0]), Math.cos(p[1]) * Math.sin(p[0]), Math.sin(p[1])];
}

const EMBED = {
  circle: "def points(u):  # on the circle, by their angle\n    return np.stack([np.cos(u[:, 0]), np.sin(u[:, 0])], 1)",
  line: "def points(u):  # on the line (u, 1) of the plane\n    return np.stack([u[:, 0], np.ones(len(u))], 1)",
  sphere:
    "def points(u):  # on the sphere, by longitude and latitude\n    lon, lat = u[:, 0], u[:, 1]\n" +
    "    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], 1)",
};

/**
 * A script that computes what is on the screen.
 * @param {State} s @param {number} t The time in the library's units.
 */
export function python(s, t) {
  const inputs = s.points.map((p) => `[${p.slice(0, -1).join(", ")}]`).join(", ");
  const outputs = s.points.map((p) => p[p.length - 1]).join(", ");
  const test = probes(s.tab).map((p) => `[${p.join(", ")}]`).join(", ");
  const lanes = s.b ? { A: s.a, B: s.b } : { A: s.a };
  const nets = Object.entries(lanes).map(([name, n]) =>
    n.kind === "profile" ? `# Network ${name} came from Python as a profile; put it here.\n${name} = ...` : `${name} = ${pythonNet(n)}`,
  );
  const body = s.points.length
    ? `u = np.array([${inputs}])
y = np.array([${outputs}])
x, test = points(u), points(np.array([${test}]))
t = ${t === Infinity ? "None  # trained for ever" : t}
for name, net in {${Object.keys(lanes).map((n) => `"${n}": ${n}`).join(", ")}}.items():
    model = wl.train(net, x, y, kernel="${s.kind}")
    print(name, "eigenvalues", *model.eigen.values)
    print(name, "mean", *model.predict(test, t))
    trained = wl.ensemble(net, x, y, test, t, kernel="${s.kind}")
    print(name, "std", *trained.std)  # single networks: trained.sample(key=0, count=3)`
    : `test = points(np.array([${test}]))
for name, net in {${Object.keys(lanes).map((n) => `"${n}": ${n}`).join(", ")}}.items():
    print(name, "mean", *np.zeros(len(test)))
    print(name, "std", *np.sqrt(wl.prepare(net, "nngp").diagonal(test)))`;
  return `# Written by the explorer of widelimit: the numbers that are on its screen.
import numpy as np
import widelimit as wl

${nets.join("\n")}


${EMBED[s.tab]}


${body}
`;
}

/** The network's equation. @param {Net} n */
export function equation(n) {
  if (n.kind === "profile") return "f\\ \\text{came from Python as a profile of its kernel}";
  const act = activations.get(n.act);
  const number = (/** @type {number} */ v) => (v === 1 ? "" : `${v}\\,`);
  const bias = (/** @type {string} */ at) => (n.b === 0 ? "" : ` + ${number(n.b)}b^{(${at})}`);
  const phi = `\\varphi(x)&=${act ? act.latex : ""}`;
  if (n.kind === "mlp") {
    return (
      `\\begin{aligned}x^{(l)}&=\\varphi\\big(\\tfrac{${n.w}}{\\sqrt n}W^{(l)}x^{(l-1)}${bias("l")}\\big)\\\\` +
      `f(x)&=\\tfrac{${n.w}}{\\sqrt n}W^{(${n.depth + 1})}x^{(${n.depth})}${bias(String(n.depth + 1))}\\\\${phi},\\;\\; l\\le ${n.depth}\\end{aligned}`
    );
  }
  return (
    `\\begin{aligned}x^{(l)}&=x^{(l-1)}+\\tfrac{${n.alpha}}{\\sqrt n}V^{(l)}\\varphi\\big(\\tfrac{${n.w}}{\\sqrt n}W^{(l)}x^{(l-1)}${bias("l")}\\big)\\\\` +
    `f(x)&=\\tfrac{${n.w}}{\\sqrt n}w^\\top x^{(${n.depth})}${bias(String(n.depth + 1))},\\;\\; x^{(0)}=\\tfrac1{\\sqrt d}Ux\\\\${phi},\\;\\; l\\le ${n.depth}\\end{aligned}`
  );
}

/** The data as CSV. @param {State} s */
export function csv(s) {
  const head = s.tab === "sphere" ? "longitude,latitude,y" : s.tab === "circle" ? "angle,y" : "x,y";
  return [head, ...s.points.map((p) => p.join(","))].join("\n") + "\n";
}
