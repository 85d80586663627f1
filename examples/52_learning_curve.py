"""Learning curves: theory beside measurement."""

# %% [markdown]
# # How many samples does a function need?
# From the spectrum and the target's power in each degree follows the whole learning curve.

# %%
import tempfile
from pathlib import Path

import numpy as np

import widelimit as wl
from widelimit import plot

target = wl.learning_curve.target(dim=3, power=[0.0, *(1 / k for k in range(1, 41))])
sizes = [10, 30, 100, 300]
curves = {
    "MLP": wl.learning_curve.compare(wl.mlp(depth=3), target, sizes, draws=5),
    "ResNet": wl.learning_curve.compare(wl.resnet(depth=5, alpha=0.1), target, sizes, draws=5),
}
for name, c in curves.items():
    print(name, "theory", c.predicted.mse.round(3), "measured", c.measured.mse.round(3))

# %% [markdown]
# A spectrum predicts without any data: samples until degree 8 is half learnt.

# %%
s = wl.spectrum.sphere(wl.mlp(depth=3), dim=3, degrees=400)
n = np.unique(np.logspace(1, 4, 60).astype(int))
learnt = wl.learning_curve.predict(s, [0, 1.0], n).learnability[:, 8]
print("samples until degree 8 is half learnt:", n[np.argmax(learnt > 0.5)])

# %%
folder = Path(tempfile.mkdtemp())
plot.learning_curve(curves).savefig(folder / "learning_curve.png", dpi=200)
