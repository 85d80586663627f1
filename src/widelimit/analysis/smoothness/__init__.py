"""How smooth is a function? Measures that say their direction and what they depend on."""

from ._gaussian import gaussian_eigenvalues as gaussian_eigenvalues
from ._gaussian import gaussian_rkhs as gaussian_rkhs
from ._gradient import GradientNorms as GradientNorms
from ._gradient import input_gradient as input_gradient
from ._interpolant import Interpolant as Interpolant
from ._interpolant import as_interpolant as as_interpolant
from ._interpolant import interpolate as interpolate
from ._lines import data_lines as data_lines
from ._lines import second_differences as second_differences
from ._lines import total_variation as total_variation
from ._record import Measure as Measure
from ._sampling import circle_points as circle_points
from ._sampling import sample as sample
from ._sampling import sphere_points as sphere_points
from ._sampling import values_of as values_of
from ._second_derivative import second_derivative as second_derivative
