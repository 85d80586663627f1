"""Scalars, arrays, safe numerics, quadrature and the pass mechanism: what everything else rests on."""
