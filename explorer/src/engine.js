// From a state to everything that the views show. Runs in a worker; knows nothing of the page.

import { activations, Outside } from "./math/activations.js";
import { interpolate, Spectral, times } from "./math/flow.js";
import { layered, profile, Profile, scaleFree } from "./math/kernel.js";
import { fft, root } from "./math/linalg.js";
import { embed, probes, random } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./math/kernel.js").Net} Net */
/** @typedef {import("./math/kernel.js").Kind} Kind */

export const GRID = { circle: 241, line: 121 };
const CURVE = 140; // angles of the kernel's curve
const WAVES = 512; // samples of the kernel for its Fourier coefficients
const MOST_WAVES = 120; // of a draw on the circle

/** Where the function is drawn. @param {"circle" | "line"} tab */
export function grid(tab) {
  const n = GRID[tab], reach = tab === "circle" ? Math.PI : 3;
  return Float64Array.from({ length: n }, (_, k) => -reach + (2 * reach * k) / (n - 1));
}

/** Angles of the kernel's curve, dense near 0 where the kink is. */
export const angles = Float64Array.from({ length: CURVE }, (_, k) => Math.PI * (k / (CURVE - 1)) ** 1.5);

/**
 * The slope of the tangent kernel at equal inputs, exactly (the library's `analysis/_near.py`).
 * @param {Net} net @param {number} variance
 */
export function kink(net, variance) {
  const act = activations.get(net.act);
  if (!act || net.kind === "profile") return NaN;
  /** @typedef {{q: number, m: number, ntk: number, fall: number}} Near */
  /** @param {Near} s @param {number} w @param {number} b @returns {Near} */
  const dense = (s, w, b) => {
    const before = w * w * s.q, q = before + b * b;
    return { q, m: q ? (s.m * before) / q : 0, ntk: w * w * s.ntk + q, fall: w * w * s.fall };
  };
  /** @param {Near} s @returns {Near} */
  const activate = (s) => {
    const after = act.moment(s.q), gain = act.slope2(s.q);
    const sharp = (act.jump ** 2 / (2 * Math.PI)) * Math.sqrt(s.m);
    return { q: after, m: after ? ((gain * s.q) / after) * s.m : 0, ntk: gain * s.ntk, fall: gain * s.fall + sharp * s.ntk };
  };
  /** @type {Near} */
  let s = { q: variance, m: 1, ntk: 0, fall: 0 };
  if (net.kind === "resnet") s = dense(s, 1, 0);
  for (let l = 0; l < net.depth; l++) {
    if (net.kind === "mlp") s = activate(dense(s, net.w, net.b));
    else {
      const r = dense(activate(dense(s, net.w, net.b)), 1, 0);
      const g = net.alpha ** 2, q = s.q + g * r.q;
      s = { q, m: q ? (s.q * s.m + g * r.q * r.m) / q : 0, ntk: s.ntk + g * r.ntk, fall: s.fall + g * r.fall };
    }
  }
  s = dense(s, net.w, net.b);
  return s.ntk ? s.fall / s.ntk : 0;
}

/** Kernels of one network on one kind of input, remembered while points move. */
class Kernels {
  /** @param {Net} net @param {"circle" | "line" | "sphere"} tab @param {any} file */
  constructor(net, tab, file) {
    this.net = net;
    this.tab = tab;
    const variance = tab === "sphere" ? 1 / 3 : 1 / 2;
    this.profile = net.kind === "profile" ? Profile.fromJSON(file) : profile(net, variance);
    /** Whether the series in the angle is certified; if not, as for spikes in the chaotic phase, layers are run for each pair. */
    this.certified = net.kind === "profile" || this.profile.error < 1e-11;
    this.zonal = this.certified && (tab !== "line" || scaleFree(net));
    if (tab === "line" && net.kind === "profile") throw new Outside("A profile is for inputs of one norm. Use the circle.");
    this.memory = /** @type {Map<string, [number, number]>} */ (new Map());
    /** @type {Map<string, {ntk: Float64Array, nngp: Float64Array}>} */
    this.columns = new Map();
    this.coarse = /** @type {Float64Array | null} */ (null);
    /** @type {Partial<Record<Kind, Float64Array>>} */
    this.curves = {};
    /** @type {Partial<Record<Kind, Float64Array>>} */
    this.fourier = {};
  }

