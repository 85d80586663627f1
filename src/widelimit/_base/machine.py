"""What this machine has."""

import functools
import math
import os


@functools.cache
def memory() -> float:
    """Bytes of physical memory; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # of systems without this call or these names
        return math.inf
