// What one layer of infinitely many neurons does to a pair of inputs, for every activation of the page.
//
// Everything is written through 1 - rho and 1 + rho, as in the library's `activations/`: nothing cancels at
// x = x' or x = -x'. A transform writes 1 - rho', 1 + rho' and the slope d rho'/d rho to `out`.

/** @type {Float64Array} The answer of a transform: 1 - rho', 1 + rho', slope. */
export const out = new Float64Array(3);

/**
 * @typedef {object} Activation
 * @property {string} name As in Python.
 * @property {string} label For people.
 * @property {string} latex phi(x).
 * @property {(q: number) => number} moment E[phi(sqrt(q) z)^2].
 * @property {(q: number) => number} slope2 E[phi'(sqrt(q) z)^2].
 * @property {(q1: number, q2: number, minus: number, plus: number, t1: number, t2: number) => void} transform
 * @property {boolean} homogeneous Whether phi(c x) = c phi(x) for c > 0.
 * @property {number} jump The jump of phi' at 0.
 * @property {boolean} table Whether it is interpolated from a table exported by Python, for equal norms only.
 * @property {(x: number) => number} fn
 * @property {(x: number) => number} prime
 */

const PI = Math.PI;
const SMALLEST = 1e-307;
const LARGEST = 1e306;
const EPS = 2 ** -52;

/** A variance at which formulas can be evaluated. @param {number} q */
const bounded = (q) => (q > SMALLEST ? Math.min(q, LARGEST) : SMALLEST);

// sin a - a cos a = sum_k (-1)^(k+1) 2k a^(2k+1)/(2k+1)!, for a <= pi/2
const WAVE = (() => {
  const c = [];
  let factorial = 1;
  for (let k = 1; k <= 13; k++) {
    factorial *= 2 * k * (2 * k + 1);
    c.push(((k % 2 ? 1 : -1) * 2 * k) / factorial);
  }
  return c;
})();

/** sin a - a cos a with all its digits. @param {number} a */
function sineMinus(a) {
  const y = a * a;
  let total = 0;
  for (let k = WAVE.length - 1; k >= 0; k--) total = total * y + WAVE[k];
  return total * a * y;
}

/**
 * a min(x, 0) + b max(x, 0) (Cho & Saul 2009, order 1).
 * @param {string} name @param {string} label @param {number} a @param {number} b @param {string} latex
 * @returns {Activation}
 */
function piecewiseLinear(name, label, a, b, latex) {
  const norm = (a * a + b * b) / 2;
  const c = (a * b) / norm;
  return {
    name,
    label,
    latex,
    homogeneous: true,
    jump: b - a,
    table: false,
    fn: (x) => (x > 0 ? b * x : a * x),
    prime: (x) => (x > 0 ? b : a),
    moment: (q) => norm * q,
    slope2: () => norm,
    transform(q1, q2, minus, plus) {
      const h = Math.min(Math.min(minus, plus) / 2, 0.5);
      const phi = 2 * Math.asin(Math.sqrt(h));
      const w = sineMinus(phi);
      const near = 2 * h - w / PI;
      const far = w / PI;
      if (minus > plus) {
        out[0] = 1 + c - far - c * near;
        out[1] = c > 0 ? 1 - c + far + c * near : 2 - out[0];
        out[2] = 1 - ((1 - c) / PI) * (PI - phi);
      } else {
        out[0] = near + c * far;
        out[1] = 2 - out[0];
        out[2] = 1 - ((1 - c) / PI) * phi;
      }
    },
  };
}

/** Whether variances differ by more than their rounding. @param {number} q1 @param {number} q2 */
const unequal = (q1, q2) => Math.abs(q1 - q2) > 4 * EPS * Math.min(q1, q2);