  /** The matrix between the grid and inputs, one remembered column for each. @param {number[][]} places @param {number[][]} x @param {Kind} kind */
  cross(places, x, kind) {
    const m = places.length, n = x.length;
    if (this.columns.size > 1500) this.columns.clear();
    const missing = x.filter((p) => !this.columns.has(String(p)));
    if (missing.length) {
      if (this.zonal) {
        for (const p of missing) {
          const of = (/** @type {Kind} */ k) => Float64Array.from(places, (z) => this.value(z, p, k));
          this.columns.set(String(p), { ntk: of("ntk"), nngp: of("nngp") });
        }
      } else {
        /** @type {[number, number][]} */
        const pairs = [];
        missing.forEach((_, j) => places.forEach((_, i) => pairs.push([i, m + j])));
        const found = layered(this.net, [...places, ...missing], pairs);
        missing.forEach((p, j) =>
          this.columns.set(String(p), { ntk: found.ntk.slice(j * m, (j + 1) * m), nngp: found.nngp.slice(j * m, (j + 1) * m) }));
      }
    }
    const out = new Float64Array(m * n);
    x.forEach((p, j) => {
      const column = this.columns.get(String(p))?.[kind] ?? new Float64Array(m);
      for (let i = 0; i < m; i++) out[i * n + j] = column[i];
    });
    return out;
  }

  /** Both kernels of two inputs, by norm and direction. @param {number[]} x @param {number[]} z @param {Kind} kind */
  value(x, z, kind) {
    let minus = 0, plus = 0, a = 0, b = 0;
    for (let c = 0; c < x.length; c++) {
      a += x[c] * x[c];
      b += z[c] * z[c];
    }
    const na = 1 / Math.sqrt(a), nb = 1 / Math.sqrt(b);
    for (let c = 0; c < x.length; c++) {
      minus += (x[c] * na - z[c] * nb) ** 2;
      plus += (x[c] * na + z[c] * nb) ** 2;
    }
    const factor = this.tab === "line" ? Math.sqrt(a * b) : 1;
    return factor * this.profile.at(kind, minus / 2, plus / 2);
  }

  /** The matrix between inputs. @param {number[][]} x Embedded. @param {number[][]} z @param {Kind} kind @param {boolean} same */
  matrix(x, z, kind, same) {
    const n = x.length, m = z.length;
    const k = new Float64Array(n * m);
    if (this.zonal) {
      for (let i = 0; i < n; i++) {
        for (let j = same ? i : 0; j < m; j++) {
          const v = this.value(x[i], z[j], kind);
          k[i * m + j] = v;
          if (same) k[j * m + i] = v;
        }
      }
      return k;
    }
    // Layer by layer, for pairs that were not met before.
    /** @type {[number, number][]} */
    const pairs = [];
    const keys = [];
    const all = same ? x : [...x, ...z];
    const shift = same ? 0 : n;
    for (let i = 0; i < n; i++) {
      for (let j = same ? i : 0; j < m; j++) {
        const key = `${x[i]};${z[j]}`;
        if (!this.memory.has(key)) {
          pairs.push([i, j + shift]);
          keys.push(key);
        }
      }
    }
    if (this.memory.size + pairs.length > 200000) this.memory.clear();
    if (pairs.length) {
      const found = layered(this.net, all, pairs);
      keys.forEach((key, p) => this.memory.set(key, [found.ntk[p], found.nngp[p]]));
    }
    const which = kind === "ntk" ? 0 : 1;
    for (let i = 0; i < n; i++) {
      for (let j = same ? i : 0; j < m; j++) {
        const v = this.memory.get(`${x[i]};${z[j]}`)?.[which] ?? NaN;
        k[i * m + j] = v;
        if (same) k[j * m + i] = v;
      }
    }
    return k;
  }
}

