"""Scalars, arrays, safe numerics, quadrature and the pass mechanism: what everything else rests on."""

__version__ = "0.2.0"
