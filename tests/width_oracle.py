"""The first corrections in 1/width once more, slowly: sums over pairs of inputs, in any arithmetic.

Layers are tuples: ("dense", w, b, nu), ("phi", name), ("residual", alpha, layers). ReLU layers run in mpmath with as
many digits as are set; other activations by a trapezoidal rule in the plane, with their derivatives written out.
Nothing is shared with the library, and nothing is done about cancellation: that is what the digits are for.
"""

import itertools
import math

import mpmath as mp
import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import erf, ndtr

PAIRS = ((0, 0), (0, 1), (1, 1))
BOTH = (0, 1)
FOURS = list(itertools.product(BOTH, repeat=4))


def outer_pairs(value):
    return [[value(*p, *q) for q in PAIRS] for p in PAIRS]


def spread(s, nu):
    """S_ac S_bd + S_ad S_bc over pairs."""
    return outer_pairs(lambda a, b, c, d: (s[a][c] * s[b][d] + s[a][d] * s[b][c]) / nu)


# --- expectations --------------------------------------------------------------------------------------


class Relu:
    """In closed form, for a 2 x 2 covariance of mpmath numbers."""

    def __init__(self, k):
        a, c, b = k[0][0], k[0][1], k[1][1]
        root = mp.sqrt(a * b - c * c)
        rho = c / mp.sqrt(a * b)
        t = mp.atan2(root, c)
        p, sine, pi = mp.pi - t, mp.sin(t), mp.pi
        over = {
            (0, 0): p,
            (1, 1): sine + p * rho,
            (2, 0): p + sine * rho,
            (2, 2): p * (1 + 2 * rho**2) + 3 * sine * rho,
            (3, 1): 3 * p * rho + (2 + rho**2) * sine,
        }
        self.over = {(max(key), min(key)): value / (2 * pi) for key, value in over.items()}
        self.q = (a, b)
        i00, i11 = self.over[0, 0], self.over[1, 1]
        half = mp.mpf(1) / 2
        self.t = [a / 2, i11 * mp.sqrt(a * b), b / 2]
        self.td = [half, i00, half]
        one, third = 1 / (8 * pi * root), 1 / (8 * pi * root**3)
        none = [[0] * 3 for _ in range(3)]
        self.jt = [[half, 0, 0], [root / (4 * pi * a), i00, root / (4 * pi * b)], [0, 0, half]]
        self.jtd = [[0] * 3, [-2 * c / a * one, 4 * one, -2 * c / b * one], [0] * 3]
        bend = lambda x: one * (2 * c * c - a * b) / x**2
        twist = lambda x: third * c * (2 * root**2 + a * b) / x**2
        self.ht = [
            none,
            [
                [bend(a), -2 * c / a * one, one],
                [-2 * c / a * one, 4 * one, -2 * c / b * one],
                [one, -2 * c / b * one, bend(b)],
            ],
            none,
        ]
        self.htd = [
            none,
            [
                [twist(a), -2 * b * third, c * third],
                [-2 * b * third, 4 * c * third, -2 * a * third],
                [c * third, -2 * a * third, twist(b)],
            ],
            none,
        ]

    def mean(self, powers, inputs):
        """Of phi (power 1) and phi' (power 0) at these inputs."""
        j, k = (sum(n for n, i in zip(powers, inputs, strict=True) if i == at) for at in BOTH)
        size = self.q[0] ** (mp.mpf(j) / 2) * self.q[1] ** (mp.mpf(k) / 2)
        if len(set(inputs)) == 1:
            return {4: mp.mpf(3) / 2, 2: mp.mpf(1) / 2, 0: mp.mpf(1) / 2}[j + k] * size
        return self.over[max(j, k), min(j, k)] * size


