"""PyTorch: tangent kernels of modules, lifted descriptions against sampled modules, kernels of tensors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widelimit as wl

torch = pytest.importorskip("torch", reason="PyTorch is not installed; see make test-bridges")
from torch import nn  # noqa: E402

from widelimit import torch as bridge  # noqa: E402


@pytest.fixture(autouse=True)
def reproducible(seed):
    torch.manual_seed(seed)


def relative(a, b):
    return float(
        (torch.as_tensor(a) - torch.as_tensor(b)).abs().max() / torch.as_tensor(b).abs().max()
    )


def by_gradients(module, x1, x2):
    """The kernel from the definition: a gradient for each output of each point."""
    live = [p for p in module.parameters() if p.requires_grad]

    def rows(x):
        found = []
        for point in x:
            for value in module(point[None]).reshape(-1):
                grads = torch.autograd.grad(value, live, retain_graph=True, allow_unused=True)
                kept = [
                    torch.zeros_like(p) if g is None else g
                    for g, p in zip(grads, live, strict=True)
                ]
                found.append(torch.cat([g.reshape(-1) for g in kept]))
        return torch.stack(found)

    n1, n2 = len(x1), len(x2)
    product = rows(x1) @ rows(x2).T
    k = len(product) // n1
    return product.reshape(n1, k, n2, k).permute(0, 2, 1, 3)


class Twice(nn.Module):
    """Weights that are shared, a layer on sequences, a plain parameter, one that is frozen."""

    def __init__(self):
        super().__init__()
        self.first, self.shared, self.last = nn.Linear(3, 6), nn.Linear(6, 6), nn.Linear(6, 2)
        self.scale = nn.Parameter(torch.tensor(1.3))
        self.first.bias.requires_grad_(False)

    def forward(self, x):
        h = torch.tanh(self.first(x))  # (points, places, 6)
        h = self.scale * torch.tanh(self.shared(torch.tanh(self.shared(h)))).mean(1)
        return self.last(h)


def mlp(d=5, width=32, k=3, depth=2):
    inner = [part for _ in range(depth) for part in (nn.ReLU(), nn.Linear(width, width))]
    return nn.Sequential(nn.Linear(d, width), *inner, nn.ReLU(), nn.Linear(width, k))


MODULES = {
    "mlp": (mlp, (5,)),
    "convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.GELU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 2)
        ),
        (2, 4, 4),
    ),
    "normalised": (
        lambda: nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 2)).eval(),
        (5,),
    ),
    "shared": (Twice, (4, 3)),
    "attention": (
        lambda: nn.Sequential(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), nn.Flatten()).eval(),
        (3, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_any_module(name):
    build, shape = MODULES[name]
    module, x = build().double(), torch.randn(5, *shape, dtype=torch.float64)
    want = by_gradients(module, x, x)
    assert relative(bridge.empirical_ntk(module, x), want) < 1e-12
    assert (
        relative(bridge.empirical_ntk(module, x, memory=1e-6), want) < 1e-12
    )  # one pair at a time
    assert relative(bridge.empirical_ntk(module, x[:2], x[1:]), want[:2, 1:]) < 1e-12
    diagonal = torch.diagonal(want, dim1=2, dim2=3)
    assert relative(bridge.empirical_ntk(module, x, outputs="diagonal"), diagonal) < 1e-12
    assert relative(bridge.empirical_ntk(module, x, outputs="trace"), diagonal.sum(-1)) < 1e-12
    for groups in ("parameter", "layer"):
        parts = bridge.empirical_ntk(module, x, groups=groups)
        assert relative(sum(parts.values()), want) < 1e-12
    assert all(p.grad is None for p in module.parameters())


def test_it_is_ours():
    """The same weights in JAX."""
    module = mlp(20, 128, 10, depth=2)
    x = torch.randn(12, 20)
    layers = [part for part in module if isinstance(part, nn.Linear)]
    params = [(part.weight.detach().numpy(), part.bias.detach().numpy()) for part in layers]

    def apply(params, x):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w.T + b[None])
        return x @ params[-1][0].T + params[-1][1][None]

    ours = wl.empirical_ntk(apply, params, x.numpy())
    assert relative(bridge.empirical_ntk(module, x), torch.tensor(ours)) < 1e-5


def test_some_parameters():
    module = mlp()
    x = torch.randn(3, 5)
    layers = bridge.empirical_ntk(module, x, groups="layer")
    last = bridge.empirical_ntk(module, x, where=["6"])
    assert relative(last, layers["6"]) < 1e-5
    biases = bridge.empirical_ntk(module, x, where=lambda name: name.endswith("bias"))
    parts = bridge.empirical_ntk(module, x, groups="parameter")
    assert relative(biases, sum(k for name, k in parts.items() if name.endswith("bias"))) < 1e-5
    doubled = bridge.empirical_ntk(module, x, where=["6"], weights={"6.weight": 2.0, "6.bias": 2.0})
    assert relative(doubled, 2 * last) < 1e-5
    kinds = bridge.empirical_ntk(module, x, groups=lambda name: name.rpartition(".")[2])
    assert kinds.keys() == {"weight", "bias"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x: bridge.empirical_ntk(m, x, where=["7"]), "picks no parameter"),
        (lambda m, x: bridge.empirical_ntk(m, x, outputs="sum"), "Unknown value of outputs"),
        (lambda m, x: bridge.empirical_ntk(m, x, groups="block"), "Unknown choice of groups"),
        (lambda m, x: bridge.empirical_ntk(m.forward, x), "torch.nn.Module was expected"),
        (lambda m, x: bridge.empirical_ntk(nn.LSTM(5, 3), x), "one tensor"),
    ],
)
def test_what_a_kernel_cannot_be_asked(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(mlp(), torch.randn(3, 5))


SEQUENCES = {
    "biases": (lambda n: [nn.Linear(3, n), nn.ReLU(), nn.Linear(n, n), nn.ReLU(), nn.Linear(n, 1)], (3,)),
    "norm": (
        lambda n: [nn.Linear(3, n), nn.LayerNorm(n, elementwise_affine=False), nn.Tanh(), nn.Linear(n, 1)],
        (3,),
    ),
    "pool": (
        lambda n: [nn.Conv2d(2, n, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(n, n, 2), nn.GELU(),
                   nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n, 1)],
        (2, 4, 4),
    ),
    "circular": (
        lambda n: [nn.Conv1d(2, n, 3, padding="same", padding_mode="circular"), nn.SiLU(), nn.Flatten(),
                   nn.Linear(4 * n, 1)],
        (2, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEQUENCES)
def test_lifted_networks_have_the_limit_of_sampled_modules(name):
    """Outputs' covariance and rescaled tangent kernels of 300 modules, within 4.5 standard errors and O(1/n)."""
    build, shape = SEQUENCES[name]
    width, draws = 64, 300
    x = torch.randn(3, *shape)
    net = bridge.lift(nn.Sequential(*build(width)))
    nngp, ntk = (bridge.kernel(net, kind)(x).numpy() for kind in ("nngp", "ntk"))
    products, tangents = [], []
    for _ in range(draws):
        module = nn.Sequential(*build(width))
        with torch.no_grad():
            f = module(x)[:, 0]
        products.append(torch.outer(f, f).numpy())
        if len(tangents) < 40:
            weights = bridge.initial_variances(module)
            tangents.append(bridge.empirical_ntk(module, x, weights=weights).numpy())
    for found, exact in ((products, nngp), (tangents, ntk)):
        error = np.std(found, axis=0) / np.sqrt(len(found))
        off = np.abs(np.mean(found, axis=0) - exact)
        assert (off < 4.5 * error + 4 / width * exact.max()).all(), off / error
        assert (error < 0.15 * exact.max()).all()