/**
 * An activation by its Gaussian moments: near rho = 1 the integral of the slope, elsewhere the moment itself.
 * @param {Pick<Activation, "name" | "label" | "latex" | "fn" | "prime"> & {
 *   parity: "odd" | "even" | null,
 *   moment: (q: number) => number,
 *   dual: (q1: number, q2: number, minus: number, plus: number) => number,
 *   dot: (q1: number, q2: number, minus: number, plus: number) => number,
 *   both: (q1: number, q2: number, minus: number, plus: number) => void,
 *   mean: (q1: number, q2: number, minus: number, plus: number) => number,
 *   gap: ((q1: number, q2: number) => number) | null}} of
 * @returns {Activation}
 */
function smooth(of) {
  // `both` writes E[phi phi] and E[phi' phi'] to `out`, sharing what they share.
  const { parity, dual, dot, mean } = of;
  const moment = (/** @type {number} */ q) => of.moment(bounded(q));
  const gap =
    of.gap ??
    ((q1, q2) => Math.max(1 - dual(q1, q2, 0, 2) / Math.sqrt(of.moment(q1)) / Math.sqrt(of.moment(q2)), 0));
  return {
    name: of.name,
    label: of.label,
    latex: of.latex,
    fn: of.fn,
    prime: of.prime,
    homogeneous: false,
    jump: 0,
    table: false,
    moment,
    slope2: (q) => dot(bounded(q), bounded(q), 0, 2),
    transform(given1, given2, minus, plus, t1, t2) {
      const q1 = bounded(given1);
      const q2 = bounded(given2);
      const size = Math.sqrt(t1 > 0 ? t1 : 1) * Math.sqrt(t2 > 0 ? t2 : 1);
      const scale = Math.sqrt(q1) * Math.sqrt(q2);
      const flip = parity !== null && minus > plus;
      const m = flip ? plus : minus;
      const p = flip ? minus : plus;
      of.both(q1, q2, m, p);
      const rho = out[0] / size;
      const slope = (out[1] * scale) / size;
      let low = Math.max(1 - rho, 0);
      if (m < 1e-3) {
        const uneven = unequal(given1, given2);
        if (m > 0 || uneven) {
          const root = Math.sqrt(scale) / Math.sqrt(size);
          low = m * (mean(q1, q2, m, p) * root * root);
          if (uneven) low += gap(Math.max(q1, 1e-100), Math.max(q2, 1e-100));
        } else low = 0;
      }
      const high = low < 1 ? 2 - low : Math.max(1 + rho, 0);
      if (flip && parity === "odd") {
        out[0] = high;
        out[1] = low;
        out[2] = slope;
      } else {
        out[0] = low;
        out[1] = high;
        out[2] = flip ? -slope : slope;
      }
    },
  };
}

// --- erf, gelu, gaussian: a covariance seen through the shares x/(1 + x) -------------------------------------

let p1 = 0, p2 = 0, s1 = 0, s2 = 0, y = 0, rho = 0, minus = 0, plus = 0, rest = 0, cosine2 = 0;

/** @param {number} by @param {number} q1 @param {number} q2 @param {number} m @param {number} p */
function shares(by, q1, q2, m, p) {
  s1 = 1 / (1 + by * q1);
  s2 = 1 / (1 + by * q2);
  p1 = by * q1 * s1;
  p2 = by * q2 * s2;
  minus = m;
  plus = p;
  rho = (p - m) / 2;
  rest = s1 + s2 * p1;
  y = Math.sqrt(p1) * Math.sqrt(p2);
  cosine2 = rest + p1 * p2 * (m * p);
}
const arc = () => Math.atan2(y * rho, Math.sqrt(cosine2));
const both = () => Math.sqrt(s1) * Math.sqrt(s2);

/** (arcsin y - arcsin(y rho))/(y (1 - rho)) for rho >= 0. */
function arcSlope() {
  const a = Math.sqrt(cosine2);
  const b = Math.sqrt(rest);
  const slope = plus / (a + rho * b);
  const sine = y * minus * slope;
  const cosine = a * b + y * y * rho;
  return slope * (sine > 1e-30 ? Math.atan2(sine, cosine) / sine : 1 / cosine);
}

