"""Layouts: the order of a tensor's axes in letters, "NCHW16c", and changes from one to another."""

from .. import _lathe
from ..ir.node import NODE_CLASSES, PrimExpr, as_expr
from .index_map import IndexMap

Var = NODE_CLASSES["expr", "Var"]


class Layout:
    """The axes of a tensor, in order: Layout("NCHW16c").

    An upper-case letter is a primal axis, the same letter in lower case its subordinate axis, with its extent before
    it: element k of the channels lies at k // 16 of C and k % 16 of c. No letter stands twice, and a subordinate axis
    has its primal one; "" is a scalar's. A text that is no layout raises NodeError with the column.

    dtype: what indices and extents that are given as numbers become.
    """

    def __init__(self, name, dtype="int32"):
        if not isinstance(name, str):
            raise TypeError(f'a layout is a text such as "NCHW16c", not {type(name).__name__}')
        self._state, self.dtype = _lathe.layout(name), str(dtype)

    @property
    def name(self):
        """Its text; "" of a scalar."""
        return self._state.name

    def __len__(self):
        return len(self._state.axes)

    def __contains__(self, axis):
        return isinstance(axis, str) and len(axis) == 1 and axis in self._state.axes

    def __getitem__(self, index):
        """The letter of the axis at a position."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"layout '{self.name}' has {len(self)} axes, and none is number {index}")
        return self._state.axes[index]

    def index_of(self, axis):
        """The position of an axis, -1 where the layout has none of that letter."""
        return self._state.axes.find(_letter(axis))

    def factor_of(self, axis):
        """The extent of an axis' subordinate: of `c` in NCHW16c for "C" and "c" alike, -1 where there is none."""
        return self._state.factor_of(_letter(axis))

    def __eq__(self, other):
        return self.name == other.name if isinstance(other, Layout) else NotImplemented

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"Layout({self.name})"


def _letter(axis):
    if not (isinstance(axis, str) and len(axis) == 1 and axis.isascii() and axis.isalpha()):
        raise ValueError(f"an axis is one letter, not {axis!r}")
    return axis


class BijectiveLayout:
    """The change from one layout to another of the same primal axes, and back.

    Indices and extents are integers or expressions; the results are simplified expressions. An index of a subordinate
    axis is taken to be in its range.
    """

    def __init__(self, src_layout, dst_layout):
        self.src_layout, self.dst_layout = layout(src_layout), layout(dst_layout)
        _lathe.layouts_convertible(self.src_layout._state, self.dst_layout._state)

    def forward_index(self, index):
        """The indices, one for each axis of dst_layout, of the element that has the indices `index` in src_layout."""
        return _converted(_lathe.convert_indices, self.src_layout, self.dst_layout, index)

    def backward_index(self, index):
        """The indices in src_layout of the element that has the indices `index` in dst_layout."""
        return _converted(_lathe.convert_indices, self.dst_layout, self.src_layout, index)

    def forward_shape(self, shape):
        """The smallest shape in dst_layout that holds a tensor of `shape` in src_layout.

        A primal extent that its factor does not divide is rounded up, and the rest is padding: from NC to NC16c [1, 30]
        becomes [1, 2, 16], and backward_shape of that is [1, 32].
        """
        return _converted(_lathe.convert_shape, self.src_layout, self.dst_layout, shape)

    def backward_shape(self, shape):
        """The smallest shape in src_layout that holds a tensor of `shape` in dst_layout."""
        return _converted(_lathe.convert_shape, self.dst_layout, self.src_layout, shape)

    def forward_map(self):
        """forward_index as an IndexMap, for Schedule.transform_layout.

        That keeps what the map meets: of an extent below its factor no padding is made, and 1 x 3 is [1, 1, 3] by 16c.
        """
        return _map(self.src_layout, self.forward_index)

    def backward_map(self):
        """backward_index as an IndexMap."""
        return _map(self.dst_layout, self.backward_index)

    def __eq__(self, other):
        if not isinstance(other, BijectiveLayout):
            return NotImplemented
        return (self.src_layout, self.dst_layout) == (other.src_layout, other.dst_layout)

    def __hash__(self):
        return hash((self.src_layout, self.dst_layout))

    def __repr__(self):
        return f"BijectiveLayout({self.src_layout} -> {self.dst_layout})"


def _converted(convert, source, target, values):
    values = list(values)
    # Numbers become what the expressions beside them are, since they are added to each other.
    dtype = next((value.dtype for value in values if isinstance(value, PrimExpr)), source.dtype)
    return convert(source._state, target._state, [as_expr(value, dtype) for value in values])


def _map(source, convert):
    indices = [Var(axis, "int64") for axis in source]
    return IndexMap(indices, convert(indices))


def layout(layout_str, dtype="int32"):
    """The layout of that text; a layout stays as it is."""
    return layout_str if isinstance(layout_str, Layout) else Layout(layout_str, dtype)


def bijective_layout(src_layout, dst_layout):
    """The change between two layouts or their texts; NodeError where their primal axes are not the same."""
    return BijectiveLayout(src_layout, dst_layout)
