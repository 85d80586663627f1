"""Images: convolutional networks of infinite width on the digits, beside a fully connected one.

The same 40 images teach three infinite networks. Those that know that neighbouring pixels belong together
need fewer examples.
"""

import numpy as np
from sklearn.datasets import load_digits

import widelimit as wl
from widelimit.estimators import NTKClassifier

images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8, 1)  # (n, height, width, channels)
order = np.random.default_rng(0).permutation(len(images))
known, new = order[:40], order[40:110]

networks = {
    "fully connected": wl.Flatten() >> wl.mlp(depth=2, w_std=2**0.5),
    "convolutions, flatten": wl.cnn(depth=2),
    "convolutions, average over pixels": wl.cnn(depth=2, readout="pool"),
}
scores = {}
for name, network in networks.items():
    expected = wl.cost(network, images[known])
    model = NTKClassifier(network=network).fit(images[known], labels[known])
    scores[name] = model.score(images[new], labels[new])
    print(
        f"{name:35s} {scores[name]:.3f}   ({expected.entries:.1e} pairs of pixels, by {expected.path})"
    )

assert scores["convolutions, average over pixels"] > scores["fully connected"]

# The kernel of the last network, images sorted by their digit: what belongs together stands out.
order = known[np.argsort(labels[known], kind="stable")]
fig = wl.plot.kernel(wl.ntk(networks["convolutions, average over pixels"], images[order]))