/** 1 - a/sqrt(a1 a2), a = arcsin of the shares, by addition theorems. @param {number} q1 @param {number} q2 */
function erfGap(q1, q2) {
  shares(2, q1, q2, 0, 2);
  const b = Math.sqrt(rest);
  const c1 = Math.sqrt(s1 * (1 + p1));
  const c2 = Math.sqrt(s2 * (1 + p2));
  const apart = Math.abs(2 * (q1 - q2) * s1 * s2);
  const high = Math.max(p1, p2), low = Math.min(p1, p2);
  const cHigh = Math.min(c1, c2), cLow = Math.max(c1, c2);
  const large = y > 0.7;
  /** @param {number} sine @param {number} cosine */
  const angle = (sine, cosine) => (large ? Math.atan2(cosine, sine) : Math.atan2(sine, cosine));
  const e1 = angle(high, cHigh), e2 = angle(low, cLow), e = angle(y, b);
  const d1 = Math.atan2((high * apart) / (high * b + y * cHigh), cHigh * b + high * y);
  const d2 = Math.atan2((low * apart) / (y * cLow + low * b), cLow * b + low * y);
  const half = (apart / (c1 * c2 + rest)) * (apart / (2 * Math.sin((e1 + e2) / 2 + e)));
  const twist = 2 * Math.atan2(half, Math.sqrt((1 - half) * (1 + half)));
  const turn = (/** @type {number} */ x) => (large ? PI / 2 - x : x);
  const a1 = turn(e1), a2 = turn(e2), a = turn(e);
  const size = Math.sqrt(a1) * Math.sqrt(a2);
  return Math.max(a * twist - d1 * d2, 0) / (size * (size + a));
}

/** The error function, to rounding: a series, or a continued fraction. @param {number} x @returns {number} */
export function erf(x) {
  const a = Math.abs(x);
  if (a > 6) return Math.sign(x);
  if (a < 2.5) {
    let term = x, total = x;
    for (let n = 1; n < 80; n++) {
      term *= (2 * x * x) / (2 * n + 1);
      total += term;
      if (Math.abs(term) < 1e-17 * Math.abs(total)) break;
    }
    return (2 / Math.sqrt(PI)) * Math.exp(-x * x) * total;
  }
  let f = 0;
  for (let n = 60; n > 0; n--) f = n / 2 / (a + f);
  return Math.sign(x) * (1 - Math.exp(-a * a) / Math.sqrt(PI) / (a + f));
}

const erfActivation = smooth({
  name: "erf",
  label: "erf",
  latex: "\\operatorname{erf}(x)",
  parity: "odd",
  fn: erf,
  prime: (x) => (2 / Math.sqrt(PI)) * Math.exp(-x * x),
  moment: (q) => (2 / PI) * Math.atan2(2 * q, Math.sqrt(1 + 4 * q)),
  dual(a, b, m, p) {
    shares(2, a, b, m, p);
    return (2 / PI) * arc();
  },
  dot(a, b, m, p) {
    shares(2, a, b, m, p);
    return ((4 / PI) * both()) / Math.sqrt(cosine2);
  },
  both(a, b, m, p) {
    shares(2, a, b, m, p);
    const root = Math.sqrt(cosine2);
    out[0] = (2 / PI) * Math.atan2(y * rho, root);
    out[1] = ((4 / PI) * both()) / root;
  },
  mean(a, b, m, p) {
    shares(2, a, b, m, p);
    return (4 / PI) * both() * arcSlope();
  },
  gap: erfGap,
});

/** @param {number} q1 @param {number} q2 @param {number} m @param {number} p */
function geluDual(q1, q2, m, p) {
  shares(1, q1, q2, m, p);
  const k = Math.sqrt(q1) * Math.sqrt(q2) * rho;
  const bulk = (y * y * (minus * plus + rho * rho * (s1 + s2))) / Math.sqrt(cosine2);
  return k * (0.25 + arc() / (2 * PI)) + bulk / both() / (2 * PI);
}

