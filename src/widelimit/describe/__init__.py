"""Passes that only read a network."""

from ._check import Signal as Signal
from ._check import check as check
from ._check import signal as signal
from ._cite import cite as cite
from ._latex import latex as latex
from ._latex import latex_kernels as latex_kernels
from ._shape import Shape as Shape
from ._shape import shape as shape
from ._structure import activations_of as activations_of
from ._structure import is_fresh as is_fresh
from ._structure import linear_factor as linear_factor
from ._text import from_json as from_json
from ._text import from_text as from_text
from ._text import to_json as to_json
from ._text import to_text as to_text
