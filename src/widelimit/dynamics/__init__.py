"""Training of the infinite network: gradient flow and descent, any loss, any time."""

from ._ensemble import ensemble as ensemble
from ._losses import Loss as Loss
from ._losses import as_loss as as_loss
from ._losses import check_targets as check_targets
from ._train import train as train
from ._trained import Trained as Trained
