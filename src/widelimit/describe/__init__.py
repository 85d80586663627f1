"""Passes that only read a network."""

from ._check import Signal as Signal
from ._check import check as check
from ._structure import activations_of as activations_of
from ._structure import is_fresh as is_fresh
from ._structure import linear_factor as linear_factor
