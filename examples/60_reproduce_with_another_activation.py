"""The papers' experiments with another activation, depth or attenuation."""

# %% [markdown]
# # The papers' experiments, with other settings
# `widelimit reproduce` runs every experiment as the papers describe it and writes a page that explains
# them; `--mnist DIR` adds the one on MNIST, whose files you bring. Each one is also a function that
# returns its numbers, and its arguments are yours to change.

# %%
from pathlib import Path

import widelimit as wl

found = wl.experiments.figure2(depths=(3,), counts=(10,), alphas=(1.0, 0.5, 0.1), activation="gelu")
for row in found.tables[0].rows:
    print(*row[:3], sep=" | ")

# %% [markdown]
# A verdict follows from a stated criterion and the numbers. GELU has no kinks: its kernel has slope
# zero at equal inputs, for every network, so the first claim has nothing to hold on to.

# %%
for verdict in found.verdicts:
    print(f"{verdict.verdict}: {verdict.claim}\n    {verdict.evidence}")
assert all(kink == 0 for kink in found.data["cases"]["L=3"]["kink"].values())

# %% [markdown]
# Sample positions are a setting too. The papers' code samples both ends of the period.

# %%
for samples in ("authors", "equispaced", "random"):
    again = wl.experiments.figure2(depths=(5,), counts=(10,), samples=samples, seed=1)
    mu = again.data["cases"]["L=5"]["samples"]["10"]["mu"]
    print(f"{samples:11s}", {name: round(value, 1) for name, value in mu.items()})

# %% [markdown]
# All numbers are in `found.data`; the figure is drawn from them alone.

# %%
if __name__ == "__main__" and Path("figures").is_dir():
    wl.experiments.draw(found)[""].savefig("figures/gelu.png")
