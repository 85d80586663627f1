"""Laboratory: smoothness, bounds, spectrum, learning curves, signal propagation."""

from . import bounds as bounds
from . import learning_curve as learning_curve
from . import signal as signal
from . import smoothness as smoothness
from . import spectrum as spectrum
