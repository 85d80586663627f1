"""What can be read off a description: check, shapes, text, LaTeX, citations."""

from ._check import Kind as Kind
from ._check import Signal as Signal
from ._check import check as check
from ._check import expect_network as expect_network
from ._cite import cite as cite
from ._latex import latex as latex
from ._latex import latex_kernels as latex_kernels
from ._shape import Shape as Shape
from ._shape import shape as shape
from ._text import from_json as from_json
from ._text import from_text as from_text
from ._text import to_json as to_json
from ._text import to_text as to_text
from ._widths import Inferred as Inferred
from ._widths import Sizes as Sizes
from ._widths import check_pixels as check_pixels
from ._widths import infer as infer
