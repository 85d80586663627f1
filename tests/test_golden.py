"""Kernels against values computed with 50 digits."""

import itertools
from collections import defaultdict

import jax.numpy as jnp
import numpy as np
import pytest

import widelimit as wl
from widelimit.activations import Cov

NETWORKS = list(itertools.product(("mlp", "resnet"), ("relu", "erf", "gelu", "sin", "tanh")))


def error(got, want):
    floor = 0.01 * np.abs(want).max()
    return np.abs(got - want) / np.maximum(np.abs(want), floor)


def arranged(x, rows):
    """Three features and that many rows: kernels depend on |x|^2/d and angles, so programs are shared."""
    x = np.array(x)
    wide = np.pad(x * np.sqrt(3 / x.shape[1]), ((0, 0), (0, 3 - x.shape[1])))
    return np.concatenate([wide, wide[-1:].repeat(rows - len(x), axis=0)])


@pytest.mark.parametrize(("model", "activation"), NETWORKS)
def test_both_precisions(golden_kernels, model, activation):
    """Single precision is judged away from parallel inputs, where its own rounding is the error."""
    seen = set()
    for case in golden_kernels:
        if (case["model"], case["params"]["activation"]) != (model, activation):
            continue
        seen.add(case["set"])
        # In the near sets the inner product's own rounding shows, and chaotic networks multiply it.
        limit = 5e-12 if case["set"] == "near" else 1e-12
        net, size = getattr(wl, model)(**case["params"]), np.shape(case["nngp"])
        x1, x2 = arranged(case["x1"], 3), arranged(case["x2"], 6)
        double = wl.kernels(net, x1, x2)
        single = wl.kernels(net, np.float32(x1), np.float32(x2))
        norms = np.outer(*(np.linalg.norm(x, axis=1) for x in (x1, x2)))
        generic = (np.abs(x1 @ x2.T) <= (1 - 1e-3) * norms)[: size[0], : size[1]]
        for name in ("nngp", "ntk"):
            want = np.array(case[name])
            worst = error(getattr(double, name)[: size[0], : size[1]], want).max()
            assert worst < limit, (case["params"], case["set"], name, worst)
            assert getattr(single, name).dtype == np.float32
            if case["set"] == "norms":
                worst = (error(getattr(single, name)[: size[0], : size[1]], want) * generic).max()
                assert worst < 5e-6, (case["params"], name, worst)
    assert seen >= {"norms"}


@pytest.mark.parametrize("model", ["mlp", "resnet"])
def test_pairs_at_all_depths_and_angles(golden, model):
    """1273 pairs: rho from 1 to -1, parallel, antiparallel, zero and tiny vectors, depth 1 to 50."""
    groups = defaultdict(list)
    for case in golden["kernels"]:
        if case["model"] != model:
            continue
        names = ("act", "L", "sigma_w", "sigma_b", "sigma_v", "alpha")
        groups[tuple(case.get(n) for n in names)].append(case)
    worst, most = 0.0, max(map(len, groups.values()))
    features = max(len(case["x"]) for case in golden["kernels"])

    def embedded(x):  # kernels depend on |x|^2/d and angles, so one dimension serves all cases
        return np.pad(np.multiply(x, np.sqrt(features / len(x))), (0, features - len(x)))

    for (act, depth, w, b, v, alpha), members in groups.items():
        if model == "mlp":
            net = wl.mlp(depth, act, w_std=w, b_std=b)
        else:
            net = wl.resnet(depth, alpha=alpha, activation=act, w_std=w, v_std=v)
        members += [members[-1]] * (most - len(members))  # one size, so that programs are shared
        n = len(members)
        both = wl.kernels(net, [embedded(m[k]) for k in "xy" for m in members])
        for name in ("nngp", "ntk"):
            whole = getattr(both, name)
            size = np.sqrt(np.diag(whole)[:n] * np.diag(whole)[n:])
            want = np.array([m[name] for m in members])
            gap = np.abs(np.diag(whole[:n, n:]) - want)
            assert np.all(gap[size == 0] == 0)
            relative = gap[size > 0] / size[size > 0]
            worst = max(worst, relative.max(initial=0.0))
            assert np.all(relative < 1e-13), (model, act, depth)
    assert worst < 1e-13


def test_duals(golden):
    for case in golden["duals"]:
        act = wl.activations.get(case["act"])
        k11, k22, k12 = case["k11"], case["k22"], case["k12"]
        scale = np.sqrt(k11 * k22)
        # The covariance is given, so 1 - rho is known to rounding only.
        net = wl.Dense() >> wl.Phi(act)
        rho = np.clip(k12 / scale, -1, 1)
        x = np.sqrt(2 * k11) * np.array([[1.0, 0.0]])
        y = np.sqrt(2 * k22) * np.array([[rho, np.sqrt((1 - rho) * (1 + rho))]])
        got = wl.kernels(net, x, y)
        size = np.sqrt(wl.nngp(net, x) * wl.nngp(net, y))[0, 0]
        slack = 2e-16 / np.sqrt(max(2 * (1 - rho), 1e-32)) if case["act"] == "relu" else 0
        assert abs(got.nngp[0, 0] - case["T"]) < 3e-13 * size
        if abs(1 - rho) > 1e-12 and abs(rho) > 1e-3:  # the tangent kernel is Tdot times k
            dot = got.ntk[0, 0] / k12
            assert abs(dot - case["Tdot"]) < 1e-10 + 10 * slack + 1e-15 / abs(rho), case


def test_parameter_groups_of_the_resnet(golden):
    for case in golden["resnet_ntk_by_parameter_group"]:
        net = wl.resnet(
            case["L"],
            alpha=case["alpha"],
            activation=case["act"],
            w_std=case["sigma_w"],
            v_std=case["sigma_v"],
        )
        t = wl.trace(net, [case["x"]], [case["y"]])
        pi, k = t.Pi[:, 0, 0], t.K[:, 0, 0]
        np.testing.assert_allclose(pi, case["Pi"], rtol=1e-12)
        np.testing.assert_allclose(k, case["K"], rtol=1e-12)
        gain = case["alpha"] ** 2
        parts = {
            "w": k[-1],
            "U": pi[0] * k[0],
            "V": gain * (pi[1:] * t.Sigma[:, 0, 0]).sum(),
            "W": gain * (pi[1:] * k[:-1] * t.Sigma_dot[:, 0, 0]).sum(),
        }
        for name, value in parts.items():
            np.testing.assert_allclose(value, case[name], rtol=1e-11, atol=1e-15)
        np.testing.assert_allclose(t.Theta[-1, 0, 0], case["ntk"], rtol=1e-12)


def test_shapes_on_the_circle(golden):
    for case in golden["circle_shapes"]["cases"]:
        if case["model"] not in ("mlp", "resnet"):
            continue
        depth = case["L"]
        net = wl.mlp(depth) if case["model"] == "mlp" else wl.resnet(depth, alpha=case["alpha"])
        profile = wl.profile(net, variance=0.5)
        got = profile.ntk_at_angle(case["angles"])
        np.testing.assert_allclose(got, case["ntk"], rtol=0, atol=2e-14 * case["ntk"][0])


def test_cov_has_no_cancellation():
    cov = Cov(*(jnp.array(v, jnp.float32) for v in (1.0, 1.0, 1e-20, 2.0)))
    assert float(cov.det) == np.float32(2e-20)