/** A kernel at angles between inputs of norm 1. @param {Kernels} k @param {Kind} kind @param {ArrayLike<number>} at */
function atAngles(k, kind, at) {
  if (k.certified) return Float64Array.from(at, (a) => k.profile.atAngle(kind, a));
  const x = Array.from(at, (a) => [Math.cos(a), Math.sin(a), ...(k.tab === "sphere" ? [0] : [])]);
  const origin = [[1, 0, ...(k.tab === "sphere" ? [0] : [])]];
  return layered(k.net, [...origin, ...x], x.map((_, i) => [0, i + 1]))[kind];
}

/** @type {Map<string, Kernels>} */
const known = new Map();

/** @param {Net} net @param {State["tab"]} tab @param {any} file */
function kernels(net, tab, file) {
  const key = `${tab} ${JSON.stringify(net.kind === "mlp" ? { ...net, alpha: 1 } : net)} ${net.kind === "profile" ? file?.scale : ""}`;
  let found = known.get(key);
  if (!found) {
    found = new Kernels(net, tab, file);
    if (known.size >= 8) known.delete(/** @type {string} */ (known.keys().next().value));
    known.set(key, found);
  }
  return found;
}

const WAVE_ANGLES = Float64Array.from({ length: WAVES / 2 + 1 }, (_, k) => (2 * Math.PI * k) / WAVES);

/** Fourier coefficients of the kernel on the circle. @param {Kernels} kernel @param {Kind} kind */
function waves(kernel, kind) {
  return (kernel.fourier[kind] ??= wavesNow(kernel, kind));
}

/** @param {Kernels} kernel @param {Kind} kind */
function wavesNow(kernel, kind) {
  const re = new Float64Array(WAVES), im = new Float64Array(WAVES);
  atAngles(kernel, kind, WAVE_ANGLES).forEach((v, k) => (re[k] = re[(WAVES - k) % WAVES] = v));
  fft(re, im);
  return re.slice(0, WAVES / 2).map((v) => Math.max(v / WAVES, 0));
}

/**
 * How fast eigenvalues fall: the exponent of a power, or null where they fall faster than any power.
 * @param {Float64Array} values By wave number.
 */
export function decay(values) {
  const top = values.reduce((a, v) => Math.max(a, v), 0);
  /** @type {number[][]} */
  const points = [];
  for (let k = 6; k <= 60; k++) if (values[k] > 1e-13 * top) points.push([Math.log(k), Math.log(values[k])]);
  if (points.length < 12) return null;
  const half = points.length >> 1;
  const early = fall(points.slice(0, half)), late = fall(points.slice(half));
  return late > 1.5 * early + 1 ? null : fall(points);
}

/** The slope of a straight line through points, downwards. @param {number[][]} points */
function fall(points) {
  const mean = (/** @type {number} */ c) => points.reduce((a, p) => a + p[c], 0) / points.length;
  const mx = mean(0), my = mean(1);
  let xy = 0, xx = 0;
  for (const [x, y] of points) {
    xy += (x - mx) * (y - my);
    xx += (x - mx) ** 2;
  }
  return -xy / xx;
}

/** Places from coarse to fine: a factor of a smooth kernel then interpolates, and does not extrapolate. @param {number} n */
function coarseFirst(n) {
  const seen = new Set([0, n - 1]);
  for (let k = 1; seen.size < n; k++) {
    let v = 0;
    for (let i = k, b = 0.5; i; i >>= 1, b /= 2) if (i & 1) v += b;
    seen.add(Math.round(v * (n - 1)));
  }
  return [...seen];
}

