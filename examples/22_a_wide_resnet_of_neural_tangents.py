"""The wide residual network of neural-tangents' front page, in this library's words.

There it is `stax.serial(FanOut(2), parallel(main, shortcut), FanInSum())` for each block; here branches are added
by `+`. The value at the end is what neural-tangents 0.6.5 gives for the same two images in float64.
"""

import numpy as np

import widelimit as wl

RELU = wl.Phi("relu")


def block(stride: int = 1, *, mismatch: bool = False) -> wl.Layer:
    """Two convolutions beside a shortcut, which is a convolution where the size changes."""
    main = RELU >> wl.Conv(3, stride=stride) >> RELU >> wl.Conv(3)
    shortcut = wl.Conv(3, stride=stride) if mismatch else wl.Identity()
    return main + shortcut


def group(blocks: int, stride: int = 1) -> wl.Layer:
    """Blocks of one size."""
    return wl.Serial(block(stride, mismatch=True), *[block()] * (blocks - 1))


def wide_resnet(blocks: int, side: int) -> wl.Layer:
    """Three groups; the last pool averages over all that is left of an image of this side."""
    groups = group(blocks), group(blocks, 2), group(blocks, 2)
    return wl.Serial(wl.Conv(3), *groups, wl.AvgPool(side // 4), wl.Flatten(), wl.Dense())


net = wide_resnet(blocks=1, side=8)
print(net)
images = np.cos(np.arange(2 * 8 * 8 * 3) ** 1.5).reshape(2, 8, 8, 3)
found = wl.kernels(net, images[:1], images[1:])
print(f"NNGP {found.nngp.item():.12f}, NTK {found.ntk.item():.12f}")
assert np.isclose(found.nngp.item(), 0.03557495659282571, rtol=1e-12)
assert np.isclose(found.ntk.item(), 0.11733824330784214, rtol=1e-12)

# The same structure at any width; `wl.wide_resnet` has pre-activated shortcuts, He scaling, and LayerNorm on request.
print(wl.shape(net, (8, 8, 3), width=16))