const gelu = smooth({
  name: "gelu",
  label: "GELU",
  latex: "x\\,\\Phi(x)",
  parity: null,
  fn: (x) => (x * (1 + erf(x / Math.SQRT2))) / 2,
  prime: (x) => (1 + erf(x / Math.SQRT2)) / 2 + (x * Math.exp((-x * x) / 2)) / Math.sqrt(2 * PI),
  moment: (q) => geluDual(q, q, 0, 2),
  dual: geluDual,
  dot(q1, q2, m, p) {
    shares(1, q1, q2, m, p);
    const tilt = ((y * rho) / Math.sqrt(cosine2)) * (s1 + s2 + (s1 * s2) / cosine2);
    return 0.25 + (arc() + tilt) / (2 * PI);
  },
  both(q1, q2, m, p) {
    shares(1, q1, q2, m, p);
    const root = Math.sqrt(cosine2), turn = Math.atan2(y * rho, root), sum = s1 + s2;
    const bulk = (y * y * (minus * plus + rho * rho * sum)) / root;
    const tilt = ((y * rho) / root) * (sum + (s1 * s2) / cosine2);
    out[0] = Math.sqrt(q1) * Math.sqrt(q2) * rho * (0.25 + turn / (2 * PI)) + bulk / both() / (2 * PI);
    out[1] = 0.25 + (turn + tilt) / (2 * PI);
  },
  mean(q1, q2, m, p) {
    shares(1, q1, q2, m, p);
    const a = Math.sqrt(cosine2), b = Math.sqrt(rest), sum = s1 + s2;
    const bulk = ((y * plus) / a) * ((y * y * sum) / (b * (a + b)) - (1 - sum));
    const turn = rho * y * arcSlope() + bulk;
    return 0.25 + (Math.atan2(y, b) + turn) / (2 * PI);
  },
  gap: null,
});

const gaussian = smooth({
  name: "gaussian",
  label: "Gaussian",
  latex: "e^{-x^2}",
  parity: "even",
  fn: (x) => Math.exp(-x * x),
  prime: (x) => -2 * x * Math.exp(-x * x),
  moment(q) {
    shares(2, q, q, 0, 2);
    return both() / Math.sqrt(cosine2);
  },
  dual(a, b, m, p) {
    shares(2, a, b, m, p);
    return both() / Math.sqrt(cosine2);
  },
  dot(a, b, m, p) {
    shares(2, a, b, m, p);
    const root = Math.sqrt(cosine2);
    return (2 * y * rho * (both() / root) ** 2) / root;
  },
  both(a, b, m, p) {
    shares(2, a, b, m, p);
    const root = Math.sqrt(cosine2), ratio = both() / root;
    out[0] = ratio;
    out[1] = (2 * y * rho * ratio * ratio) / root;
  },
  mean(q1, q2, m, p) {
    shares(2, q1, q2, m, p);
    const a = Math.sqrt(cosine2), b = Math.sqrt(rest);
    return 2 * (both() / a) * ((y * plus * (both() / b)) / (a + b));
  },
  gap(q1, q2) {
    const missing = ((2 * (q1 - q2)) / (1 + 2 * q1 + 2 * q2)) ** 2;
    const square = Math.sqrt(Math.max(1 - missing, 0));
    return missing / ((1 + Math.sqrt(square)) * (1 + square));
  },
});

// --- sin and cos ----------------------------------------------------------------------------------------------

/** (sqrt(q1) - sqrt(q2))^2/2. @param {number} q1 @param {number} q2 */
const rootsApart = (q1, q2) => ((q1 - q2) / (Math.sqrt(q1) + Math.sqrt(q2))) ** 2 / 2;

/** @param {number} q1 @param {number} q2 @param {number} m @param {number} p @param {1 | -1} sign */
function wave(q1, q2, m, p, sign) {
  const positive = p >= m;
  const scale = Math.sqrt(q1) * Math.sqrt(q2);
  const distance = (scale * Math.abs(p - m)) / 2;
  const larger = Math.exp(-rootsApart(q1, q2) - scale * (positive ? m : p));
  if (sign > 0) return (larger * (1 + Math.exp(-2 * distance))) / 2;
  const value = (-larger * Math.expm1(-2 * distance)) / 2;
  return positive ? value : -value;
}