def derivatives(name, x):
    """The function and its first five derivatives."""
    if name == "sin":
        return [np.sin(x + k * np.pi / 2) for k in range(6)]
    if name == "cos":
        return [np.cos(x + k * np.pi / 2) for k in range(6)]
    if name == "tanh":
        t, p, out = np.tanh(x), Polynomial([0, 1]), []
        for _ in range(6):
            out.append(p(t))
            p = p.deriv() * Polynomial([1, 0, -1])
        return out
    hermite = [np.ones_like(x), x]  # those of exp(-x^2/2)
    for k in range(1, 6):
        hermite.append(x * hermite[k] - k * hermite[k - 1])
    if name == "erf":
        x, root = math.sqrt(2) * x, math.sqrt(2)
        again = derivatives("cdf", x)
        return [erf(x / root), *(2 * root**k * again[k] for k in range(1, 6))]
    bell = np.exp(-(x**2) / 2) / math.sqrt(2 * np.pi)
    cdf = [ndtr(x), *((-1) ** k * hermite[k] * bell for k in range(5))]
    if name == "cdf":
        return cdf
    assert name == "gelu"
    return [x * cdf[0], *(x * cdf[k] + k * cdf[k - 1] for k in range(1, 6))]


class Rule:
    """By a trapezoidal rule in the plane, whitened."""

    def __init__(self, name, k):
        a, c, b = (float(value) for value in (k[0][0], k[0][1], k[1][1]))
        step = 0.16 / max(1, math.sqrt(max(a, b)))
        z = np.arange(-11, 11 + step / 2, step)
        first, second = np.meshgrid(z, z, indexing="ij")
        weight = np.exp(-(first**2 + second**2) / 2)
        self.weight = weight / weight.sum()
        u = math.sqrt(a) * first
        v = c / math.sqrt(a) * first + math.sqrt(max(b - c * c / a, 0)) * second
        self.at = [derivatives(name, u), derivatives(name, v)]
        m = lambda i, j, x=0, y=1: float((self.weight * self.at[x][i] * self.at[y][j]).sum())
        alone = lambda i, x: (
            m(i + 1, i + 1, x, x) + m(i + 2, i, x, x),
            (2 * m(i + 4, i, x, x) + 8 * m(i + 3, i + 1, x, x) + 6 * m(i + 2, i + 2, x, x)) / 4,
        )
        self.t, self.td = ([m(i, i, 0, 0), m(i, i), m(i, i, 1, 1)] for i in BOTH)
        self.jt, self.jtd = ([[0.0] * 3 for _ in range(3)] for _ in BOTH)
        self.ht, self.htd = ([np.zeros((3, 3)) for _ in range(3)] for _ in BOTH)
        for i, j, h in ((0, self.jt, self.ht), (1, self.jtd, self.htd)):
            for p, x in ((0, 0), (2, 1)):
                j[p][p], h[p][p][p] = alone(i, x)
            n = lambda k, l, i=i: m(k + i, l + i)
            j[1] = [n(2, 0) / 2, n(1, 1), n(0, 2) / 2]
            h[1][:] = [
                [n(4, 0) / 4, n(3, 1) / 2, n(2, 2) / 4],
                [n(3, 1) / 2, n(2, 2), n(1, 3) / 2],
                [n(2, 2) / 4, n(1, 3) / 2, n(0, 4) / 4],
            ]

    def mean(self, powers, inputs):
        parts = [self.at[i][1 - n] for n, i in zip(powers, inputs, strict=True)]
        return float((self.weight * math.prod(parts)).sum())


# --- layers --------------------------------------------------------------------------------------------


def start(s):
    """Data of these second moments <x, y>/d."""
    none = {key: mp.mpf(0) for key in FOURS}
    return {
        "S": s,
        "Q": [[mp.mpf(0)] * 2 for _ in BOTH],
        "C": mp.zeros(6),
        "dS": [mp.mpf(0)] * 3,
        "dQ": [mp.mpf(0)] * 3,
        "B": none,
        "F": dict(none),
        "gauss": False,
        "nu": 1,
        **transfers(),
    }


def transfers():
    u = {(c, a, e): mp.mpf(c == e) for c, a, e in itertools.product(BOTH, repeat=3)}
    return {"JJ": mp.eye(6), "t": [[mp.mpf(1)] * 2 for _ in BOTH], "u": u}


def upper(block):
    out = mp.zeros(6)
    for i, j in itertools.product(range(3), repeat=2):
        out[i, j] = block[i][j]
    return out


