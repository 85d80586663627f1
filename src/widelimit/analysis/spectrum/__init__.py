"""The spectrum of a kernel on the circle and on spheres: which functions does it learn easily?"""

from ._decay import Decay as Decay
from ._decay import decay as decay
from ._decay import decay_theory as decay_theory
from ._eigenvalues import Spectrum as Spectrum
from ._eigenvalues import circle as circle
from ._eigenvalues import multiplicity as multiplicity
from ._eigenvalues import sphere as sphere
from ._empirical import Condition as Condition
from ._empirical import Empirical as Empirical
from ._empirical import condition as condition
from ._empirical import effective_dimension as effective_dimension
from ._empirical import empirical as empirical
from ._empirical import repeated as repeated
from ._kink import Expansion as Expansion
from ._kink import expansion as expansion
from ._kink import kink as kink
from ._kink import kink_mlp as kink_mlp
from ._kink import kink_resnet as kink_resnet
