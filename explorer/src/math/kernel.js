// The kernels of a network of infinite width, layer by layer, in the state of the library's `infinite/_pair.py`:
// variances, 1 - rho, 1 + rho, and the tangent kernel over sqrt(q1 q2).

import { activations, chebyshev, out, Outside } from "./activations.js";

/**
 * A network of the page's family.
 * @typedef {object} Net
 * @property {"mlp" | "resnet" | "profile"} kind
 * @property {string} act Its activation's name in Python.
 * @property {number} depth L.
 * @property {number} w sigma_w. @property {number} b sigma_b.
 * @property {number} alpha The attenuation of residual branches; without meaning for an MLP.
 */
/** @typedef {"ntk" | "nngp"} Kind */
/**
 * Pairs of inputs: `q` by input, the rest by pair, `i` and `j` the inputs of a pair.
 * @typedef {object} Pairs
 * @property {Float64Array} q @property {Uint16Array} i @property {Uint16Array} j
 * @property {Float64Array} minus @property {Float64Array} plus @property {Float64Array} ntk
 */

const LARGEST = 1e306;

/** @param {number} part @param {number} total */
const share = (part, total) => (part > 0 ? Math.sqrt(Math.min(part, LARGEST) / Math.min(total, LARGEST)) : 0);

/** @param {Pairs} s @param {number} factor */
function scaled(s, factor) {
  for (let k = 0; k < s.q.length; k++) s.q[k] = factor * (factor * s.q[k]);
}

/** sigma_w W x/sqrt(n) + sigma_b b, trained. @param {Pairs} s @param {number} w @param {number} b */
function dense(s, w, b) {
  if (w !== 1) scaled(s, w);
  const { q, i, j, minus, plus, ntk } = s;
  if (b !== 0) {
    const n = q.length;
    const a = new Float64Array(n), c = new Float64Array(n);
    for (let k = 0; k < n; k++) {
      const total = q[k] + b * b;
      a[k] = share(q[k], total);
      c[k] = b / Math.sqrt(total);
      q[k] = total;
    }
    for (let k = 0; k < minus.length; k++) {
      const a1 = a[i[k]], a2 = a[j[k]], c1 = c[i[k]], c2 = c[j[k]];
      const weight = a1 * a2;
      const gap = ((a1 - a2) ** 2 + (c1 - c2) ** 2) / 2;
      minus[k] = weight * minus[k] + gap;
      plus[k] = weight * plus[k] + 2 * c1 * c2 + gap;
      ntk[k] *= weight;
    }
  }
  for (let k = 0; k < minus.length; k++) ntk[k] += (plus[k] - minus[k]) / 2;
}

/** @param {Pairs} s @param {import("./activations.js").Activation} act */
function activate(s, act) {
  const { q, i, j, minus, plus, ntk } = s;
  const t = q.map((v) => act.moment(v));
  for (let k = 0; k < minus.length; k++) {
    const a = i[k], b = j[k];
    act.transform(q[a], q[b], minus[k], plus[k], t[a], t[b]);
    minus[k] = out[0];
    plus[k] = out[1];
    ntk[k] *= out[2];
  }
  q.set(t);
}

/** @param {Pairs} s @returns {Pairs} */
const copy = (s) => ({
  q: s.q.slice(), i: s.i, j: s.j, minus: s.minus.slice(), plus: s.plus.slice(), ntk: s.ntk.slice(),
});

/** s + alpha r for independent parts, into s. @param {Pairs} s @param {Pairs} r @param {number} alpha */
function add(s, r, alpha) {
  if (alpha !== 1) scaled(r, alpha);
  const n = s.q.length;
  const a = new Float64Array(n), c = new Float64Array(n);
  for (let k = 0; k < n; k++) {
    const total = s.q[k] + r.q[k];
    a[k] = share(s.q[k], total);
    c[k] = share(r.q[k], total);
    s.q[k] = total;
  }
  for (let k = 0; k < s.minus.length; k++) {
    const a1 = a[s.i[k]], a2 = a[s.j[k]], c1 = c[s.i[k]], c2 = c[s.j[k]];
    const u = a1 * a2, v = c1 * c2;
    const gap = ((a1 - a2) ** 2 + (c1 - c2) ** 2) / 2;
    s.minus[k] = u * s.minus[k] + v * r.minus[k] + gap;
    s.plus[k] = u * s.plus[k] + v * r.plus[k] + gap;
    s.ntk[k] = u * s.ntk[k] + v * r.ntk[k];
  }
}

/** All layers of a network, into the pairs. @param {Net} net @param {Pairs} s */
export function run(net, s) {
  const act = activations.get(net.act);
  if (!act) throw new Outside(`The activation ${net.act} is not known here.`);
  if (net.kind === "mlp") {
    for (let l = 0; l < net.depth; l++) {
      dense(s, net.w, net.b);
      activate(s, act);
    }
  } else {
    dense(s, 1, 0);
    for (let l = 0; l < net.depth; l++) {
      const branch = copy(s);
      dense(branch, net.w, net.b);
      activate(branch, act);
      dense(branch, 1, 0);
      add(s, branch, net.alpha);
    }
  }
  dense(s, net.w, net.b);
}

