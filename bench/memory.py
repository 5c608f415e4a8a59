"""Memory in whole cache lines: a vector that straddles two is read twice."""

import numpy as np

LINE_BYTES = 64


def aligned_empty(shape, dtype):
    """An array whose memory begins with a cache line and is not written yet."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + LINE_BYTES, np.uint8)
    start = -memory.ctypes.data % LINE_BYTES
    return memory[start : start + size].view(dtype).reshape(shape)
