// The finite twin: the same network with n real neurons in each layer, trained by gradient descent from its own
// random start, beside the infinite network that starts from the same function.

import { activations } from "./math/activations.js";
import { Spectral, times } from "./math/flow.js";
import { layered } from "./math/kernel.js";
import { embed, random } from "./state.js";

/** @typedef {import("./math/kernel.js").Net} Net */
/** @typedef {import("./state.js").State} State */

export const SPOTS = 61; // where functions are compared
const STEPS = 240;
const SNAPSHOTS = 36;

/** @param {"circle" | "line"} tab */
export const places = (tab) => {
  const reach = tab === "circle" ? Math.PI : 3;
  return Float64Array.from({ length: SPOTS }, (_, k) => -reach + (2 * reach * k) / (SPOTS - 1));
};

/** A trained weight matrix in NTK parameterisation: z = scale W x/sqrt(n) + bias b. */
class Dense {
  /** @param {number} from @param {number} to @param {number} scale @param {number} bias @param {() => number} normal */
  constructor(from, to, scale, bias, normal) {
    this.from = from;
    this.to = to;
    this.factor = scale / Math.sqrt(from);
    this.bias = bias;
    this.w = Float32Array.from({ length: from * to }, normal);
    this.b = Float32Array.from({ length: to }, bias ? normal : () => 0);
    /** @type {Float32Array} */
    this.x = new Float32Array(0);
  }

  /** @param {Float32Array} x m x from @param {number} m */
  forward(x, m) {
    const { from, to, w, b, factor, bias } = this;
    this.x = x;
    const z = new Float32Array(m * to);
    for (let i = 0; i < m; i++) {
      for (let o = 0; o < to; o++) {
        let t0 = 0, t1 = 0, t2 = 0, t3 = 0;
        const row = o * from, at = i * from;
        let k = 0;
        for (; k + 3 < from; k += 4) {
          t0 += w[row + k] * x[at + k];
          t1 += w[row + k + 1] * x[at + k + 1];
          t2 += w[row + k + 2] * x[at + k + 2];
          t3 += w[row + k + 3] * x[at + k + 3];
        }
        for (; k < from; k++) t0 += w[row + k] * x[at + k];
        z[i * to + o] = factor * (t0 + t1 + t2 + t3) + bias * b[o];
      }
    }
    return z;
  }

  /** The gradient of the input; takes a step of descent. @param {Float32Array} dz @param {number} m @param {number} rate */
  backward(dz, m, rate) {
    const { from, to, w, b, x, factor, bias } = this;
    const dx = new Float32Array(m * from);
    for (let o = 0; o < to; o++) {
      const row = o * from;
      for (let i = 0; i < m; i++) {
        const g = factor * dz[i * to + o], at = i * from;
        if (g === 0) continue;
        for (let k = 0; k < from; k++) dx[at + k] += g * w[row + k];
      }
      for (let i = 0; i < m; i++) {
        const g = rate * factor * dz[i * to + o], at = i * from;
        if (g === 0) continue;
        for (let k = 0; k < from; k++) w[row + k] -= g * x[at + k];
        b[o] -= rate * bias * dz[i * to + o];
      }
    }
    return dx;
  }
}

/** @param {Float32Array} z @param {(x: number) => number} fn */
const apply = (z, fn) => {
  const out = new Float32Array(z.length);
  for (let i = 0; i < z.length; i++) out[i] = fn(z[i]);
  return out;
};

/** One finite network. */
export class Twin {
  /** @param {Net} net @param {number} width @param {number} inputs @param {number} seed */
  constructor(net, width, inputs, seed) {
    const { normal } = random(seed);
    const act = activations.get(net.act);
    if (!act) throw new Error(net.act);
    this.act = act;
    this.net = net;
    const { w, b, depth } = net;
    this.first = net.kind === "resnet" ? new Dense(inputs, width, 1, 0, normal) : null;
    /** @type {Dense[]} */
    this.inner = [];
    /** @type {Dense[]} */
    this.outer = [];
    for (let l = 0; l < depth; l++) {
      this.inner.push(new Dense(l || this.first ? width : inputs, width, w, b, normal));
      if (this.first) this.outer.push(new Dense(width, width, 1, 0, normal));
    }
    this.last = new Dense(width, 1, w, b, normal);
    /** @type {Float32Array[]} */
    this.pre = [];
  }

  /** @param {Float32Array} x @param {number} m */
  forward(x, m) {
    const { alpha } = this.net;
    let h = this.first ? this.first.forward(x, m) : x;
    this.pre = [];
    this.inner.forEach((dense, l) => {
      const z = dense.forward(h, m);
      this.pre.push(z);
      const f = apply(z, this.act.fn);
      if (!this.first) h = f;
      else {
        const r = this.outer[l].forward(f, m);
        h = h.map((v, i) => v + alpha * r[i]);
      }
    });
    return this.last.forward(h, m);
  }

