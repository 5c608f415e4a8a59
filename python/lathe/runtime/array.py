"""Devices, and arrays that live on them: thin over NumPy's, because the device is the CPU."""

import os

import numpy as np

from ..names import why_not

# What a processor has no number for: None.
_OF_OTHER_DEVICES = {
    "max_threads_per_block", "warp_size", "max_shared_memory_per_block", "compute_version", "max_clock_rate",
    "max_thread_dimensions", "api_version", "driver_version",
}  # fmt: skip


def _system(name):
    """A number that the system knows of the machine, or None."""
    try:
        return max(os.sysconf(name), 0) or None
    except (ValueError, OSError):
        return None


class Device:
    """Where an array lives."""

    def __init__(self, type_name, index=0):
        self.type, self.index = type_name, index
        self.device_type, self.device_id = 1, index

    @property
    def exist(self):
        """Whether there is such a device."""
        return self.type == "cpu"

    @property
    def device_name(self):
        """What the device is called."""
        return self.type

    @property
    def multi_processor_count(self):
        """How many cores this process may run on."""
        return len(os.sched_getaffinity(0))

    @property
    def l2_cache_size_bytes(self):
        """The size of a core's second cache in bytes, or None where the system does not say."""
        return _system("SC_LEVEL2_CACHE_SIZE")

    @property
    def total_global_memory(self):
        """The machine's memory in bytes."""
        pages, size = _system("SC_PHYS_PAGES"), _system("SC_PAGE_SIZE")
        return pages * size if pages and size else None

    @property
    def available_global_memory(self):
        """The machine's memory that nobody uses, in bytes."""
        pages, size = _system("SC_AVPHYS_PAGES"), _system("SC_PAGE_SIZE")
        return pages * size if pages and size else None

    def __getattr__(self, name):
        if name in _OF_OTHER_DEVICES:
            return None
        why = None if name.startswith("_") else why_not("Device", name)
        raise AttributeError(f"a device has no '{name}'" + (f": {why}" if why else ""))

    def sync(self, stream=None):
        """Waits for what was started; on the CPU everything is done when it returns."""

    def __eq__(self, other):
        return isinstance(other, Device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __repr__(self):
        return f"{self.type}({self.index})"


def cpu(index=0):
    """The CPU."""
    return Device("cpu", index)


def device(dev, index=0):
    """The device of that name: "cpu", or "llvm" for it as a target."""
    if isinstance(dev, Device):
        return dev
    name, _, number = str(dev).partition(":")
    if name not in ("cpu", "llvm", "c"):
        raise ValueError(f"there is no device '{name}' here, only cpu")
    return Device("cpu", int(number or index))


class NDArray:
    """An array of a device. NumPy and DLPack see its memory without a copy."""

    def __init__(self, data, place=None):
        self._data, self.device = data, place or cpu()

    @property
    def shape(self):
        """The sizes."""
        return self._data.shape

    @property
    def dtype(self):
        """The elements' type, as "float32"."""
        return str(self._data.dtype)

    @property
    def ndim(self):
        """How many dimensions there are."""
        return self._data.ndim

    def numpy(self):
        """A copy as a NumPy array."""
        return self._data.copy()

    asnumpy = numpy

    def copyfrom(self, source):
        """Takes over the elements of another array of this shape."""
        source = source._data if isinstance(source, NDArray) else np.asarray(source, self._data.dtype)
        if source.shape != self._data.shape:
            raise ValueError(f"an array of shape {list(self.shape)} takes no elements of {list(source.shape)}")
        self._data[...] = source
        return self

    def copyto(self, target, mem_scope=None):
        """The elements in another array, or on a device."""
        if isinstance(target, Device):
            return NDArray(self._data.copy(), target)
        return target.copyfrom(self)

    def __array__(self, dtype=None, copy=None):
        data = self._data if dtype is None else self._data.astype(dtype)
        return data.copy() if copy else data

    def __dlpack__(self, **options):
        return self._data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._data.__dlpack_device__()

    def __getitem__(self, index):
        return NDArray(np.asarray(self._data[index]), self.device)

    def __setitem__(self, index, value):
        self._data[index] = value._data if isinstance(value, NDArray) else value

    def __len__(self):
        return len(self._data)

    def __repr__(self):
        return f"{self._data!r} on {self.device}"


Tensor = NDArray


def _dtype(name):
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, str(name)))


def array(arr, device=None, mem_scope=None):
    """A copy of a NumPy array, of anything like one, or of what has DLPack."""
    data = arr
    if isinstance(data, NDArray):
        return NDArray(data._data.copy(), device)
    if not isinstance(data, np.ndarray) and hasattr(data, "__dlpack__"):
        data = np.from_dlpack(data)
    return NDArray(np.array(data, order="C"), device)


def empty(shape, dtype="float32", device=None, mem_scope=None):
    """An array whose elements are not set."""
    return NDArray(np.empty(shape, _dtype(dtype)), device)


def from_dlpack(ext_tensor):
    """An array over the memory of a tensor."""
    return NDArray(np.from_dlpack(ext_tensor))
