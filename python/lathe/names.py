"""What a module says of a name that it does not have."""

import difflib


def nearest(name, known):
    """The public name nearest to `name`."""
    public = [one for one in known if not one.startswith("_")]
    same = [one for one in public if one.lower() == name.lower()]
    return (same or difflib.get_close_matches(name, public, 1, 0.0) or [None])[0]


def refuser(module, namespace, left_out=None):
    """A __getattr__ for a module: AttributeError with the nearest name; `left_out` says why a known name is missing."""

    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        why = (left_out or {}).get(name)
        near = nearest(name, namespace)
        text = f"there is no {module}.{name}" + (f": {why}" if why else "")
        raise AttributeError(text + (f"; the nearest name is {module}.{near}" if near else ""))

    return __getattr__
