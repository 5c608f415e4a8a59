"""IndexMap: a function from the indices of a buffer to others, with its inverse."""

import inspect

from .. import _lathe
from ..errors import ScheduleError
from ..ir.node import NODE_CLASSES, as_expr

Var = NODE_CLASSES["expr", "Var"]


class AxisSeparator:
    """What AXIS_SEPARATOR is: among the indices that a map gives, it begins a group of axes."""

    __slots__ = ()

    def __repr__(self):
        return "AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()
_MOST_INDICES = 1024  # of no buffer that anybody has; more would only be slow


def map_text(function):
    """The text of an index map that is given as a function, an IndexMap, or its text."""
    if isinstance(function, str):
        return function
    return (function if isinstance(function, IndexMap) else IndexMap.from_func(function)).text


def ranges_text(function, ndim):
    """The text of a map to where ranges begin and end; the function gives a pair, or an index, for each axis."""
    if isinstance(function, str):
        return function

    def bounds(*indices):
        ranges = function(*indices)
        ranges = ranges if isinstance(ranges, (tuple, list)) else [ranges]
        pairs = [one if isinstance(one, (tuple, list)) else (one, one + 1) for one in ranges]
        if any(len(pair) != 2 for pair in pairs):
            raise ValueError("a range is an index, or a pair of where it begins and where it ends")
        return [bound for pair in pairs for bound in pair]

    return IndexMap.from_func(bounds, ndim).text


def map_and_separators(function, rank):
    """The text of a map of a buffer's indices and where it gives AXIS_SEPARATOR; rank() is the buffer's."""
    if not callable(function):
        return map_text(function), []
    made, separators = IndexMap.from_func_with_separators(function, rank() if _parameters(function)[1] else None)
    return made.text, separators


def _parameters(function):
    """The names of a function's positional parameters, and whether it takes any number more."""
    parameters = list(inspect.signature(function).parameters.values())
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return names, any(p.kind is p.VAR_POSITIONAL for p in parameters)