/** @param {number} q1 @param {number} q2 @param {number} m @param {number} p @param {1 | -1} sign */
function waveMean(q1, q2, m, p, sign) {
  const scale = Math.sqrt(q1) * Math.sqrt(q2);
  const fall = scale * m;
  const near = fall > 1e-30 ? -Math.expm1(-fall) / fall : 1;
  return (Math.exp(-rootsApart(q1, q2)) * near * (1 + sign * Math.exp(-scale * p))) / 2;
}

/** @param {number} q1 @param {number} q2 @param {1 | -1} sign */
function waveGap(q1, q2, sign) {
  const near = rootsApart(q1, q2);
  const far = (Math.sqrt(q1) + Math.sqrt(q2)) ** 2 / 2;
  const shift = Math.exp(-Math.min(q1, q2)) * Math.expm1(-Math.abs(q1 - q2));
  const second = (/** @type {number} */ q) => (sign < 0 ? -Math.expm1(-2 * q) : 1 + Math.exp(-2 * q));
  const square = Math.expm1(-2 * near) * Math.expm1(-2 * far) + sign * shift ** 2;
  const missing = Math.max(square, 0) / (second(q1) * second(q2));
  return missing / (1 + Math.sqrt(Math.max(1 - missing, 0)));
}

const sin = smooth({
  name: "sin",
  label: "sine",
  latex: "\\sin x",
  parity: "odd",
  fn: Math.sin,
  prime: Math.cos,
  moment: (q) => wave(q, q, 0, 2, -1),
  dual: (a, b, m, p) => wave(a, b, m, p, -1),
  dot: (a, b, m, p) => wave(a, b, m, p, 1),
  both(a, b, m, p) {
    out[0] = wave(a, b, m, p, -1);
    out[1] = wave(a, b, m, p, 1);
  },
  mean: (a, b, m, p) => waveMean(a, b, m, p, 1),
  gap: (a, b) => waveGap(a, b, -1),
});

const cos = smooth({
  name: "cos",
  label: "cosine",
  latex: "\\cos x",
  parity: "even",
  fn: Math.cos,
  prime: (x) => -Math.sin(x),
  moment: (q) => wave(q, q, 0, 2, 1),
  dual: (a, b, m, p) => wave(a, b, m, p, 1),
  dot: (a, b, m, p) => wave(a, b, m, p, -1),
  both(a, b, m, p) {
    out[0] = wave(a, b, m, p, 1);
    out[1] = wave(a, b, m, p, -1);
  },
  mean: (a, b, m, p) => waveMean(a, b, m, p, -1),
  gap: (a, b) => waveGap(a, b, 1),
});

// --- tables exported by Python --------------------------------------------------------------------------------

/** A number that a table does not reach: a sentence for the reader, never a guess. */
export class Outside extends Error {}

/** @typedef {{rows: [number, number][], wide: string, narrow: string}} Packed */
/**
 * @typedef {object} LayerProfile
 * @property {string} name @property {string} latex @property {number} zero @property {number} largest
 * @property {number} centre @property {number} error @property {Packed} T @property {Packed} U @property {Packed} D
 */

/** @param {string} code */
function bytes(code) {
  const text = atob(code);
  const array = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) array[i] = text.charCodeAt(i);
  return array.buffer;
}

/** @param {Packed} table @returns {Float64Array[]} */
function unpack(table) {
  const wide = new Float64Array(bytes(table.wide));
  const narrow = new Float32Array(bytes(table.narrow));
  let i = 0, j = 0;
  return table.rows.map(([a, b]) => {
    const row = new Float64Array(a + b);
    for (let k = 0; k < a; k++) row[k] = wide[i++];
    for (let k = 0; k < b; k++) row[a + k] = narrow[j++];
    return row;
  });
}

/** A Chebyshev series. @param {ArrayLike<number>} c @param {number} x */
export function chebyshev(c, x) {
  let b1 = 0, b2 = 0;
  const twice = 2 * x;
  for (let k = c.length - 1; k > 0; k--) {
    const b = twice * b1 - b2 + c[k];
    b2 = b1;
    b1 = b;
  }
  return x * b1 - b2 + (c.length ? c[0] : 0);
}

