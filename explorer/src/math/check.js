// The page's own code against numbers written by Python: run in Node by the tests, in Chromium through the page.

import { kink, smoothness } from "../engine.js";
import { activations } from "./activations.js";
import { Spectral, times } from "./flow.js";
import { layered, profile } from "./kernel.js";

/** @param {number} b */
const point = (b) => [Math.cos(b), Math.sin(b)];

/**
 * The largest errors, relative to the largest value of each kernel and prediction.
 * @param {any} golden
 */
export function errors(golden) {
  const worst = { closed: 0, table: 0, profile: 0, flow: 0, measures: 0, kernels: 0, predictions: 0 };
  /** @param {"closed" | "table" | "profile" | "flow"} which @param {ArrayLike<number>} found @param {number[]} expected */
  const compare = (which, found, expected) => {
    const size = Math.max(...expected.map(Math.abs), 1e-300);
    expected.forEach((e, k) => {
      const error = Math.abs(found[k] - e) / size;
      worst[which] = error <= worst[which] ? worst[which] : error;
    });
  };
  for (const k of golden.kernels) {
    const which = activations.get(k.net.act)?.table ? "table" : "closed";
    const x = [point(0), ...golden.angle.map(point)];
    /** @type {[number, number][]} */
    const pairs = golden.angle.map((/** @type {number} */ _, /** @type {number} */ i) => [0, i + 1]);
    const found = layered(k.net, x, pairs);
    const curve = profile(k.net, 0.5);
    for (const kind of /** @type {const} */ (["ntk", "nngp"])) {
      compare(which, found[kind], k[kind]);
      if (curve.error < 1e-13) {
        compare(which === "table" ? "table" : "profile", golden.angle.map((/** @type {number} */ a) => curve.atAngle(kind, a)), k[kind]);
      }
      worst.kernels += k[kind].length;
    }
    if (k.line) {
      const line = layered(k.net, golden.line, golden.line.map((/** @type {number} */ _, /** @type {number} */ i) => [0, i]));
      compare("closed", line.ntk, k.line);
      worst.kernels += k.line.length;
    }
  }
  for (const f of golden.flows) {
    const n = f.b.length;
    const kernel = profile(f.net, 0.5);
    const gram = new Float64Array(n * n);
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) gram[i * n + j] = kernel.atAngle("ntk", f.b[i] - f.b[j]);
    const spectral = new Spectral(gram, n);
    const cross = new Float64Array(f.test.length * n);
    f.test.forEach((/** @type {number} */ a, /** @type {number} */ i) => {
      for (let j = 0; j < n; j++) cross[i * n + j] = kernel.atAngle("ntk", a - f.b[j]);
    });
    f.t.forEach((/** @type {number | null} */ t, /** @type {number} */ k) => {
      compare("flow", times(cross, n, spectral.dual(t ?? Infinity, f.y)), f.f[k]);
      worst.predictions += f.f[k].length;
    });
  }
  for (const m of golden.measures) {
    const state = /** @type {any} */ ({ tab: "circle", kind: "ntk", points: m.points });
    const found = smoothness(state, m.net, null);
    const values = [kink(m.net, 0.5), found?.second, found?.gaussian];
    [m.kink, m.second, m.gaussian].forEach((e, i) => {
      const error = Math.abs((values[i] ?? NaN) - e) / Math.max(Math.abs(e), 1e-3);
      worst.measures = error <= worst.measures ? worst.measures : error;
    });
  }
  return worst;
}
