"""The stability experiment, the kernel's ellipse, and their figures."""

import numpy as np
import pytest

import widelimit as wl


def circle(n):
    b = -np.pi + 2 * np.pi * np.arange(n) / n + 0.1 * np.sin(np.arange(n))
    return np.stack([np.cos(b), np.sin(b)], 1), np.cos(b) / 2 + np.sin(4 * b)


@pytest.mark.parametrize(("activation", "covered"), [("relu", False), ("erf", True)])
def test_the_drift_falls_at_least_like_the_inverse_root(activation, covered):
    x, y = circle(5)
    seen = []
    found = wl.stability(
        wl.resnet(depth=2, alpha=0.5, activation=activation),
        x,
        y,
        (32, 96, 288),
        steps=100,
        seeds=4,
        progress=lambda done, total: seen.append(done),
    )
    rate, stderr = found.drift_rate
    assert rate <= -0.5 + 2 * stderr
    assert stderr < 0.3
    path_rate, path_stderr = found.path_rate
    assert path_rate <= 2 * path_stderr + 0.1
    assert found.covered is covered
    assert found.error.shape == (3, 4, len(found.steps))
    wide = found.error[-1] / found.error[-1][:, :1]
    assert (wide <= found.envelope[None, :] * 1.1).all()
    assert seen == list(range(1, 13))
    from widelimit import plot

    fig = plot.stability(found)
    assert len(fig.axes) == 3
    plot.pyplot().close(fig)


def test_smooth_activations_with_a_constant_are_not_covered():
    x, y = circle(3)
    found = wl.stability(wl.mlp(1, "cos"), x, y, (8, 16), steps=2, seeds=2)
    assert not found.covered


def test_the_ellipse(golden):
    for case in golden["ntk_ellipse"]:
        a, c, b = case["theta"]
        found = wl.kernel_ellipse([[a, c], [c, b]])
        assert found.semi_major == pytest.approx(case["semi_major"], rel=1e-14)
        assert found.semi_minor == pytest.approx(case["semi_minor"], rel=1e-14)
        assert found.angle == pytest.approx(case["angle"], rel=1e-14)
        z = found.outline()
        inside = np.einsum("pi,ij,pj->p", z, np.linalg.inv([[a, c], [c, b]]), z)
        np.testing.assert_allclose(inside, 1, rtol=1e-12)


def test_the_ellipse_of_a_wide_network_stays_on_the_limit():
    net = wl.mlp(depth=2, w_std=2**0.5, b_std=0.1)
    x, y = np.float32([[1, 0.2, -0.5], [0.3, 1, 0.8]]), np.float32([1, -1])
    limit = wl.ntk(net, x.astype(float))
    move, series = [], []
    for width in (10, 1000):
        run = wl.optimise(wl.finite(net, width), x, y, steps=60, record=6, drift=True)
        assert run.kernels.shape == (7, 2, 2)
        move.append(abs(run.kernels - limit).max())
        series.append(run.kernels)
    assert move[1] < 0.3 * move[0]
    from widelimit import plot

    fig = plot.ntk_ellipse(series, limit, labels=["$n=10$", "$n=1000$"])
    assert len(fig.axes) == 2
    plot.pyplot().close(fig)


def test_figures():
    from widelimit import plot

    angles = np.linspace(-np.pi, np.pi, 9)
    outputs = np.random.default_rng(0).normal(size=(3, 9))
    found = wl.width_convergence(wl.mlp(1), np.eye(2), widths=(8, 32), samples=3)
    figures = [
        plot.width_convergence(found),
        plot.kernel_on_the_circle(angles, np.cos(angles), outputs),
        plot.trained_networks(angles, outputs, [0.0], [1.0], infinite_width=np.cos(angles)),
    ]
    left, right = figures[0].axes
    assert f"{found.rate:.2f}" in left.get_legend().get_texts()[0].get_text()
    band = (
        right.collections[0].get_paths()[0].vertices
    )  # what is shaded, against the prediction itself
    fl = wl.fluctuations(wl.mlp(1), np.eye(2))
    for n, mean, std in zip(found.widths, *found.band, strict=True):
        assert std == pytest.approx((fl.ntk_var[0, 0] / n) ** 0.5 / fl.ntk[0, 0])
        edge = band[np.isclose(band[:, 0], n), 1]
        assert [edge.min(), edge.max()] == pytest.approx([mean - std, mean + std])
    assert found.entry.shape == (2, 3)
    assert "infinite width" in [t.get_text() for t in figures[2].axes[0].get_legend().get_texts()]
    for fig in figures:
        plot.pyplot().close(fig)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wl.stability(wl.mlp(1), np.eye(2), np.ones(2), (8, 8)), "two different widths"),
        (lambda: wl.stability(wl.mlp(1), np.eye(2), np.ones(2), (8, 9), seeds=1), "at least 2"),
        (lambda: wl.kernel_ellipse(np.eye(3)), "two points"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