/** The kernels of pairs after `run`. @param {Pairs} s @param {number} k @param {Kind} kind */
export function value(s, k, kind) {
  const size = Math.sqrt(s.q[s.i[k]]) * Math.sqrt(s.q[s.j[k]]);
  if (size === 0) return 0;
  return size * (kind === "ntk" ? s.ntk[k] : (s.plus[k] - s.minus[k]) / 2);
}

/**
 * Kernel values of pairs of points of the plane, layer by layer.
 * @param {Net} net @param {ArrayLike<number>[]} x @param {[number, number][]} pairs Indices into x.
 * @returns {{ntk: Float64Array, nngp: Float64Array}}
 */
export function layered(net, x, pairs) {
  const d = x.length ? x[0].length : 2;
  const q = new Float64Array(x.length);
  const unit = x.map((p, k) => {
    let square = 0;
    for (let c = 0; c < d; c++) square += p[c] * p[c];
    q[k] = square / d;
    const norm = Math.sqrt(square);
    return Float64Array.from(p, (v) => (norm > 0 ? v / norm : 0));
  });
  const n = pairs.length;
  /** @type {Pairs} */
  const s = {
    q, i: new Uint16Array(n), j: new Uint16Array(n),
    minus: new Float64Array(n), plus: new Float64Array(n), ntk: new Float64Array(n),
  };
  pairs.forEach(([a, b], k) => {
    let minus = 0, plus = 0;
    for (let c = 0; c < d; c++) {
      minus += (unit[a][c] - unit[b][c]) ** 2;
      plus += (unit[a][c] + unit[b][c]) ** 2;
    }
    const noise = (4 * 2 ** -52) ** 2;
    s.i[k] = a;
    s.j[k] = b;
    const none = q[a] === 0 || q[b] === 0;
    s.minus[k] = none ? 1 : minus < noise ? 0 : minus / 2;
    s.plus[k] = none ? 1 : plus < noise ? 0 : plus / 2;
  });
  run(net, s);
  const ntk = new Float64Array(n), nngp = new Float64Array(n);
  for (let k = 0; k < n; k++) {
    ntk[k] = value(s, k, "ntk");
    nngp[k] = value(s, k, "nngp");
  }
  return { ntk, nngp };
}

// --- the kernel as a function of the angle: the library's `infinite/_profile.py` ----------------------------------

const NODES = 256;
const SHIFTS = [0, 0.2, 0.4, 0.6, 0.8, -0.2, -0.4, -0.6, -0.8];

/** @typedef {{shift: number, coefficients: Float64Array, error: number}} Series */

/** 1 - rho and 1 + rho at the Chebyshev nodes of each shift, exact at both ends. */
const nodes = (() => {
  const minus = new Float64Array(SHIFTS.length * NODES);
  const plus = new Float64Array(SHIFTS.length * NODES);
  SHIFTS.forEach((shift, row) => {
    for (let k = 0; k < NODES; k++) {
      const half = (Math.PI * (k + 0.5)) / NODES / 2;
      const up = 2 * Math.cos(half) ** 2, down = 2 * Math.sin(half) ** 2;
      const scale = 1 - shift * (up - 1);
      const vUp = ((1 - shift) * up) / scale, vDown = ((1 + shift) * down) / scale;
      const v = vUp - 1;
      const root = Math.sqrt(2 - v * v);
      const sine = v < 0 ? (vUp * vDown) / (root - v) : (root + v) / 2;
      const cosine = v < 0 ? (root - v) / 2 : (vUp * vDown) / (root + v);
      minus[row * NODES + k] = 2 * sine * sine;
      plus[row * NODES + k] = 2 * cosine * cosine;
    }
  });
  return { minus, plus };
})();

const COSINES = Float64Array.from({ length: 4 * NODES }, (_, k) => Math.cos((Math.PI * k) / (2 * NODES)));

/** @param {Float64Array} values At the nodes of one shift. @param {number} shift @param {number} scale @returns {Series} */
function chop(values, shift, scale) {
  const c = new Float64Array(NODES);
  for (let n = 0; n < NODES; n++) {
    let total = 0;
    for (let k = 0; k < NODES; k++) total += values[k] * COSINES[(n * (2 * k + 1)) % (4 * NODES)];
    c[n] = ((n ? 2 : 1) / NODES) * total;
  }
  let plateau = 0;
  for (let n = NODES - NODES / 8; n < NODES; n++) plateau = Math.max(plateau, Math.abs(c[n]));
  const floor = Math.max(1e-15 * scale, 2 * plateau);
  let terms = NODES;
  while (terms > 1 && Math.abs(c[terms - 1]) <= floor) terms--;
  let error = 0;
  for (let n = terms; n < NODES; n++) error += Math.abs(c[n]);
  return { shift, coefficients: c.slice(0, terms), error: error / scale };
}

