"""The builder, and what all frames share."""

import threading

from ... import _lathe
from ...errors import ScriptError
from ...ir.node import NODE_CLASSES, Stmt, as_expr

_stmt = {kind: made for (family, kind), made in NODE_CLASSES.items() if family == "stmt"}
Buffer = NODE_CLASSES["buffer", "Buffer"]
Var = NODE_CLASSES["expr", "Var"]
_state = threading.local()


class IRBuilder:
    """Collects frames; get() is the function or module that the outermost one made."""

    def __init__(self):
        self.frames, self._result, self._names = [], None, {}

    def __enter__(self):
        if getattr(_state, "builder", None) is not None:
            raise ScriptError("an IRBuilder is at work already, and one stands not inside another")
        _state.builder = self
        return self

    def __exit__(self, *raised):
        _state.builder = None

    @staticmethod
    def current():
        """The builder at work."""
        found = getattr(_state, "builder", None)
        if found is None:
            raise ScriptError("this has a meaning inside `with IRBuilder():` only")
        return found

    @staticmethod
    def is_in_scope():
        """Whether a builder is at work."""
        return getattr(_state, "builder", None) is not None

    @staticmethod
    def name(name, value):
        """Names a variable or buffer that was just made, and gives it; of a list, its items."""
        if isinstance(value, (list, tuple)):
            return [IRBuilder.name(f"{name}_{index}", item) for index, item in enumerate(value)]
        for frame in reversed(IRBuilder.current().frames):
            renamed = frame.rename(value, name)
            if renamed is not None:
                return renamed
        if isinstance(value, Var):
            return value._with(name=name)
        if isinstance(value, Buffer):
            return value._with(name=name, data=Var(name, "handle"))
        raise ScriptError(f"a {type(value).__name__} has no name")

    @staticmethod
    def name_many(names, values):
        """Names several."""
        return [IRBuilder.name(name, value) for name, value in zip(names, values)]

    def get(self):
        """What was built."""
        if self._result is None:
            raise ScriptError("nothing was built: T.prim_func() or I.ir_module() is the outermost frame")
        return self._result

    def fresh(self, name):
        """`name`, or name_1, name_2 where it is taken."""
        count = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}_{count}" if count else name

    def innermost(self, kind, what):
        """The innermost frame of a kind."""
        for frame in reversed(self.frames):
            if isinstance(frame, kind):
                return frame
        raise ScriptError(f"{what} stands inside {kind.described}")

    def emit(self, thing):
        """Adds to the innermost frame; what no frame holds is the result."""
        if self.frames:
            self.frames[-1].add(thing)
        elif self._result is not None:
            raise ScriptError("one function or one module is built at a time")
        else:
            self._result = thing


class Frame:
    """A part of a program that is open. `finish(body)` makes its node; `given` is what `as` binds."""

    described = "a frame"
    given = None

    def __init__(self):
        self.statements = []

    def begin(self, builder):
        """Called when the frame is entered."""

    def finish(self, body):
        """The node made of the statements inside."""
        raise NotImplementedError

    def rename(self, value, name):
        """The value under another name, where this frame defines it."""
        return None

    def add(self, thing):
        """A statement inside."""
        if not isinstance(thing, Stmt):
            raise ScriptError(f"a {type(thing).__name__} does not stand inside {self.described}")
        self.statements.append(thing)

    def __enter__(self):
        builder = IRBuilder.current()
        self.begin(builder)
        builder.frames.append(self)
        return self.given

    def __exit__(self, kind, value, trace):
        builder = IRBuilder.current()
        if builder.frames[-1] is not self:
            raise ScriptError("frames end in the order opposite to that in which they began")
        builder.frames.pop()
        if kind is None:
            made = self.finish(sequence(self.statements))
            if made is not None:
                builder.emit(made)


def sequence(statements):
    """The statements as one."""
    flat = []
    for one in statements:
        flat.extend(one.seq if isinstance(one, _stmt["SeqStmt"]) else [one])
    if not flat:
        return _stmt["Evaluate"](as_expr(0, "int32"))
    return flat[0] if len(flat) == 1 else _stmt["SeqStmt"](flat)


def replaced(node, old, new):
    """The node with a variable replaced."""
    return _lathe.substitute(node, [(old, new)])


class Wrap(Frame):
    """A statement around what follows: finish(body) is a function given."""

    described = "a statement"

    def __init__(self, wrap, given=None):
        super().__init__()
        self._wrap, self.given, self._renamed = wrap, given, None

    def rename(self, value, name):
        """Another name for the variable that the statement defines."""
        if not isinstance(self.given, Var) or not isinstance(value, Var) or not value.same_as(self.given):
            return None
        self._renamed = name
        return value

    def finish(self, body):
        """The statement."""
        if self._renamed is None:
            return self._wrap(self.given, body)
        variable = self.given._with(name=self._renamed)
        return self._wrap(variable, replaced(body, self.given, variable))


