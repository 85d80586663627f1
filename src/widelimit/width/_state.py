r"""The first corrections in 1/width as a state of the interpreter.

For two inputs, a signal of $\nu n$ components carries, beside the limit kernels $S$ and $\Theta$, what is left
of order $1/n$: the covariance of $(S_p,\Theta_p)$ over the pairs $p=00,01,11$, the shifts of their means,
$B_{abcd}=nN^{-2}\sum_{ij}\Theta^{ab}_{ij}\Theta^{cd}_{ij}$ and $F_{cdab}=nN^{-2}\sum_{ij}x^c_i\Theta^{ab}_{ij}x^d_j$
over the $N$ neurons. A signal is *Gaussian* behind fresh weights (its neurons are independent given the past,
and what is carried is conditional), a *stream* elsewhere. A branch remembers how it depends on its
stream, which is what a residual sum needs: the two are correlated.

Everything is divided by the sizes $\sqrt{K_{aa}K_{bb}}$, like the tangent kernel in `infinite.Pair`; a number that
multiplies a signal then changes nothing, and no norm overflows. Second moments, and the signals in $F$, are in the
coordinates of `activations/_charts.py`, each entry in a chart of its own: nearly parallel inputs have
fluctuations of their squared distance, not differences of fluctuations.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import (
    Activation,
    Cov,
    How,
    chart_of,
    end_of,
    local_moments,
    second_moment,
)
from widelimit.infinite import Pair
from widelimit.interpret import State, is_zero

from ._steps import (
    Step,
    in_basis,
    moved,
    on_rows,
    sandwich,
    slopes,
    trained,
    trained_transfer,
    turned,
)
from ._tensors import (
    bends,
    contracted,
    four_points,
    gram,
    on_both,
    outer,
    pairs_of,
    single_neuron,
    square,
    stacked,
    third_of,
    upper_left,
    wishart,
)


class Fluctuating(State, eqx.Module):
    """A signal with its corrections of order 1/width, for all pairs of a tile.

    Attributes:
        first: The kernels of the first inputs with themselves, shape (rows, 1).
        both: The kernels of all pairs.
        second: The kernels of the second inputs with themselves, shape (1, columns).
        chart: The chart of each pair.
        cov: n times the covariance of (S, Theta): S in the chart, Theta over the three pairs.
        shift: n times the shifts of their means.
        b: n times the mean product of tangent kernels of two neurons, [a, b, c, d].
        f: n times the mean of signal, tangent kernel and signal, [c, d, a, b], c and d in the chart's basis.
        transfer: How the signal depends on the stream that its branch has left; None in no branch.
        width: The number of components in units of n.
        gaussian: Whether the signal is fresh.
        how: The length of the series of fourth moments, for each activation.
    """

    question: ClassVar[str] = "corrections of finite width"

    first: Pair
    both: Pair
    second: Pair
    chart: Float[Array, "rows columns"]
    cov: Float[Array, "6 6 rows columns"]
    shift: Float[Array, "6 rows columns"]
    b: Float[Array, "2 2 2 2 rows columns"]
    f: Float[Array, "2 2 2 2 rows columns"]
    transfer: Step | None
    width: Float[Array, ""]
    gaussian: bool = eqx.field(static=True)
    how: tuple[tuple[Activation, int], ...] = eqx.field(static=True)

    @staticmethod
    def of_data(
        q1: Float[Array, "rows 1"],
        q2: Float[Array, "1 columns"],
        minus: Float[Array, "rows columns"],
        plus: Float[Array, "rows columns"],
        limit: How,
        how: tuple[tuple[Activation, int], ...],
    ) -> "Fluctuating":
        """The data: nothing is random yet."""
        alone = lambda q: Pair.of_data(q, q, jnp.zeros_like(q), jnp.full_like(q, 2.0), limit)
        both = Pair.of_data(q1, q2, minus, plus, limit)
        zero = lambda *axes: jnp.zeros((*axes, *minus.shape))
        rest = zero(6, 6), zero(6), zero(2, 2, 2, 2), zero(2, 2, 2, 2)
        start = alone(q1), both, alone(q2), chart_of(minus, plus), *rest
        return Fluctuating(*start, None, jnp.ones(()), False, how)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.both.minus.shape

    @property
    def theta(self) -> Float[Array, "2 2 rows columns"]:
        """The tangent kernels."""
        return square(stacked([pair.ntk for pair in self._pairs], self.shape))

    @property
    def _pairs(self) -> tuple[Pair, Pair, Pair]:
        return self.first, self.both, self.second

    def _with(self, change: Callable[[Pair], Pair]) -> Self:
        first, both, second = map(change, self._pairs)
        return dataclasses.replace(self, first=first, both=both, second=second)

    def _after(self, step: Step) -> Self:
        """The corrections behind a linear step."""
        return dataclasses.replace(
            self,
            cov=sandwich(step.both, self.cov, step.both),
            shift=step.both(self.shift),
            b=on_both(step.back, step.back, self.b),
            f=contracted(step.mixed, step.mixed, self.f),
            transfer=None if self.transfer is None else self.transfer.then(step),
        )

    def _to(self, q: tuple[Array, Array], chart: Array) -> Step:
        """How the corrections change where the variances of the two inputs are these, and in this chart."""
        units = Step.units((self.both.q1, self.both.q2), q, self.chart)
        return units.then(Step.turned(self.chart, chart))

    def stream(self) -> Self:
        """The signal itself, no longer as a law given the past: its own sampling noise is added."""
        return dataclasses.replace(self._noisy(), gaussian=False) if self.gaussian else self

    def _noisy(self, sign: int = 1) -> Self:
        """With the sampling noise of its own neurons, or (-1) without it: a sum has its own."""
        ends, theta = (self.chart, self.both.minus, self.both.plus), self.theta
        share = sign / self.width
        return dataclasses.replace(
            self,
            cov=self.cov + share * upper_left(wishart(*ends)),
            b=self.b + share * outer(theta, theta),
            f=self.f + share * outer(gram(*ends), theta),
        )

    def weighted(self, width: int | None) -> Self:
        return dataclasses.replace(self.stream(), gaussian=True, width=jnp.ones(()))

    def wide(self, width: Scalar) -> Self:
        """Of so many components, in units of n."""
        return dataclasses.replace(self, width=jnp.asarray(width, jnp.float64))

    def scaled(self, factor: Scalar) -> Self:
        return self._with(lambda pair: pair.scaled(factor))

    def biased(self, b_std: Scalar) -> Self:
        if is_zero(b_std):
            return self
        out = self._with(lambda pair: pair.biased(b_std))
        chart = chart_of(out.both.minus, out.both.plus)
        step = self._to((out.both.q1, out.both.q2), chart)
        return dataclasses.replace(out._after(step), chart=chart)

    def trained(self) -> Self:
        added = functools.partial(trained, self.chart)
        transfer = self.transfer
        if transfer is not None:
            transfer = transfer._replace(both=trained_transfer(self.chart, transfer.both))
        return dataclasses.replace(
            self._with(lambda pair: pair.trained()),
            cov=on_rows(added, self.cov),
            shift=jnp.stack(added(list(self.shift))),
            transfer=transfer,
        )

    def activated(self, activation: Activation) -> Self:
        cov = Cov(self.both.q1, self.both.q2, self.both.minus, self.both.plus)
        found = local_moments(activation, cov, How(dict(self.how)[activation]))
        out = dataclasses.replace(
            self,
            first=_alone(self.first, activation, found.first.dot),
            both=self.both.activated(activation),
            second=_alone(self.second, activation, found.second.dot),
        )
        end = end_of(cov.minus, cov.plus)
        here = self._turned(end)
        theta = self.theta
        three = pairs_of(theta)
        step = slopes(found, three, self.shape)
        transfer = self.transfer
        if transfer is not None:
            transfer = transfer.then(Step.turned(self.chart, end)).then(step)
        y, z = four_points(found, self.shape)
        third = third_of(found.chart, out.both.minus, out.both.plus)
        if found.mixed_moment is not None:
            third = jnp.where(found.chart == 0, found.mixed_moment, third)
        noise = single_neuron(found, third, three, self.shape)
        after = here._after(step)
        return dataclasses.replace(
            out,
            chart=found.chart,
            cov=after.cov + noise / self.width,
            shift=after.shift + bends(found, three, here.cov, here.f),
            b=after.b + z * outer(theta, theta) / self.width,
            f=after.f + y * theta[None, None] / self.width,
            transfer=transfer,
            gaussian=False,
        )

    def _turned(self, chart: Array) -> Self:
        """The corrections in another chart; a branch's own dependence is left out."""
        change = functools.partial(turned, self.chart, chart)
        return dataclasses.replace(
            self,
            chart=chart,
            cov=on_rows(change, self.cov),
            shift=jnp.stack(change(list(self.shift))),
            f=in_basis(moved(self.chart, chart), self.f),
            transfer=None,
        )

    def branched(self) -> Self:
        return dataclasses.replace(self.stream(), transfer=Step.none(self.shape))

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        stream = self.stream()
        met = [*parts]
        if skip is not None:
            met = [stream.branched()._noisy(-1).scaled(skip), *parts]
        pairs = [Pair.mixed([state._pairs[i] for state in met]) for i in range(3)]
        q, chart = (pairs[1].q1, pairs[1].q2), chart_of(pairs[1].minus, pairs[1].plus)
        met = [state._after(state._to(q, chart)) for state in met]
        total = lambda name: sum(getattr(state, name) for state in met[1:]) + getattr(met[0], name)
        cov, b, f = total("cov"), total("b"), total("f")
        steps = [state.transfer for state in met if state.transfer is not None]
        for one, other in itertools.permutations(steps, 2):
            cov = cov + sandwich(one.both, stream.cov, other.both)
            b = b + on_both(one.back, other.back, stream.b)
            f = f + contracted(one.mixed, other.mixed, stream.f)
        transfer = jax.tree.map(lambda *a: sum(a[1:], a[0]), *steps)
        out = dataclasses.replace(
            met[-1],
            first=pairs[0],
            both=pairs[1],
            second=pairs[2],
            chart=chart,
            cov=cov,
            shift=total("shift"),
            b=b,
            f=f,
            transfer=None if self.transfer is None else self.transfer.then(transfer),
            gaussian=skip is None,
        )
        return out if skip is None else out._noisy()

    def repeated(self, step: Callable[[Self], Self], times: int | Int[Array, ""]) -> Self:
        """A loop, so that compilation does not grow with depth."""
        if isinstance(times, int) and times == 0:
            return self
        state, once = self.opened(), lambda state: step(state).opened()
        form = jax.tree.structure
        ends = jax.eval_shape(once, state)
        if not ends.gaussian:
            state = state.stream()
        if form(ends) != form(state):  # fresh from now on
            state, times = once(state), times - 1
        count = jnp.asarray(times, jnp.int32)
        return jax.lax.fori_loop(jnp.int32(0), count, lambda _, s: once(s), state)

    def opened(self) -> Self:
        """With both ends of every correlation, whether they are needed or not: one form for all steps."""
        return self._with(lambda pair: dataclasses.replace(pair, above=pair.plus))


def _alone(pair: Pair, activation: Activation, slope: Array) -> Pair:
    """An activation at inputs with themselves: they stay equal."""
    q1, q2 = (second_moment(activation, q) for q in (pair.q1, pair.q2))
    return dataclasses.replace(pair, q1=q1, q2=q2, ntk=slope * pair.ntk)