/**
 * @param {LayerProfile} of @param {string} label @param {(x: number) => number} fn @param {(x: number) => number} prime
 * @returns {Activation}
 */
function fromTable(of, label, fn, prime) {
  const moments = unpack(of.T)[0];
  const means = unpack(of.U);
  const slopes = unpack(of.D);
  const top = Math.sqrt(of.largest) / (of.centre + Math.sqrt(of.largest));
  let at = NaN;
  let u = new Float64Array(means.length);
  let d = new Float64Array(slopes.length);
  const where = (/** @type {number} */ q) => {
    if (!(q <= of.largest * (1 + 1e-12))) {
      throw new Outside(
        `The variance of the pre-activations reaches ${q.toPrecision(3)}, and the table of ${label} that was exported ` +
          `by Python is certified up to ${of.largest}. Take a smaller \u03c3w, \u03c3b or depth.`,
      );
    }
    const root = Math.sqrt(q);
    return Math.min((2 * root) / (of.centre + root) / top - 1, 1);
  };
  const settle = (/** @type {number} */ q) => {
    if (q === at) return;
    const w = where(q);
    for (let i = 0; i < means.length; i++) u[i] = chebyshev(means[i], w);
    for (let i = 0; i < slopes.length; i++) d[i] = chebyshev(slopes[i], w);
    at = q;
  };
  const moment = (/** @type {number} */ q) => chebyshev(moments, where(q)) * (of.zero ? 1 : q);
  return {
    name: of.name,
    label,
    latex: of.latex,
    fn,
    prime,
    homogeneous: false,
    jump: 0,
    table: true,
    moment,
    slope2(q) {
      settle(q);
      return chebyshev(d, -1);
    },
    transform(q1, q2, m, p, t1) {
      if (unequal(q1, q2)) {
        throw new Outside(`The table of ${label} is for inputs of one norm. Use the circle, or another activation.`);
      }
      settle(q1);
      const v = (Math.sqrt(m) - Math.sqrt(p)) * Math.SQRT1_2;
      const share = t1 > 0 ? q1 / t1 : of.zero ? 0 : 1;
      out[0] = m * share * chebyshev(u, v);
      out[1] = Math.max(2 - out[0], 0);
      out[2] = share * chebyshev(d, v);
    },
  };
}

const sigmoid = (/** @type {number} */ x) => 1 / (1 + Math.exp(-x));
/** @type {Record<string, [string, (x: number) => number, (x: number) => number]>} */
const FUNCTIONS = {
  tanh: ["tanh", Math.tanh, (x) => 1 - Math.tanh(x) ** 2],
  sigmoid: ["sigmoid", sigmoid, (x) => sigmoid(x) * sigmoid(-x)],
  silu: ["SiLU", (x) => x * sigmoid(x), (x) => sigmoid(x) * (1 + x * sigmoid(-x))],
  softplus: ["softplus", (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))), sigmoid],
};

/** @type {Map<string, Activation>} */
export const activations = new Map();
for (const a of [
  piecewiseLinear("relu", "ReLU", 0, 1, "\\max(0,x)"),
  piecewiseLinear("leaky_relu(0.1)", "leaky ReLU", 0.1, 1, "\\max(0,x)+0.1\\min(0,x)"),
  piecewiseLinear("abs", "absolute value", -1, 1, "|x|"),
  erfActivation,
  gelu,
  gaussian,
  sin,
  cos,
  piecewiseLinear("identity", "identity", 1, 1, "x"),
]) activations.set(a.name, a);

/** Make the tables known. @param {{schema: string, layers: LayerProfile[]}} file */
export function install(file) {
  if (file.schema !== "widelimit.layer-profiles/1") throw new Error(`Unknown schema ${file.schema}.`);
  for (const layer of file.layers) {
    const [label, fn, prime] = FUNCTIONS[layer.name];
    activations.set(layer.name, fromTable(layer, label, fn, prime));
  }
}
