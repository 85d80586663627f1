"""Kernel regression on MNIST and the sets made in its image: accuracy against the number of images."""

import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, UInt8

from widelimit._base.files import write_file
from widelimit._base.folder import own_folder
from widelimit._base.idx import Digits, read_digits
from widelimit._base.names import unknown
from widelimit.infinite import cost, kernels
from widelimit.layers import Dense, Layer, Phi, Repeat, cnn, myrtle

KINDS = ("nngp", "ntk")
RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1)  # in units of the mean diagonal
_STRIP = 2**33  # pairs of pixels and layers that are computed and kept together: half a minute
_DEVICE_STRIP = 2**40  # the same on an accelerator
_HELD_OUT = 6  # the ridge is chosen on one in so many of the training images

Block = Float[np.ndarray, "kinds _ _"]


@dataclasses.dataclass(frozen=True)
class Model:
    """A network for images.

    Attributes:
        title: In tables and figures.
        network: The network.
        pixels: Whether it reads pixels; then its kernels are dear, and kept strip by strip.
        side: The images' side, filled up with zeros; 0 for their own.
    """

    title: str
    network: Layer
    pixels: bool = True
    side: int = 0


def _connected(depth: int) -> Layer:
    hidden = Dense(w_std=2**0.5, b_std=0.3) >> Phi("relu")
    return Repeat(hidden, depth) >> Dense()


MODELS = {
    "connected": Model("MLP, depth 3", _connected(3), pixels=False),
    "cnn": Model("6 convolutions, flatten", cnn(depth=6, b_std=0.3)),
    "myrtle5": Model("Myrtle-5", myrtle(5), side=32),
}


class Scored(NamedTuple):
    """A kernel with so many training images.

    Attributes:
        model: A key of `MODELS`.
        kind: "nngp" or "ntk".
        images: Training images.
        tests: Test images.
        accuracy: On the test images.
        ridge: In units of the mean diagonal, chosen on held-out training images.
        kernel_seconds: For the kernels of the largest number of images, both kinds.
        solve_seconds: To choose the ridge and to solve.
    """

    model: str
    kind: str
    images: int
    tests: int
    accuracy: float
    ridge: float
    kernel_seconds: float
    solve_seconds: float


def run_images(
    data: Path,
    out: Path,
    *,
    model: str,
    sizes: Sequence[int],
    tests: int = 10_000,
    seed: int = 0,
    watch: Callable[[int, int, str], None] = lambda done, of, what: None,
) -> list[Scored]:
    """Accuracy of both kernels of a network for several numbers of training images.

    The pixels' mean is removed and images are divided by their norm; targets are 1 for the class and
    -1/9 for the others; the ridge is the best of six on a sixth of the training images, and all of them
    are then fitted.

    Args:
        data: The folder of the four files.
        out: Where results and dear kernels are kept; what is there is not computed again.
        model: A key of `MODELS`.
        sizes: Numbers of training images; smaller ones are part of larger ones.
        tests: Test images, the first of their file.
        seed: Of the order of the training images.
        watch: Told how many steps are done, of how many, and which.

    Returns:
        Both kernels for all sizes.

    Raises:
        ValueError: A file is missing or damaged, or there are fewer images than asked for.
        FolderError: The folder cannot be written, or another run is at work there.
    """
    if model not in MODELS:
        raise ValueError(unknown("network", model, MODELS))
    digits = read_digits(data, "--data")
    sizes = sorted(set(sizes))
    if not sizes or sizes[0] < 60 or sizes[-1] > len(digits.train):
        raise ValueError(
            f"There are {len(digits.train)} training images; expected numbers from 60 to that many, "
            f"got {list(sizes)}."
        )
    chosen = np.random.default_rng(seed).permutation(len(digits.train))[: sizes[-1]]
    tests = min(tests, len(digits.test))
    with own_folder(out):
        name = f"{model}-{_mark(digits, MODELS[model], sizes, tests, seed)}"
        kept = _kept(out / f"{name}.json")
        if kept is not None:
            return kept
        x, y = _prepared(digits.train[chosen], MODELS[model]), digits.train_labels[chosen]
        x_test, y_test = _prepared(digits.test[:tests], MODELS[model]), digits.test_labels[:tests]
        begin = time.perf_counter()
        gram, cross = _blocks(MODELS[model], x, x_test, out / name, watch)
        spent = time.perf_counter() - begin
        found = []
        for size in sizes:
            for i, kind in enumerate(KINDS):
                begin = time.perf_counter()
                ridge, guess = _classified(gram[i], y.astype(int), cross[i], size)
                accuracy = float(np.mean(guess == y_test))
                took = time.perf_counter() - begin
                found.append(Scored(model, kind, size, tests, accuracy, ridge, spent, took))
                watch(0, 0, f"{size} images, {kind}: {100 * accuracy:.2f} %")
        write_file(out / f"{name}.json", json.dumps([s._asdict() for s in found], indent=1))
        return found


def _mark(digits: Digits, model: Model, sizes: Sequence[int], tests: int, seed: int) -> str:
    """A digest of all that a result depends on."""
    parts = [array.tobytes() for array in digits]
    parts.append(repr((model, tuple(sizes), tests, seed, RIDGES)).encode())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


