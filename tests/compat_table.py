"""Every public name of neural-tangents with ours: `python tests/compat_table.py` writes docs/compat.md."""

import json
from pathlib import Path

import widelimit.compat as nt
from compat_networks import STORE
from widelimit.compat import predict, stax

PAGE = Path(__file__).parents[1] / "docs" / "compat.md"

OPENING = """# neural-tangents' scripts, unchanged

`widelimit.compat` has the names of neural-tangents 0.6.5, so that a script runs after changing its import:

```python
import widelimit.compat as nt  # import neural_tangents as nt
from widelimit.compat import stax, predict  # from neural_tangents import stax, predict
```

A layer is the triple `(init_fn, apply_fn, kernel_fn)`; behind it stands one of widelimit's descriptions,
`kernel_fn.network.net`, which everything else here reads (estimators, training, analysis, the explorer). Kernels and
predictions agree with neural-tangents to 1e-12 on some forty networks, fully connected, convolutional, residual,
attentive, on graphs and with masks (`tests/compat_networks.py`); where they do not, the list below says why.

**What differs on purpose**

- *Arrays.* NumPy in, NumPy out, in float64 whatever JAX's flags say; JAX in, JAX out.
- *Equal inputs.* Where x = x' the kernels of activations with a kink carry an error of about 1e-8 there; here they are
  exact.
- *Dependent branches.* `FanInSum` of two paths without weights between (x + x) is their sum here, with kernel 4K;
  neural-tangents adds the kernels as if the paths were independent, 2K.
- *Activations on the data.* An activation before the first Dense has no limit kernel, and is refused.
- *Random weights.* The same key draws other weights, and parameters are nested lists of {"w": ..., "b": ...}.
- *Standard parameterisation.* Its NNGP kernel and its finite networks are there; its tangent kernel, which grows with
  the widths, is refused.
- *ImageResize* with method "nearest" to sizes that do not divide picks the pixels that `jax.image.resize` picks;
  neural-tangents' kernel is off by some tenths of a percent there.
- *Hermite* is right at any variance; neural-tangents' holds at variance 1.
- *Predictions* are computed on the host in float64, through the engine of `wl.train`; they are not functions that JAX
  can differentiate. For that differentiate `wl.ntk` itself.
- *`nt.batch`* changes nothing: matrices are computed in tiles.

**Times.** In `predict` a time is that of neural-tangents, whose loss is the mean of squares over n points and k
outputs. `wl.train` takes the sum unless told `loss="mean"`: there the same function is reached at t / (n k). A
`ConventionWarning` says so, with the number, once for each place in a script.

## Every name

"""


def first_line(thing):
    return (getattr(thing, "__doc__", None) or "").strip().partition("\n")[0].replace("|", "\\|")


def page():
    names = json.loads(STORE.read_text())["names"]
    rows = [OPENING + "| neural-tangents | here |\n|---|---|\n"]
    for prefix, module, listed in (
        ("nt.", nt, names["nt"]),
        ("stax.", stax, names["stax"]),
        ("predict.", predict, names["predict"]),
    ):
        for name in listed:
            if name in ("stax", "predict"):
                continue
            if name == "experimental":
                what = "Refused: it reads TensorFlow models, which have no bridge here."
            elif name == "Slice":
                what = first_line(stax.Index)
            else:
                what = first_line(getattr(module, name))
            rows.append(f"| `{prefix}{name}` | {what} |\n")
    rows.append("\nMade by `python tests/compat_table.py`; a test compares it with the code.\n")
    return "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page())