  /** One step after `forward`. @param {Float32Array} error f - y @param {number} m @param {number} rate @param {boolean} lastOnly Whether only the last layer is trained. */
  step(error, m, rate, lastOnly) {
    const { alpha } = this.net;
    let d = this.last.backward(error, m, rate);
    if (lastOnly) return;
    for (let l = this.inner.length - 1; l >= 0; l--) {
      const slope = apply(this.pre[l], this.act.prime);
      if (!this.first) d = this.inner[l].backward(d.map((v, i) => v * slope[i]), m, rate);
      else {
        const r = this.outer[l].backward(d.map((v) => alpha * v), m, rate);
        const back = this.inner[l].backward(r.map((v, i) => v * slope[i]), m, rate);
        d = d.map((v, i) => v + back[i]);
      }
    }
    if (this.first) this.first.backward(d, m, rate);
  }
}

/** The kernel between the places and the data, and of the data: that of what is trained. @param {State} s */
function limit(s) {
  const tab = /** @type {"circle" | "line"} */ (s.tab);
  const x = s.points.map((p) => embed(tab, p)), at = Array.from(places(tab), (v) => embed(tab, [v]));
  const n = x.length;
  /** @type {[number, number][]} */
  const pairs = [];
  for (let i = 0; i < n + SPOTS; i++) for (let j = 0; j < n; j++) pairs.push([i, j]);
  const found = layered(s.a, [...x, ...at], pairs)[s.kind];
  return { gram: found.slice(0, n * n), cross: found.slice(n * n) };
}

/**
 * @typedef {{width: number, seed: number, done: number, rate: number, times: number[], finite: Float64Array[],
 *   limit: Float64Array[], gap: number[], diverged: boolean}} Run
 */

/**
 * Train twins of several widths and seeds; tells of each as it goes.
 * @param {State} s @param {number[]} widths @param {number} seeds
 * @param {(run: Run) => void} tell @param {() => boolean} stopped Asked between steps. @param {() => Promise<void>} rest
 */
export async function train(s, widths, seeds, tell, stopped, rest) {
  const tab = /** @type {"circle" | "line"} */ (s.tab);
  const n = s.points.length;
  const { gram, cross } = limit(s);
  const spectral = new Spectral(gram, n);
  const top = spectral.values[n - 1];
  const rate = 0.4 / top;
  const x = new Float32Array(s.points.flatMap((p) => embed(tab, p)));
  const y = Float64Array.from(s.points, (p) => p[1]);
  const at = new Float32Array(Array.from(places(tab)).flatMap((v) => embed(tab, [v])));
  const shots = new Set(Array.from({ length: SNAPSHOTS }, (_, k) => Math.round(STEPS ** (k / (SNAPSHOTS - 1)))));
  shots.add(0);
  for (const width of widths) {
    for (let seed = 0; seed < seeds; seed++) {
      const twin = new Twin(s.a, width, 2, s.seed * 7919 + seed * 31 + width);
      const start = Float64Array.from(twin.forward(at, SPOTS));
      const data = Float64Array.from(twin.forward(x, n));
      const inner = spectral.project(y.map((v, i) => v - data[i]));
      /** @type {Run} */
      const run = { width, seed, done: 0, rate, times: [], finite: [], limit: [], gap: [], diverged: false };
      let clock = performance.now();
      for (let step = 0; step <= STEPS; step++) {
        if (shots.has(step)) {
          const finite = Float64Array.from(twin.forward(at, SPOTS));
          // Descent in closed form: phi = (1 - (1 - rate lambda)^k)/lambda.
          const c = new Float64Array(n);
          for (let k = 0; k < n; k++) {
            const v = spectral.values[k];
            const phi = v > 0 ? -Math.expm1(step * Math.log1p(-rate * v)) / v : step * rate;
            for (let i = 0; i < n; i++) c[i] += spectral.vectors[i * n + k] * phi * inner[k];
          }
          const moved = times(cross, n, c).map((v, i) => v + start[i]);
          const gap = Math.sqrt(moved.reduce((a, v, i) => a + (v - finite[i]) ** 2, 0) / SPOTS);
          if (!Number.isFinite(gap) || gap > 1e6) {
            run.diverged = true;
            break;
          }
          run.times.push(step * rate);
          run.finite.push(finite);
          run.limit.push(moved);
          run.gap.push(gap);
        }
        if (step < STEPS) {
          const f = twin.forward(x, n);
          twin.step(f.map((v, i) => v - y[i]), n, rate, s.kind === "nngp");
        }
        if (performance.now() - clock > 120) {
          run.done = step / STEPS;
          tell(run);
          await rest();
          if (stopped()) return;
          clock = performance.now();
        }
      }
      run.done = 1;
      tell(run);
      await rest();
      if (stopped()) return;
    }
  }
}