def _kept(path: Path) -> list[Scored] | None:
    try:
        return [Scored(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return None


def _prepared(images: UInt8[np.ndarray, "n rows columns"], model: Model) -> np.ndarray:
    """Images around their mean, of norm 1 for each pixel on average, in single precision."""
    x = images / np.float32(255)
    x = x - x.mean((1, 2), keepdims=True)
    size = np.sqrt(np.mean(x**2, axis=(1, 2), keepdims=True))
    x = (x / np.where(size > 0, size, 1)).astype(np.float32)
    if not model.pixels:
        return x.reshape(len(x), -1)
    more = max(model.side - x.shape[1], 0)
    around = (more // 2, more - more // 2)
    return np.pad(x, ((0, 0), around, around))[..., None]


def _blocks(
    model: Model,
    x: np.ndarray,
    x_test: np.ndarray,
    folder: Path,
    watch: Callable[[int, int, str], None],
) -> tuple[Block, Block]:
    """The kernels of the training images, and of test images with them."""
    if not model.pixels:
        return _both(model, x, None), _both(model, x_test, x)
    folder.mkdir(exist_ok=True)
    n, m = len(x), len(x_test)
    gram, cross = (np.empty((len(KINDS), rows, n), np.float32) for rows in (n, m))
    places = list(_places(n, m, _strip_rows(model, x)))
    with concurrent.futures.ThreadPoolExecutor(1) as aside:  # a strip is put away during the next
        keep: concurrent.futures.Future[None] | None = None
        for done, place in enumerate(places, 1):
            path = folder / f"{'test' if place.is_test else 'train'}-{place.rows.start}.npy"
            rows = (x_test if place.is_test else x)[place.rows]
            part = _kept_strip(path, (len(KINDS), len(rows), n - place.columns.start))
            new = part is None
            if part is None:
                part = _both(model, rows, x) if place.is_test else _corner(model, x, place)
            if keep is not None:
                keep.result()
            keep = aside.submit(_put_away, gram, cross, place, part, path if new else None)
            watch(done, len(places), "kernels")
        if keep is not None:
            keep.result()
    return gram, cross


class _Place(NamedTuple):
    rows: slice
    columns: slice
    is_test: bool


def _places(n: int, m: int, strip: int) -> Iterator[_Place]:
    """Strips of the upper triangle, then of the test images."""
    for i in range(0, n, strip):
        yield _Place(slice(i, min(i + strip, n)), slice(i, n), is_test=False)
    for i in range(0, m, strip):
        yield _Place(slice(i, min(i + strip, m)), slice(0, n), is_test=True)


def _strip_rows(model: Model, x: np.ndarray) -> int:
    """How many images meet all others before what they found is kept."""
    most = _STRIP if jax.default_backend() == "cpu" else _DEVICE_STRIP
    each = cost(model.network, x[:1], x[:1]).entries * len(x)
    return min(max(2 ** int(math.log2(max(most / each, 1))), 16), 2048)


def _corner(model: Model, x: np.ndarray, place: _Place) -> Block:
    """A strip of the upper triangle: images with themselves, of which a half is enough, and with those behind them."""
    rows, behind = x[place.rows], x[place.rows.stop :]
    parts = [_both(model, rows, None)] + ([_both(model, rows, behind)] if len(behind) else [])
    return np.concatenate(parts, axis=2)


def _kept_strip(path: Path, shape: tuple[int, ...]) -> Block | None:
    try:
        part = np.load(path)
    except (OSError, ValueError, EOFError):
        return None
    return part if part.shape == shape else None


def _put_away(gram: Block, cross: Block, place: _Place, part: Block, path: Path | None) -> None:
    """Into the matrices, and into a file."""
    if path is not None:
        write_file(path, functools.partial(np.save, arr=part))
    if place.is_test:
        cross[:, place.rows] = part
    else:
        gram[:, place.rows, place.columns] = part
        gram[:, place.columns, place.rows] = part.transpose(0, 2, 1)


def _both(model: Model, rows: np.ndarray, columns: np.ndarray | None) -> Block:
    found = kernels(model.network, rows, columns)
    return np.stack([np.asarray(getattr(found, kind)) for kind in KINDS])


def _classified(
    gram: Float[np.ndarray, "N N"],
    y: Int[np.ndarray, " N"],
    cross: Float[np.ndarray, "m N"],
    size: int,
) -> tuple[float, Int[np.ndarray, " m"]]:
    """The ridge that does best on held-out images, and the classes of the test images."""
    fitted = size - size // _HELD_OUT
    with jax.enable_x64(True):
        targets = jnp.asarray(np.where(y[:size, None] == np.arange(10), 1.0, -1 / 9))
        unit = float(np.mean(np.diagonal(gram)[:size].astype(np.float64)))
        held = jnp.asarray(gram[fitted:size, :fitted], jnp.float64)
        leading = jnp.asarray(gram[:fitted, :fitted])
        hits = []
        for ridge in RIDGES:
            guess = held @ _solve(leading, ridge * unit, targets[:fitted])
            hits.append(int(np.sum(np.asarray(guess.argmax(1)) == y[fitted:size])))
        best = RIDGES[int(np.argmax(hits))]
        del held, leading  # before the next matrix, which may fill the device
        weights = _solve(jnp.asarray(gram[:size, :size]), best * unit, targets)
        guess = jnp.asarray(cross[:, :size], jnp.float64) @ weights
        return best, np.asarray(guess.argmax(1))


@jax.jit
def _solve(
    gram: Float[jax.Array, "n n"], ridge: Float[jax.Array, ""], targets: Float[jax.Array, "n k"]
) -> Float[jax.Array, "n k"]:
    """In double precision, as one program: at most three such matrices exist at once."""
    matrix = gram.astype(jnp.float64)
    on_diagonal = jnp.eye(len(gram), dtype=bool)
    factor = jnp.linalg.cholesky(
        jnp.where(on_diagonal, matrix + ridge, matrix), symmetrize_input=False
    )
    weights = jax.scipy.linalg.cho_solve((factor, True), targets)
    return jnp.where(jnp.isfinite(weights).all(), weights, 0.0)  # where it is not positive
