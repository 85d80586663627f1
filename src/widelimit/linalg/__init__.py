"""Kernel matrices as numbers: tiles, factorisations, iterations. Nothing here knows a network."""

from widelimit._base.processes import processes as processes

from ._cg import System as System
from ._cholesky import Cholesky as Cholesky
from ._cholesky import cholesky as cholesky
from ._conjugate_gradients import conjugate_gradients as conjugate_gradients
from ._eigen import Eigen as Eigen
from ._eigen import eigh as eigh
from ._inverse_diagonal import InverseDiagonal as InverseDiagonal
from ._inverse_diagonal import inverse_diagonal as inverse_diagonal
from ._low_rank import LowRank as LowRank
from ._low_rank import Preconditioner as Preconditioner
from ._low_rank import partial_cholesky as partial_cholesky
from ._operator import KernelOperator as KernelOperator
from ._ridge import RidgePath as RidgePath
from ._ridge import leave_one_out as leave_one_out
from ._ridge import ridge_path as ridge_path
from ._solution import Solution as Solution
from ._store import Job as Job
from ._store import StoredGram as StoredGram
from ._tiles import TiledGram as TiledGram