/** Functions drawn from the prior, at the grid and at the data. @param {State} s @param {Kernels} k @param {Float64Array} at @param {number[][]} x */
function priors(s, k, at, x) {
  const n = x.length;
  if (s.tab === "circle") {
    const lambda = waves(k, "nngp");
    return Array.from({ length: s.draws }, (_, draw) => {
      const { normal } = random(s.seed * 101 + draw);
      const c = new Float64Array(MOST_WAVES), d = new Float64Array(MOST_WAVES);
      for (let w = 0; w < MOST_WAVES; w++) {
        const size = Math.sqrt((w ? 2 : 1) * lambda[w]);
        c[w] = size * normal();
        d[w] = size * normal();
      }
      const f = (/** @type {number} */ angle) => {
        // Clenshaw's rule for cosines and sines at once.
        const t = 2 * Math.cos(angle);
        let c1 = 0, c2 = 0, d1 = 0, d2 = 0;
        for (let w = MOST_WAVES - 1; w > 0; w--) {
          const e = t * c1 - c2 + c[w];
          c2 = c1;
          c1 = e;
          const g = t * d1 - d2 + d[w];
          d2 = d1;
          d1 = g;
        }
        return c[0] + (t / 2) * c1 - c2 + Math.sin(angle) * d1;
      };
      return { grid: Float64Array.from(at, f), data: Float64Array.from(s.points, (p) => f(p[0])) };
    });
  }
  // Every place of the grid, or every second one where layers are run for each pair of many.
  const step = k.zonal || k.net.depth <= 12 ? 1 : 2, rough = (at.length - 1) / step + 1;
  const order = coarseFirst(rough);
  const spots = order.map((i) => [at[step * i], 1]);
  const all = rough + n;
  k.coarse ??= k.matrix(spots, spots, "nngp", true);
  const side = k.cross(Array.from(at, (v) => [v, 1]), x, "nngp"), own = k.matrix(x, x, "nngp", true);
  const joint = new Float64Array(all * all);
  for (let i = 0; i < all; i++) {
    for (let j = 0; j <= i; j++) {
      const value =
        i < rough ? k.coarse[i * rough + j] : j < rough ? side[step * order[j] * n + i - rough] : own[(i - rough) * n + j - rough];
      joint[i * all + j] = joint[j * all + i] = value;
    }
  }
  const l = root(joint, all);
  return Array.from({ length: s.draws }, (_, draw) => {
    const { normal } = random(s.seed * 101 + draw);
    const z = Float64Array.from({ length: all }, normal);
    const f = new Float64Array(all);
    for (let i = 0; i < all; i++) for (let j = 0; j <= i; j++) f[i] += l[i * all + j] * z[j];
    const on = new Float64Array(rough);
    order.forEach((i, j) => (on[i] = f[j]));
    const grid = at.map((_, i) => (i % step ? (on[(i - 1) / step] + on[(i + 1) / step]) / 2 : on[i / step]));
    return { grid, data: f.slice(rough) };
  });
}

/**
 * One lane: a network on the data.
 * @param {State} s @param {Net} net @param {number | null} t Time, if it is set by another lane. @param {any} file
 */
function lane(s, net, t, file) {
  const k = kernels(net, s.tab, file);
  const p = k.profile;
  const { kind } = s;
  const curve = (k.curves[kind] ??= atAngles(k, kind, angles));
  const peak = curve[0];
  const unit = peak > 0 ? 1 / peak : 1;
  const time = t ?? (s.time === Infinity ? Infinity : s.time === -Infinity ? 0 : 10 ** s.time * unit);
  const n = s.points.length;
  const x = s.points.map((q) => embed(s.tab, q));
  const y = s.points.map((q) => q[q.length - 1]);
  const gram = k.matrix(x, x, kind, true);
  const spectral = new Spectral(gram, n);
  const inner = spectral.project(y);
  const dual = spectral.dual(time, y);
  const size = y.reduce((a, v) => a + v * v, 0);
  const spots = probes(s.tab).map((q) => embed(s.tab, q));
  const probe = moments(k, kind, spectral, spots, x, dual, time);
  const residual = spectral.values.map((v, i) => inner[i] * (v > spectral.noise ? Math.exp(-v * time) : 1));
  const notes = [];
  if (peak === 0) notes.push("The kernel is zero: with these numbers no output depends on the input.");
  else if (n && spectral.rank < n) {
    notes.push(
      `The kernel matrix has rank ${spectral.rank} of ${n} to rounding: some directions of the data are not learnt` +
        (time === Infinity ? " (points on top of each other tend to their mean)." : "."),
    );
  }
  else if (n && peak > 0 && spectral.values[n - 1] > 1e10 * spectral.values[0] && time === Infinity) {
    const odd = ["erf", "sin", "tanh", "identity"].includes(net.act) && net.b === 0 && net.kind !== "profile";
    notes.push(
      `The kernel matrix is almost singular (condition ${(spectral.values[n - 1] / spectral.values[0]).toExponential(0)}): the last digits of the data decide the function` +
        (odd ? "; without biases an odd activation makes an odd function, which opposite points contradict." : ". Stop earlier, or move points apart."),
    );
  }
  if (net.kind === "profile" && p.error > 1e-9) notes.push(`The profile is right to ${p.error.toExponential(0)} only.`);
  const fourier = s.tab === "sphere" ? null : waves(k, kind);
  const base = {
    t: time, unit, peak, n, gram, values: spectral.values, noise: spectral.noise, rank: spectral.rank,
    inner: Float64Array.from(inner), residual, loss: size ? residual.reduce((a, v) => a + v * v, 0) / size : 0,
    curve, kink: kink(net, s.tab === "sphere" ? 1 / 3 : 1 / 2),
    fourier, exponent: fourier ? decay(fourier) : null, probe, notes, dual,
    mean: new Float64Array(0), std: new Float64Array(0),
    draws: /** @type {Float64Array[]} */ ([]),
  };
  if (s.tab === "sphere") return base;
  const at = grid(s.tab);
  const places = Array.from(at, (v) => embed(s.tab, [v]));
  const { mean, std, operator } = moments(k, kind, spectral, places, x, dual, time, true);
  const draws = priors(s, k, at, x).map(({ grid: f, data }) => {
    const gap = Float64Array.from(y, (v, i) => v - data[i]);
    const moved = times(operator, n, gap);
    return f.map((v, i) => v + (n ? moved[i] : 0));
  });
  return { ...base, mean, std, draws };
}

