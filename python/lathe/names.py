"""What a module says of a name that it does not have."""

import difflib

from .left_out import LEFT_OUT


def nearest(name, known):
    """The public name nearest to `name`."""
    public = [one for one in known if not one.startswith("_")]
    same = [one for one in public if one.lower() == name.lower()]
    return (same or difflib.get_close_matches(name, public, 1, 0.0) or [None])[0]


def why_not(space, name):
    """Why a name of the vocabulary is left out of `space`, or nothing."""
    return LEFT_OUT.get(space.removeprefix("lathe."), {}).get(name)


def refuser(module, namespace):
    """A __getattr__ for a module: AttributeError that says why a known name is left out, or which name is nearest."""

    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        text = f"there is no {module}.{name}"
        if why := why_not(module, name):
            raise AttributeError(f"{text}: {why}")
        near = nearest(name, namespace)
        raise AttributeError(text + (f"; the nearest name is {module}.{near}" if near else ""))

    return __getattr__
