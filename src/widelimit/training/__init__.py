"""Training of finite networks: runs, records, checkpoints, and what the theory says of them."""

from ._ellipse import Ellipse as Ellipse
from ._ellipse import kernel_ellipse as kernel_ellipse
from ._optimise import optimise as optimise
from ._optimise import optimise_many as optimise_many
from ._optimise import progress_bar as progress_bar
from ._records import Training as Training
from ._stability import Stability as Stability
from ._stability import stability as stability