/**
 * Mean and standard deviation over trained networks (the library's `ensemble`).
 * @param {Kernels} k @param {Kind} kind @param {Spectral} spectral @param {number[][]} places @param {number[][]} x
 * @param {Float64Array} dual @param {number} t @param {boolean} [fixed] Whether the places are those of the grid.
 */
function moments(k, kind, spectral, places, x, dual, t, fixed = false) {
  const n = x.length, m = places.length;
  const cross = fixed ? k.cross(places, x, kind) : k.matrix(places, x, kind, false);
  const prior = fixed ? k.cross(places, x, "nngp") : k.matrix(places, x, "nngp", false);
  const own = k.matrix(x, x, "nngp", true);
  const phi = spectral.operator(t);
  const operator = new Float64Array(m * n);
  const mean = n ? times(cross, n, dual) : new Float64Array(m);
  const std = new Float64Array(m);
  const row = new Float64Array(n);
  for (let i = 0; i < m; i++) {
    row.fill(0);
    for (let a = 0; a < n; a++) {
      const c = cross[i * n + a];
      for (let b = 0; b < n; b++) row[b] += c * phi[a * n + b];
    }
    operator.set(row, i * n);
    let variance = k.zonal ? k.value(places[i], places[i], "nngp") : k.matrix([places[i]], [places[i]], "nngp", true)[0];
    for (let a = 0; a < n; a++) {
      let total = -2 * prior[i * n + a];
      for (let b = 0; b < n; b++) total += own[a * n + b] * row[b];
      variance += row[a] * total;
    }
    std[i] = Math.sqrt(Math.max(variance, 0));
  }
  return { mean, std, operator };
}

/** @typedef {ReturnType<typeof lane>} Lane */
/** @typedef {{a: Lane | null, b: Lane | null, sibling: {curve: Float64Array, kink: number, net: Net} | null, sentences: string[], seconds: number}} Result */

/**
 * Everything for the views. @param {State} s @param {any} file A profile from Python, for networks of that kind.
 * @returns {Result}
 */
export function compute(s, file) {
  const start = performance.now();
  /** @type {string[]} */
  const sentences = [];
  /** @template T @param {string} name @param {() => T} work @returns {T | null} */
  const attempt = (name, work) => {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof Outside)) throw error;
      if (name) sentences.push(`${name}: ${error.message}`);
      return null;
    }
  };
  const a = attempt("Network A", () => lane(s, s.a, null, file));
  const b = s.b && attempt("Network B", () => lane(s, /** @type {Net} */ (s.b), a ? a.t : null, file));
  a?.notes.forEach((n) => sentences.push(s.b ? `Network A: ${n}` : n));
  b?.notes.forEach((n) => sentences.push(`Network B: ${n}`));
  const sibling =
    s.b || s.a.kind === "profile" ? null
    : attempt("", () => {
        /** @type {Net} */
        const net = { ...s.a, kind: s.a.kind === "mlp" ? "resnet" : "mlp" };
        return { net, curve: atAngles(kernels(net, s.tab, file), s.kind, angles), kink: kink(net, s.tab === "sphere" ? 1 / 3 : 1 / 2) };
      });
  return { a, b, sibling, sentences, seconds: (performance.now() - start) / 1000 };
}

