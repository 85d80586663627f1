"""The passes that a layer of your own may need a rule for, beside `propagate`."""

from ._scale_free import homogeneity as homogeneity
from ._variances import visit_variances as visit_variances
