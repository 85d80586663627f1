// Gradient flow of the infinite network in closed form: f_t = f_0 + k(x) phi(Theta) (y - f_0(X)).

import { cholesky, eigh, solve } from "./linalg.js";

/** The spectrum of a Gram matrix, and what training does in each of its directions. */
export class Spectral {
  /** @param {Float64Array} gram @param {number} n */
  constructor(gram, n) {
    this.gram = gram;
    this.n = n;
    const { values, vectors } = eigh(gram, n);
    this.values = values;
    this.vectors = vectors;
    /** Eigenvalues below this are rounding. */
    this.noise = n ? n * 2 ** -52 * values[n - 1] : 0;
    this.rank = values.reduce((k, v) => k + (v > this.noise ? 1 : 0), 0);
    /** @type {Float64Array | null | undefined} */
    this.factor = undefined;
  }

  /** phi at each eigenvalue; for ever, what rounding hides has weight 0. @param {number} t */
  phi(t) {
    return this.values.map((v) => {
      const known = v > this.noise;
      if (t === Infinity) return known ? 1 / v : 0;
      if (!known && t * this.noise >= 1) return 0;
      return v * t > 1e-20 ? -Math.expm1(-v * t) / v : t;
    });
  }

  /** phi(Theta) e: the coefficients of the kernels. @param {number} t @param {ArrayLike<number>} e */
  dual(t, e) {
    const { n, vectors } = this;
    if (t === Infinity && n) {
      if (this.factor === undefined) this.factor = this.rank === n ? cholesky(this.gram, n) : null;
      if (this.factor) return solve(this.factor, n, e);
    }
    const phi = this.phi(t);
    const inner = this.project(e);
    const c = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      let total = 0;
      for (let k = 0; k < n; k++) total += vectors[i * n + k] * phi[k] * inner[k];
      c[i] = total;
    }
    return c;
  }

  /** Components of a vector in the eigen-directions. @param {ArrayLike<number>} e */
  project(e) {
    const { n, vectors } = this;
    const inner = new Float64Array(n);
    for (let i = 0; i < n; i++) for (let k = 0; k < n; k++) inner[k] += vectors[i * n + k] * e[i];
    return inner;
  }

  /** phi(Theta) as a matrix. @param {number} t */
  operator(t) {
    const { n, vectors } = this;
    const phi = this.phi(t);
    const m = new Float64Array(n * n);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        let total = 0;
        for (let k = 0; k < n; k++) total += vectors[i * n + k] * phi[k] * vectors[j * n + k];
        m[i * n + j] = m[j * n + i] = total;
      }
    }
    return m;
  }
}

/**
 * The interpolant's coefficients alone: by a factor where the matrix is far from singular, which is quicker.
 * @param {Float64Array} gram @param {number} n @param {ArrayLike<number>} y
 */
export function interpolate(gram, n, y) {
  const factor = cholesky(gram, n);
  if (factor) {
    let low = Infinity, high = 0;
    for (let i = 0; i < n; i++) {
      low = Math.min(low, factor[i * n + i]);
      high = Math.max(high, factor[i * n + i]);
    }
    if ((low / high) ** 2 > 100 * n * 2 ** -52) return solve(factor, n, y);
  }
  return new Spectral(gram, n).dual(Infinity, y);
}

/** rows x n times n. @param {Float64Array} cross @param {number} n @param {Float64Array} c */
export function times(cross, n, c) {
  const rows = n ? cross.length / n : 0;
  const f = new Float64Array(rows);
  for (let i = 0; i < rows; i++) {
    let total = 0;
    for (let k = 0; k < n; k++) total += cross[i * n + k] * c[k];
    f[i] = total;
  }
  return f;
}