// --- the picture of the sphere -------------------------------------------------------------------------------------

/**
 * The interpolant seen from a direction: values on a disc, NaN outside.
 * @param {State} s @param {Net} net @param {Float64Array} dual @param {{lon: number, lat: number, size: number}} view @param {any} file
 */
export function globe(s, net, dual, view, file) {
  const k = kernels(net, "sphere", file);
  // One table of the kernel in v, fine enough for a picture (cubic error below 1e-9).
  const cells = 2048;
  const spots = Float64Array.from({ length: cells + 3 }, (_, i) => {
    const v = Math.min(Math.max((2 * (i - 1)) / cells - 1, -1), 1);
    return 2 * Math.asin(Math.min((Math.sqrt(2 - v * v) + v) / 2, 1));
  });
  const table = atAngles(k, s.kind, spots);
  table[0] = 3 * table[1] - 3 * table[2] + table[3];
  table[cells + 2] = 3 * table[cells + 1] - 3 * table[cells] + table[cells - 1];
  const x = s.points.map((p) => embed("sphere", p));
  const n = x.length, { size } = view;
  const out = new Float32Array(size * size).fill(NaN);
  const { forward, east, north } = frame(view);
  for (let row = 0; row < size; row++) {
    const v = 1 - (2 * (row + 0.5)) / size;
    for (let column = 0; column < size; column++) {
      const u = (2 * (column + 0.5)) / size - 1;
      const rest = 1 - u * u - v * v;
      if (rest < 0) continue;
      const w = Math.sqrt(rest);
      const px = u * east[0] + v * north[0] + w * forward[0];
      const py = u * east[1] + v * north[1] + w * forward[1];
      const pz = u * east[2] + v * north[2] + w * forward[2];
      let total = 0;
      for (let i = 0; i < n; i++) {
        const q = x[i];
        const rho = Math.min(Math.max(px * q[0] + py * q[1] + pz * q[2], -1), 1);
        const place = ((Math.sqrt(1 - rho) - Math.sqrt(1 + rho)) * Math.SQRT1_2 + 1) * (cells / 2);
        const c = Math.min(Math.floor(place), cells - 1), f = place - c;
        const a = table[c], b = table[c + 1], d = table[c + 2], e = table[c + 3];
        // Catmull and Rom's cubic.
        total += dual[i] * (b + (f / 2) * (d - a + f * (2 * a - 5 * b + 4 * d - e + f * (3 * (b - d) + e - a))));
      }
      out[row * size + column] = total;
    }
  }
  return out;
}

/**
 * The two pictures of the sphere: both networks, or both sides of one.
 * @param {boolean} two @param {{lon: number, lat: number}} eye @returns {{of: 0 | 1, lon: number, lat: number, far: boolean}[]}
 */
export function pictures(two, { lon, lat }) {
  return [{ of: 0, lon, lat, far: false }, two ? { of: 1, lon, lat, far: false } : { of: 0, lon: lon + Math.PI, lat: -lat, far: true }];
}

/** The axes of a view of the sphere. @param {{lon: number, lat: number}} view */
export function frame({ lon, lat }) {
  const forward = embed("sphere", [lon, lat]);
  const east = [-Math.sin(lon), Math.cos(lon), 0];
  const north = [-Math.sin(lat) * Math.cos(lon), -Math.sin(lat) * Math.sin(lon), Math.cos(lat)];
  return { forward, east, north };
}

// --- smoothness and phases -----------------------------------------------------------------------------------------

const SAMPLES = 4096;
const MOST_MEASURED = 200; // points; beyond, the measures cost seconds