/** A kernel as a function of the angle between inputs of one norm (or any, if it is homogeneous). */
export class Profile {
  /** @param {number} scale K(x, x) @param {Series} nngp @param {Series} ntk @param {number} variance |x|^2/d */
  constructor(scale, nngp, ntk, variance) {
    this.scale = scale;
    this.series = { nngp, ntk };
    this.variance = variance;
    this.error = Math.max(nngp.error, ntk.error);
  }

  /** Count what the series misses at equal inputs, where a chaotic network has a spike. @param {number} ntk Over K(x, x). */
  withPeak(ntk) {
    const miss = (/** @type {Kind} */ kind, /** @type {number} */ exact) =>
      exact === 0 ? 0 : Math.abs(this.atAngle(kind, 0) / (this.scale || 1) - exact) / Math.abs(exact);
    this.error = Math.max(this.error, this.scale > 0 ? miss("ntk", ntk) : 0, this.scale > 0 ? miss("nngp", 1) : 0);
    return this;
  }

  /** @param {Kind} kind @param {number} minus 1 - rho @param {number} plus 1 + rho */
  at(kind, minus, plus) {
    const { shift, coefficients } = this.series[kind];
    const v = (Math.sqrt(minus) - Math.sqrt(plus)) * Math.SQRT1_2;
    return this.scale * chebyshev(coefficients, (v + shift) / (1 + shift * v));
  }

  /** @param {Kind} kind @param {number} angle */
  atAngle(kind, angle) {
    return this.at(kind, 2 * Math.sin(angle / 2) ** 2, 2 * Math.cos(angle / 2) ** 2);
  }

  /** What `Profile.to_json` of Python wrote. @param {any} file */
  static fromJSON(file) {
    if (!file || file.schema !== "widelimit.profile/1") {
      throw new Outside(`A profile of the schema widelimit.profile/1 was expected, got ${file && file.schema}.`);
    }
    /** @param {any} s @returns {Series} */
    const series = (s) => {
      const c = Float64Array.from(s.coefficients);
      if (!c.length || !c.every(Number.isFinite) || !(Math.abs(s.shift) < 1)) {
        throw new Outside("The profile's coefficients are not numbers.");
      }
      return { shift: s.shift, coefficients: c, error: s.error };
    };
    return new Profile(file.scale, series(file.nngp), series(file.ntk), file.variance);
  }
}

/** The profile with the nodes of one shift. @param {Net} net @param {number} variance @param {number} row */
function shifted(net, variance, row) {
  const n = NODES + 1;
  /** @type {Pairs} */
  const s = {
    q: Float64Array.of(variance), i: new Uint16Array(n), j: new Uint16Array(n),
    minus: new Float64Array(n), plus: new Float64Array(n), ntk: new Float64Array(n),
  };
  s.minus.set(nodes.minus.subarray(row * NODES, (row + 1) * NODES));
  s.plus.set(nodes.plus.subarray(row * NODES, (row + 1) * NODES));
  s.plus[NODES] = 2;
  run(net, s);
  const rho = s.minus.map((m, k) => (s.plus[k] - m) / 2);
  const size = (/** @type {Float64Array} */ a) => a.reduce((x, v) => Math.max(x, Math.abs(v)), 0) || 1;
  const nngp = chop(rho.subarray(0, NODES), SHIFTS[row], size(rho));
  const ntk = chop(s.ntk.subarray(0, NODES), SHIFTS[row], size(s.ntk));
  return new Profile(s.q[0], nngp, ntk, variance).withPeak(s.ntk[NODES]);
}

let lucky = 0; // the shift that served last: neighbours on a slider share it

/**
 * The profile of a network: the shortest series that is certified to 1e-13, or the best that there is.
 * @param {Net} net @param {number} variance |x|^2/d
 */
export function profile(net, variance) {
  const terms = (/** @type {Profile} */ p) => p.series.ntk.coefficients.length + p.series.nngp.coefficients.length;
  const cost = (/** @type {Profile} */ p) => (p.error < 1e-13 ? terms(p) : 1000 + Math.log(p.error));
  let best = shifted(net, variance, lucky);
  for (let row = 0; row < SHIFTS.length && cost(best) > 210; row++) {
    if (row === lucky) continue;
    const found = shifted(net, variance, row);
    if (cost(found) < cost(best)) best = found;
  }
  lucky = SHIFTS.indexOf(best.series.ntk.shift);
  return best;
}

/** Whether a kernel depends on norms by a factor only. @param {Net} net */
export function scaleFree(net) {
  return net.kind !== "profile" && net.b === 0 && !!activations.get(net.act)?.homogeneous;
}