def stream(x):
    if not x["gauss"]:
        return x
    s, q, nu = x["S"], x["Q"], x["nu"]
    return {
        **x,
        "C": x["C"] + upper(spread(s, nu)),
        "B": {(a, b, c, d): x["B"][a, b, c, d] + q[a][b] * q[c][d] / nu for a, b, c, d in FOURS},
        "F": {(c, d, a, b): x["F"][c, d, a, b] + s[c][d] * q[a][b] / nu for c, d, a, b in FOURS},
        "gauss": False,
    }


def dense(x, w, b, nu):
    x, w2, b2 = stream(x), mp.mpf(w) ** 2, mp.mpf(b) ** 2
    s = [[w2 * value + b2 for value in row] for row in x["S"]]
    jac = mp.zeros(6)
    for i in range(3):
        jac[i, i] = jac[3 + i, 3 + i] = jac[3 + i, i] = w2
    times = lambda table: {key: w2**2 * value for key, value in table.items()}
    return {
        "S": s,
        "Q": [[s[a][c] + w2 * x["Q"][a][c] for c in BOTH] for a in BOTH],
        "C": jac * x["C"] * jac.T,
        "dS": [w2 * v for v in x["dS"]],
        "dQ": [w2 * (v + z) for v, z in zip(x["dS"], x["dQ"], strict=True)],
        "B": times(x["B"]),
        "F": times(x["F"]),
        "gauss": True,
        "nu": nu,
        "JJ": jac * x["JJ"],
        "t": [[w2 * v for v in row] for row in x["t"]],
        "u": {key: w2 * v for key, v in x["u"].items()},
    }


def phi(x, name):
    assert x["gauss"]
    e = Relu(x["S"]) if name == "relu" else Rule(name, x["S"])
    q, nu, c, f = x["Q"], x["nu"], x["C"], x["F"]
    at = lambda three, a, b: three[a + b]
    q3 = [q[a][b] for a, b in PAIRS]
    square = lambda three: [[at(three, a, b) for b in BOTH] for a in BOTH]
    jac, noise = mp.zeros(6), mp.zeros(6)
    for i, j in itertools.product(range(3), repeat=2):
        jac[i, j], jac[3 + i, j] = e.jt[i][j], q3[i] * e.jtd[i][j]
        jac[3 + i, 3 + j] = e.td[i] if i == j else 0
        four = (*PAIRS[i], *PAIRS[j])
        mean = lambda *powers, four=four: e.mean(powers, four)
        noise[i, j] = mean(1, 1, 1, 1) - e.t[i] * e.t[j]
        noise[i, 3 + j] = noise[3 + j, i] = q3[j] * (mean(1, 1, 0, 0) - e.t[i] * e.td[j])
        noise[3 + i, 3 + j] = q3[i] * q3[j] * (mean(0, 0, 0, 0) - e.td[i] * e.td[j])
    td = square(e.td)

    def u(c, a, k):
        if c == a:
            return e.jt[2 * a][2 * a] if k == a else 0
        return e.td[1] if k == c else 2 * e.jt[1][2 * a]

    three = range(3)
    inner = lambda h: sum(h[r][s] * c[r, s] for r in three for s in three) / 2
    dot = lambda j, v: sum(j[r] * v[r] for r in three)
    own = lambda p, a, b: sum(
        (1 + (k == l)) * e.jtd[p][k + l] * f[k, l, a, b] for k in BOTH for l in BOTH
    )
    return {
        "S": square(e.t),
        "Q": [[td[a][b] * q[a][b] for b in BOTH] for a in BOTH],
        "C": jac * c * jac.T + noise / nu,
        "dS": [dot(e.jt[p], x["dS"]) + inner(e.ht[p]) for p in three],
        "dQ": [
            q3[p] * (dot(e.jtd[p], x["dS"]) + inner(e.htd[p]))
            + e.td[p] * x["dQ"][p]
            + sum(e.jtd[p][r] * c[r, 3 + p] for r in three)
            + own(p, *PAIRS[p])
            for p in three
        ],
        "B": {
            (a, b, k, l): e.mean((0, 0, 0, 0), (a, b, k, l)) * q[a][b] * q[k][l] / nu
            + td[a][k] * td[b][l] * x["B"][a, b, k, l]
            for a, b, k, l in FOURS
        },
        "F": {
            (k, l, a, b): e.mean((1, 1, 0, 0), (k, l, a, b)) * q[a][b] / nu
            + sum(u(k, a, i) * u(l, b, j) * f[i, j, a, b] for i in BOTH for j in BOTH)
            for k, l, a, b in FOURS
        },
        "gauss": False,
        "nu": nu,
        "JJ": jac * x["JJ"],
        "t": [[td[a][b] * x["t"][a][b] for b in BOTH] for a in BOTH],
        "u": {
            (k, b, j): sum(u(k, b, i) * x["u"][i, b, j] for i in BOTH)
            for k, b, j in itertools.product(BOTH, repeat=3)
        },
    }