/** e^-1 I_k(1): the Gaussian kernel's eigenvalues on the circle. @param {number} k */
export function gaussianEigenvalue(k) {
  let term = 1;
  for (let i = 1; i <= k; i++) term *= 0.5 / i;
  let total = 0;
  for (let m = 0; m < 30; m++) {
    total += term;
    term *= 0.25 / ((m + 1) * (m + 1 + k));
    if (term < 1e-18 * total) break;
  }
  return total / Math.E;
}
const FLOORED = Float64Array.from({ length: SAMPLES }, (_, i) => {
  const k = Math.min(i, SAMPLES - i);
  return (k < 140 ? gaussianEigenvalue(k) : 0) + 1e-8 * gaussianEigenvalue(0);
});

/**
 * Both measures of the papers for the interpolant (trained for ever), on 4096 points.
 * @param {State} s @param {Net} net @param {any} file
 */
export function smoothness(s, net, file) {
  const n = s.points.length;
  if (s.tab !== "circle" || !n || n > MOST_MEASURED) return null;
  const k = kernels(net, s.tab, file);
  if (!k.certified) return null;
  const x = s.points.map((p) => embed("circle", p));
  const y = s.points.map((p) => p[1]);
  const c = interpolate(k.matrix(x, x, s.kind, true), n, y);
  const gauss = new Float64Array(n * n);
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) gauss[i * n + j] = Math.exp(Math.cos(s.points[i][0] - s.points[j][0]) - 1);
  const g = interpolate(gauss, n, y);
  const f = new Float64Array(SAMPLES), h = new Float64Array(SAMPLES);
  for (let q = 0; q < SAMPLES; q++) {
    const b = -Math.PI + (2 * Math.PI * q) / SAMPLES;
    for (let i = 0; i < n; i++) {
      const d = b - s.points[i][0];
      f[q] += c[i] * k.profile.atAngle(s.kind, d);
      h[q] += g[i] * Math.exp(Math.cos(d) - 1);
    }
  }
  return { second: secondDerivative(f), gaussian: norm(h) / norm(f) };
}

/** @param {Float64Array} f */
function spectrum(f) {
  const re = f.slice(), im = new Float64Array(f.length);
  fft(re, im);
  return re.map((v, k) => v * v + im[k] * im[k]);
}

/** @param {Float64Array} f */
export function secondDerivative(f) {
  const rms = Math.sqrt(f.reduce((a, v) => a + v * v, 0) / f.length);
  if (!(rms > 0)) return NaN;
  let total = 0;
  spectrum(f).forEach((v, i) => {
    const k = i < f.length / 2 ? i : i - f.length;
    total += k ** 4 * v;
  });
  return Math.sqrt(total) / f.length / rms;
}

/** The floored norm in the Gaussian RKHS. @param {Float64Array} f */
function norm(f) {
  return Math.sqrt(spectrum(f).reduce((a, v, i) => a + v / FLOORED[i], 0)) / f.length;
}

/**
 * chi_1 over the plane of sigma_w and sigma_b for an MLP: rows of sigma_b upwards.
 * @param {string} name @param {number} columns @param {number} rows
 */
export function phases(name, columns, rows) {
  const act = activations.get(name);
  const chi = new Float32Array(columns * rows).fill(NaN);
  if (!act) return { chi, columns, rows };
  for (let r = 0; r < rows; r++) {
    const b = (2 * (r + 0.5)) / rows;
    for (let c = 0; c < columns; c++) {
      const w = (3 * (c + 0.5)) / columns;
      chi[r * columns + c] = chiAt(act, w, b);
    }
  }
  return { chi, columns, rows };
}

/** @param {import("./math/activations.js").Activation} act @param {number} w @param {number} b */
export function chiAt(act, w, b) {
  if (act.homogeneous) return w * w * act.slope2(1);
  let q = 1;
  try {
    for (let i = 0; i < 60; i++) {
      const next = w * w * act.moment(q) + b * b;
      if (Math.abs(next - q) < 1e-7 * q) break;
      q = Math.max(next, 1e-10);
      if (q > 1e6) break;
    }
    return w * w * act.slope2(q);
  } catch (error) {
    if (error instanceof Outside) return NaN;
    throw error;
  }
}
