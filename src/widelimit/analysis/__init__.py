"""Laboratory: smoothness, bounds, spectrum, learning curves, signal propagation."""

from . import bounds as bounds
from . import smoothness as smoothness
from . import spectrum as spectrum