def test_the_test_above_would_see_a_wrong_scale():
    build, shape = SEQUENCES["biases"]
    x = torch.randn(3, *shape)
    right, wrong = (
        bridge.kernel(net, "nngp")(x) for net in (bridge.lift(nn.Sequential(*build(64))), wl.mlp(2))
    )
    assert relative(wrong, right) > 1


def test_measured_scales():
    module = nn.Sequential(nn.Linear(50, 400), nn.Tanh(), nn.Linear(400, 1))
    for part in (module[0], module[2]):
        nn.init.normal_(part.weight, std=1.7 / part.in_features**0.5)
        nn.init.zeros_(part.bias)
    net = bridge.lift(module, init="measured")
    assert abs(net.layers[0].w_std - 1.7) < 0.05
    assert net.layers[0].b_std == 0
    assert abs(bridge.initial_variances(module, init="measured")["0.weight"] - 1.7**2 / 50) < 0.005


LSTM = nn.LSTM(3, 3)
SHARED = nn.Linear(3, 3)
REFUSED = [
    ([nn.Linear(3, 4), nn.BatchNorm1d(4)], "BatchNorm1d '1' cannot be lifted"),
    ([nn.Sequential(nn.Linear(3, 4), nn.MaxPool1d(2))], "MaxPool1d '0.1' cannot be lifted"),
    ([nn.Linear(3, 4), nn.LayerNorm(4)], "elementwise_affine=False"),
    ([SHARED, nn.ReLU(), SHARED], "Linear '2' occurs twice"),
    ([nn.Conv2d(3, 4, 3, padding=1, stride=2)], "keeps the size"),
    ([nn.Conv2d(3, 4, 3, dilation=2)], "dilation and groups"),
    ([nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")], "padding_mode='reflect'"),
    ([nn.Conv2d(3, 4, 3), nn.Linear(4, 4)], "put nn.Flatten"),
    ([nn.Linear(3, 4), nn.GELU("tanh")], "default numbers only"),
    ([nn.Conv1d(3, 4, 3), nn.AdaptiveAvgPool1d(2)], "single pixel"),
    ([nn.Conv1d(3, 4, 3), nn.AvgPool1d(2, padding=1)], "padding and ceil_mode"),
    ([LSTM], "LSTM '0' cannot be lifted"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "message"), REFUSED, ids=lambda v: v if isinstance(v, str) else ""
)
def test_what_cannot_be_lifted_is_named(parts, message):
    with pytest.raises(ValueError, match=message):
        bridge.lift(nn.Sequential(*parts))


def test_dropout_and_norms_that_are_lifted():
    parts = nn.Sequential(
        nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.3), nn.Identity(), nn.Linear(4, 1)
    )
    kinds = lambda net: [type(layer) for layer in net.layers]
    assert wl.Dropout in kinds(bridge.lift(parts))
    assert wl.Dropout not in kinds(bridge.lift(parts.eval()))
    norm = bridge.lift(
        nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Tanh(), nn.Linear(4, 1)), ntk=False
    )
    assert norm.layers[1] == wl.LayerNorm("channels", 1e-5)
    whole = bridge.lift(
        nn.Sequential(nn.Conv1d(2, 4, 3), nn.LayerNorm((4, 5)), nn.ReLU()), ntk=False
    )
    assert whole.layers[1].over == "all"


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_kernels_of_tensors(kind):
    """Values are ours, to the bit of the layered path; derivatives pass PyTorch's own check, also at x = x'."""
    net = wl.mlp(2, "erf", w_std=1.3, b_std=0.2) if kind == "nngp" else wl.resnet(2, alpha=0.5)
    k = bridge.kernel(net, kind)
    x, y = (torch.randn(n, 3, dtype=torch.float64) for n in (4, 2))
    x[1] = x[0]
    assert np.allclose(k(x), getattr(wl, kind)(net, x.numpy()), rtol=1e-13)
    assert np.allclose(k(x, y), getattr(wl, kind)(net, x.numpy(), y.numpy()), rtol=1e-13)
    assert k(x.float()).dtype == torch.float32
    x[1] += 0.5  # the tangent kernel of a ReLU has a kink at x = x', where differences would fail
    free = [a.clone().requires_grad_() for a in (x, y, k.numbers)]
    assert torch.autograd.gradcheck(k, free)
    assert torch.autograd.gradcheck(lambda a, n: k(a, None, n), (free[0], free[2]))
    k(x.requires_grad_(), x.detach()).sum().backward()
    assert torch.isfinite(x.grad).all()


def test_images_come_with_channels_first():
    net = wl.Conv(3, b_std=0.2) >> wl.Phi("relu") >> wl.Flatten() >> wl.Dense()
    x = torch.randn(3, 2, 5, 4, dtype=torch.float64)
    ours = wl.ntk(net, x.movedim(1, -1).numpy())
    assert np.allclose(bridge.kernel(net)(x), ours, rtol=1e-12)


def test_tensors_are_arrays_and_back():
    x = torch.randn(3, 4)
    array = bridge.to_jax(x)
    assert isinstance(array, jax.Array)
    assert torch.equal(bridge.to_torch(array), x)
    assert bridge.to_torch(jnp.ones(2), torch.zeros(1, dtype=torch.float64)).dtype == torch.float64
    assert torch.equal(bridge.to_torch(bridge.to_jax(x.T)), x.T)  # not contiguous
