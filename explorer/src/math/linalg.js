// Symmetric matrices, row by row in a Float64Array.

/**
 * Eigenvalues in rising order and eigenvectors as columns, by Householder's reduction and implicit QL.
 * @param {Float64Array} matrix n x n, symmetric; kept. @param {number} n
 * @returns {{values: Float64Array, vectors: Float64Array}} vectors[i * n + k]: component i of vector k.
 */
export function eigh(matrix, n) {
  const a = matrix.slice();
  const d = new Float64Array(n), e = new Float64Array(n);
  for (let i = n - 1; i > 0; i--) {
    let h = 0, scale = 0;
    const ri = i * n;
    if (i > 1) {
      for (let k = 0; k < i; k++) scale += Math.abs(a[ri + k]);
      if (scale === 0) e[i] = a[ri + i - 1];
      else {
        for (let k = 0; k < i; k++) {
          a[ri + k] /= scale;
          h += a[ri + k] * a[ri + k];
        }
        let f = a[ri + i - 1];
        let g = f >= 0 ? -Math.sqrt(h) : Math.sqrt(h);
        e[i] = scale * g;
        h -= f * g;
        a[ri + i - 1] = f - g;
        f = 0;
        for (let j = 0; j < i; j++) {
          const rj = j * n;
          a[rj + i] = a[ri + j] / h;
          g = 0;
          for (let k = 0; k <= j; k++) g += a[rj + k] * a[ri + k];
          for (let k = j + 1; k < i; k++) g += a[k * n + j] * a[ri + k];
          e[j] = g / h;
          f += e[j] * a[ri + j];
        }
        const hh = f / (h + h);
        for (let j = 0; j < i; j++) {
          f = a[ri + j];
          g = e[j] - hh * f;
          e[j] = g;
          const rj = j * n;
          for (let k = 0; k <= j; k++) a[rj + k] -= f * e[k] + g * a[ri + k];
        }
      }
    } else e[i] = a[ri + i - 1];
    d[i] = h;
  }
  d[0] = 0;
  e[0] = 0;
  for (let i = 0; i < n; i++) {
    const ri = i * n;
    if (d[i] !== 0) {
      for (let j = 0; j < i; j++) {
        let g = 0;
        for (let k = 0; k < i; k++) g += a[ri + k] * a[k * n + j];
        for (let k = 0; k < i; k++) a[k * n + j] -= g * a[k * n + i];
      }
    }
    d[i] = a[ri + i];
    a[ri + i] = 1;
    for (let j = 0; j < i; j++) a[j * n + i] = a[ri + j] = 0;
  }
  // Rows of `v` are vectors: rotations then run along the memory.
  const v = new Float64Array(n * n);
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) v[j * n + i] = a[i * n + j];
  for (let i = 1; i < n; i++) e[i - 1] = e[i];
  e[n - 1] = 0;
  for (let l = 0; l < n; l++) {
    for (let rounds = 0; rounds < 60; rounds++) {
      let m = l;
      for (; m < n - 1; m++) {
        const dd = Math.abs(d[m]) + Math.abs(d[m + 1]);
        if (Math.abs(e[m]) <= 2 ** -53 * dd) break;
      }
      if (m === l) break;
      let g = (d[l + 1] - d[l]) / (2 * e[l]);
      let r = Math.hypot(g, 1);
      g = d[m] - d[l] + e[l] / (g + (g >= 0 ? r : -r));
      let s = 1, c = 1, p = 0, i = m - 1;
      for (; i >= l; i--) {
        let f = s * e[i];
        const b = c * e[i];
        r = Math.hypot(f, g);
        e[i + 1] = r;
        if (r === 0) {
          d[i + 1] -= p;
          e[m] = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        const low = i * n, high = low + n;
        for (let k = 0; k < n; k++) {
          f = v[high + k];
          v[high + k] = s * v[low + k] + c * f;
          v[low + k] = c * v[low + k] - s * f;
        }
      }
      if (r === 0 && i >= l) continue;
      d[l] -= p;
      e[l] = g;
      e[m] = 0;
    }
  }
  const order = Array.from(d.keys()).sort((x, y) => d[x] - d[y]);
  const vectors = new Float64Array(n * n);
  order.forEach((from, k) => {
    for (let i = 0; i < n; i++) vectors[i * n + k] = v[from * n + i];
  });
  return { values: Float64Array.from(order, (k) => Math.max(d[k], 0)), vectors };
}

/**
 * The lower factor, or null where the matrix is not positive definite to rounding.
 * @param {Float64Array} matrix @param {number} n
 */
export function cholesky(matrix, n) {
  const l = matrix.slice();
  for (let j = 0; j < n; j++) {
    for (let i = j; i < n; i++) {
      let total = l[i * n + j];
      for (let k = 0; k < j; k++) total -= l[i * n + k] * l[j * n + k];
      if (i === j) {
        if (!(total > 0)) return null;
        l[j * n + j] = Math.sqrt(total);
      } else l[i * n + j] = total / l[j * n + j];
    }
  }
  return l;
}

/** @param {Float64Array} l @param {number} n @param {ArrayLike<number>} b */
export function solve(l, n, b) {
  const x = Float64Array.from(b);
  for (let i = 0; i < n; i++) {
    let total = x[i];
    for (let k = 0; k < i; k++) total -= l[i * n + k] * x[k];
    x[i] = total / l[i * n + i];
  }
  for (let i = n - 1; i >= 0; i--) {
    let total = x[i];
    for (let k = i + 1; k < n; k++) total -= l[k * n + i] * x[k];
    x[i] = total / l[i * n + i];
  }
  return x;
}

/**
 * A factor of a semidefinite matrix: columns whose pivot is rounding are left out.
 * @param {Float64Array} matrix @param {number} n
 */
export function root(matrix, n) {
  const l = new Float64Array(n * n);
  let top = 0;
  for (let i = 0; i < n; i++) top = Math.max(top, matrix[i * n + i]);
  for (let j = 0; j < n; j++) {
    let pivot = matrix[j * n + j];
    for (let k = 0; k < j; k++) pivot -= l[j * n + k] ** 2;
    if (!(pivot > 1e-11 * top)) continue;
    const r = Math.sqrt(pivot);
    l[j * n + j] = r;
    for (let i = j + 1; i < n; i++) {
      let total = matrix[i * n + j];
      for (let k = 0; k < j; k++) total -= l[i * n + k] * l[j * n + k];
      l[i * n + j] = total / r;
    }
  }
  return l;
}

/** In place, length a power of two. @param {Float64Array} re @param {Float64Array} im */
export function fft(re, im) {
  const n = re.length;
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [re[i], re[j]] = [re[j], re[i]];
      [im[i], im[j]] = [im[j], im[i]];
    }
  }
  for (let size = 2; size <= n; size *= 2) {
    const half = size / 2;
    for (let k = 0; k < half; k++) {
      const c = Math.cos((2 * Math.PI * k) / size), s = -Math.sin((2 * Math.PI * k) / size);
      for (let i = k; i < n; i += size) {
        const j = i + half;
        const a = re[j] * c - im[j] * s, b = re[j] * s + im[j] * c;
        re[j] = re[i] - a;
        im[j] = im[i] - b;
        re[i] += a;
        im[i] += b;
      }
    }
  }
}
