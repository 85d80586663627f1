"""The names of `neural_tangents.stax`: layers as triples `(init_fn, apply_fn, kernel_fn)`.

Each is one of widelimit's layers; `triple.kernel_fn.network.net` is the description, which everything else in
widelimit reads. Names without a meaning here raise, with the reason.

Example:
    >>> import numpy as np
    >>> from widelimit.compat import stax
    >>> init_fn, apply_fn, kernel_fn = stax.serial(stax.Dense(512), stax.Relu(), stax.Dense(1))
    >>> kernel_fn(np.eye(2), None, "nngp").round(4)
    array([[0.25  , 0.0796],
           [0.0796, 0.25  ]])
    >>> kernel_fn.network.net
    Dense(width=512) >> Phi('relu') >> Dense(width=1)
"""

from ._activations import ABRelu as ABRelu
from ._activations import Abs as Abs
from ._activations import Cos as Cos
from ._activations import Elementwise as Elementwise
from ._activations import ElementwiseNumerical as ElementwiseNumerical
from ._activations import Erf as Erf
from ._activations import Exp as Exp
from ._activations import ExpNormalized as ExpNormalized
from ._activations import Gabor as Gabor
from ._activations import Gaussian as Gaussian
from ._activations import Gelu as Gelu
from ._activations import Hermite as Hermite
from ._activations import LeakyRelu as LeakyRelu
from ._activations import Monomial as Monomial
from ._activations import Polynomial as Polynomial
from ._activations import Rbf as Rbf
from ._activations import RectifiedMonomial as RectifiedMonomial
from ._activations import Relu as Relu
from ._activations import Sigmoid_like as Sigmoid_like
from ._activations import Sign as Sign
from ._activations import Sin as Sin
from ._axes import AggregateImplementation as AggregateImplementation
from ._axes import AttentionMechanism as AttentionMechanism
from ._axes import Padding as Padding
from ._axes import PositionalEmbedding as PositionalEmbedding
from ._branches import FanInConcat as FanInConcat
from ._branches import FanInProd as FanInProd
from ._branches import FanInSum as FanInSum
from ._branches import FanOut as FanOut
from ._branches import GlobalSelfAttention as GlobalSelfAttention
from ._branches import MaskedArray as MaskedArray
from ._branches import parallel as parallel
from ._branches import repeat as repeat
from ._branches import serial as serial
from ._layers import Aggregate as Aggregate
from ._layers import AvgPool as AvgPool
from ._layers import Conv as Conv
from ._layers import ConvLocal as ConvLocal
from ._layers import ConvTranspose as ConvTranspose
from ._layers import Dense as Dense
from ._layers import Dropout as Dropout
from ._layers import Flatten as Flatten
from ._layers import GlobalAvgPool as GlobalAvgPool
from ._layers import GlobalSumPool as GlobalSumPool
from ._layers import Identity as Identity
from ._layers import ImageResize as ImageResize
from ._layers import LayerNorm as LayerNorm
from ._layers import SumPool as SumPool
from ._refused import Bool as Bool
from ._refused import Diagonal as Diagonal
from ._refused import DotGeneral as DotGeneral
from ._refused import Index as Index
from ._refused import Slice as Slice
from ._refused import layer as layer
from ._refused import requires as requires
from ._refused import supports_masking as supports_masking
from ._refused import unmask_fn as unmask_fn