class IndexMap:
    """Indices from indices: IndexMap.from_func(lambda i, j: (j, i // 4, i % 4))."""

    AXIS_SEPARATOR = AXIS_SEPARATOR

    def __init__(self, initial_indices, final_indices, inverse_index_map=None):
        self.initial_indices, self.final_indices = list(initial_indices), [as_expr(index) for index in final_indices]
        self.inverse_index_map = inverse_index_map

    @classmethod
    def from_func(cls, mapping_function, ndim=None, inverse_index_map=None, *, index_dtype="int64"):
        """The map that a Python function computes; `ndim` says how many indices one of *args takes."""
        made, separators = cls.from_func_with_separators(
            mapping_function, ndim, inverse_index_map, index_dtype=index_dtype
        )
        if separators:
            raise ValueError("the function gives AXIS_SEPARATOR, which IndexMap.from_func_with_separators takes")
        return made

    @classmethod
    def from_func_with_separators(cls, mapping_function, ndim=None, inverse_index_map=None, *, index_dtype="int64"):
        """The map that a Python function computes, and where it gives IndexMap.AXIS_SEPARATOR: before which indices.

        lambda i, j: (j, AXIS_SEPARATOR, i // 4, i % 4) gives the map to (j, i // 4, i % 4), and [1].
        """
        if not callable(mapping_function):
            raise TypeError(f"an index map is a function of indices, not {type(mapping_function).__name__}")
        names, any_count = _parameters(mapping_function)
        if any_count:
            if ndim is None:
                raise TypeError("an index map names its indices one by one, or ndim says how many there are")
            if ndim > _MOST_INDICES:
                raise ValueError(f"an index map takes at most {_MOST_INDICES} indices, not {ndim}")
            names += [f"i{number}" for number in range(len(names), ndim)]
        if ndim is not None and len(names) != ndim:
            raise ValueError(f"the map takes {len(names)} indices, not {ndim}")
        indices = [Var(name, index_dtype) for name in names]
        given = mapping_function(*indices)
        results, separators = [], []
        for result in given if isinstance(given, (tuple, list)) else [given]:
            if isinstance(result, AxisSeparator):
                separators.append(len(results))
            else:
                results.append(result)
        if inverse_index_map is not None and not isinstance(inverse_index_map, IndexMap):
            inverse_index_map = cls.from_func(inverse_index_map, len(results), index_dtype=index_dtype)
        return cls(indices, results, inverse_index_map), separators

    @property
    def text(self):
        """The map as a Python lambda of int64 indices."""
        fresh = [Var(f"i{number}", "int64") for number in range(len(self.initial_indices))]
        pairs = list(zip(self.initial_indices, fresh))
        wide = pairs and self.initial_indices[0].dtype == "int64"
        if pairs and not wide:
            raise ScheduleError("a map that a schedule takes is of int64 indices")
        texts = [str(_lathe.substitute(result, pairs)).replace("T.int64(", "(") for result in self.final_indices]
        return f"lambda {', '.join(index.name for index in fresh)}: ({', '.join(texts)},)"

    def __lathe_value__(self):
        return self.text

    def map_indices(self, indices):
        """What the map makes of indices."""
        if len(indices) != len(self.initial_indices):
            raise ValueError(f"the map takes {len(self.initial_indices)} indices, not {len(indices)}")
        known = _lathe.Analyzer()
        pairs = list(zip(self.initial_indices, indices))
        return [known.simplify(_lathe.substitute(result, pairs)) for result in self.final_indices]

    def _image(self, shape):
        bounds = [getattr(size, "extent", size) for size in shape]
        if len(bounds) != len(self.initial_indices):
            raise ValueError(f"the map takes {len(self.initial_indices)} indices, and the shape has {len(bounds)}")
        outputs = [Var(f"o{number}", "int64") for number in range(len(self.final_indices))]
        sizes = [as_expr(size, "int64") for size in bounds]
        extents, whole, preimages = _lathe.index_map_image(self.text, sizes, outputs)
        return outputs, extents, whole, preimages, bounds

    def map_shape(self, shape):
        """The smallest shape from 0 that holds what the map makes of a shape."""
        return list(self._image(shape)[1])

    def map_tensor(self, arr_src):
        """The elements of an array where the map puts them; what it meets nothing of is 0."""
        import numpy as np

        from ..runtime import NDArray

        source = arr_src.numpy() if isinstance(arr_src, NDArray) else np.asarray(arr_src)
        shape = [int(getattr(extent, "value", extent)) for extent in self.map_shape(list(source.shape))]
        made = np.zeros(shape, source.dtype)
        known = _lathe.Analyzer()
        for place in np.ndindex(*source.shape):
            pairs = [(v, as_expr(int(i), v.dtype)) for v, i in zip(self.initial_indices, place)]
            target = tuple(known.simplify(_lathe.substitute(index, pairs)).value for index in self.final_indices)
            made[target] = source[place]
        return NDArray(made) if isinstance(arr_src, NDArray) else made

    def inverse(self, shape):
        """The map back, where the map meets every element of its result's shape once."""
        if self.inverse_index_map is not None:
            return self.inverse_index_map
        outputs, _, whole, preimages, _ = self._image(shape)
        if not whole:
            raise ScheduleError("the map does not meet every element of its result; non_surjective_inverse says which")
        return IndexMap(outputs, preimages)

    def non_surjective_inverse(self, shape):
        """The map back, and where in its result's shape the map meets nothing."""
        outputs, _, whole, preimages, bounds = self._image(shape)
        if whole:
            return IndexMap(outputs, preimages), as_expr(False)
        from .op import all as all_of

        met = [back == out for back, out in zip(self.map_indices(preimages), outputs)]
        met += [condition for index, size in zip(preimages, bounds) for condition in (index >= 0, index < size)]
        return IndexMap(outputs, preimages), _lathe.Analyzer().simplify(~all_of(*(as_expr(one) for one in met)))

    def is_equivalent_to(self, other_map):
        """Whether both maps make the same of the same indices."""
        if len(self.initial_indices) != len(other_map.initial_indices):
            return False
        if len(self.final_indices) != len(other_map.final_indices):
            return False
        known = _lathe.Analyzer()
        pairs = zip(self.final_indices, other_map.map_indices(self.initial_indices))
        return all(known.can_prove_equal(a, b) for a, b in pairs)

    def __repr__(self):
        names = ", ".join(index.name for index in self.initial_indices)
        return f"IndexMap(lambda {names}: ({', '.join(map(str, self.final_indices))},))"