def residual(x, alpha, layers):
    x, a2 = stream(x), mp.mpf(alpha) ** 2
    y = run({**x, **transfers()}, layers)
    assert y["gauss"]
    nu = y["nu"]
    add = lambda one, two: [[p + a2 * q for p, q in zip(*rows)] for rows in zip(one, two)]  # noqa: B905
    s, q = add(x["S"], y["S"]), add(x["Q"], y["Q"])
    t, u, f, b = y["t"], y["u"], x["F"], x["B"]
    carried = y["JJ"] * x["C"]
    new, old = spread(s, nu), spread(x["S"], nu)
    noise = upper([[p - r for p, r in zip(*rows)] for rows in zip(new, old)])  # noqa: B905
    both = lambda one, two: [p + a2 * r for p, r in zip(one, two, strict=True)]
    return {
        "S": s,
        "Q": q,
        "C": x["C"] + a2 * (carried + carried.T) + a2**2 * y["C"] + noise,
        "dS": both(x["dS"], y["dS"]),
        "dQ": both(x["dQ"], y["dQ"]),
        "B": {
            (i, j, k, l): (1 + a2 * (t[i][k] + t[j][l])) * b[i, j, k, l]
            + a2**2 * y["B"][i, j, k, l]
            + (q[i][j] * q[k][l] - x["Q"][i][j] * x["Q"][k][l]) / nu
            for i, j, k, l in FOURS
        },
        "F": {
            (k, l, i, j): f[k, l, i, j]
            + a2 * sum(u[k, i, e] * f[e, l, i, j] + u[l, j, e] * f[k, e, i, j] for e in BOTH)
            + a2**2 * y["F"][k, l, i, j]
            + (s[k][l] * q[i][j] - x["S"][k][l] * x["Q"][i][j]) / nu
            for k, l, i, j in FOURS
        },
        "gauss": False,
        "nu": nu,
        "JJ": (mp.eye(6) + a2 * y["JJ"]) * x["JJ"],
        "t": [[(1 + a2 * t[i][j]) * x["t"][i][j] for j in BOTH] for i in BOTH],
        "u": {
            (k, i, j): x["u"][k, i, j] + a2 * sum(u[k, i, e] * x["u"][e, i, j] for e in BOTH)
            for k, i, j in itertools.product(BOTH, repeat=3)
        },
    }


def run(x, layers):
    rules = {"dense": dense, "phi": phi, "residual": residual}
    for name, *numbers in layers:
        x = rules[name](x, *numbers)
    return x


def corrections(layers, points):
    """What `widelimit.Fluctuations.pair_covariance` has: cov, b, f, shift, with K and Theta."""
    data = [[mp.mpf(float(v)) for v in row] for row in points]
    gram = [
        [sum(p * q for p, q in zip(*ab, strict=True)) / len(ab[0]) for ab in ((a, b) for b in data)]
        for a in data
    ]
    x = run(start(gram), layers)
    assert x["gauss"]
    tensor = lambda table: np.array([float(table[key]) for key in FOURS]).reshape(2, 2, 2, 2)
    matrix = lambda rows: np.array([[float(value) for value in row] for row in rows])
    return {
        "nngp": matrix(x["S"]),
        "ntk": matrix(x["Q"]),
        "cov": np.array(x["C"].tolist(), float),
        "b": tensor(x["B"]),
        "f": tensor(x["F"]),
        "shift": np.array([float(value) for value in [*x["dS"], *x["dQ"]]]),
    }
