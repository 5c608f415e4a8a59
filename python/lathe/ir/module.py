"""What Python adds to IRModule: functions by name, changes, text."""

from .node import NODE_CLASSES, BaseFunc, IRModule
from .printing import for_notebook, script, show

GlobalVar = NODE_CLASSES["expr", "GlobalVar"]


class GlobalVarMap(dict):
    """Functions by their GlobalVar; a name finds them too."""

    def __init__(self, module):
        super().__init__((GlobalVar(name), module._find(name)) for name in module._kinds)
        self._module = module

    def __getitem__(self, key):
        return self._module[key]

    def get(self, key, default=None):
        """The function of that name, or `default`."""
        return self[key] if key in self else default

    def __contains__(self, key):
        return _name(key) in self._module._kinds


def _name(key):
    return key if isinstance(key, str) else key.name


def _known_name(self, key):
    """The name in the module: a module of one function has it as main, too."""
    name = _name(key)
    if name in self._kinds:
        return name
    if name == "main" and len(self._kinds) == 1:
        return next(iter(self._kinds))
    raise KeyError(f"the module has no function '{_name(key)}', only {', '.join(self._kinds) or 'nothing'}")


def _get(self, key):
    return self._find(_known_name(self, key))


def _get_global_var(self, name):
    """The name of a function as the IR has it."""
    return GlobalVar(_known_name(self, name))


def _update(self, other):
    """Takes over another module's functions, or those of a dict."""
    names = other._kinds if isinstance(other, IRModule) else other
    for key in list(names):
        self._set(_name(key), other[key])


def _from_expr(expr, name=None):
    """A module of one function, called `name` or as its attribute global_symbol says, or main."""
    return IRModule({name or expr.attrs.get("global_symbol") or "main": expr})


def _with_attrs(self, attrs):
    """The module with several attributes set."""
    made = self._copy()
    made._set_attrs({**self.attrs, **attrs})
    return made


def _with_attr(self, attr_key, attr_value):
    """The module with an attribute set; the module itself stays as it is."""
    return _with_attrs(self, {attr_key: attr_value})


def _without_attr(self, attr_key):
    """The module without an attribute."""
    made = self._copy()
    made._set_attrs({key: value for key, value in self.attrs.items() if key != attr_key})
    return made


def _get_attr(self, attr_key):
    """The value of an attribute, or None."""
    return self.attrs.get(attr_key)


def as_module(thing, what="a module"):
    """A module as it is; a function as a module of its own."""
    if isinstance(thing, IRModule):
        return thing
    if isinstance(thing, BaseFunc):
        return _from_expr(thing)
    if hasattr(thing, "mod") and isinstance(thing.mod, IRModule):
        return thing.mod
    raise TypeError(f"{what} is an IRModule or a function, not {type(thing).__name__}")


def _written(self, name, options):
    if name is not None:
        raise ValueError("a name is for one function; a module's have theirs")
    return self._text(options)


def _whole_text(self):
    return self._text()


def _html(self):
    return for_notebook(self._text())


def _set_item(self, var, func):
    """Sets the function of that name."""
    self._set(_name(var), func)


def _delete_item(self, key):
    self._erase(_name(key))


def _contains(self, key):
    return _name(key) in self._kinds


def _get_global_vars(self):
    """The functions' names as the IR has them, in order."""
    return [GlobalVar(name) for name in self._kinds]


def _iterate(self):
    return iter(_get_global_vars(self))


def _items(self):
    """Pairs of a GlobalVar and its function, in order."""
    return [(GlobalVar(name), self._find(name)) for name in self._kinds]


IRModule.script, IRModule.show, IRModule._written = script, show, _written
IRModule.__str__ = _whole_text
IRModule.__getitem__ = _get
IRModule.__setitem__ = _set_item
IRModule.__delitem__ = _delete_item
IRModule.__contains__ = _contains
IRModule.__iter__ = _iterate
IRModule.items = IRModule.functions_items = _items
IRModule.get_global_var = _get_global_var
IRModule.get_global_vars = _get_global_vars
IRModule.update_func = _set_item
IRModule.update = _update
IRModule.clone = IRModule._copy
IRModule.from_expr = staticmethod(_from_expr)
IRModule.with_attr, IRModule.with_attrs = _with_attr, _with_attrs
IRModule.without_attr, IRModule.get_attr = _without_attr, _get_attr
IRModule._repr_html_ = _html

__all__ = ["GlobalVar", "GlobalVarMap", "IRModule", "as_module"]
