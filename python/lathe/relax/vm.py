"""Graph programs built and run as the field's virtual machine is: `build`, then `VirtualMachine(...)["main"](...)`.

What runs is what lathe.compile makes; there is no machine of instructions in between.
"""

import time

import numpy as np

from ..compiler import compile as _compile
from ..names import refuser, why_not
from ..runtime.array import Device, NDArray
from ..runtime.module import BenchmarkResult

_PIPELINES = ("default", "default_build", None)
_MODES = ("bytecode", "compiled")


def build(mod, target=None, params=None, relax_pipeline="default", tir_pipeline="default", exec_mode="bytecode", *,
          system_lib=None):  # fmt: skip
    """Compiles a module of graph and tensor functions, as lathe.compile does; the result goes to VirtualMachine.

    target: as for lathe.compile; None is this machine. relax_pipeline, tir_pipeline: "default", or a pass (a
    Sequential, for instance) that is applied to the module before the compiler's own. exec_mode: either name gives
    compiled code. ValueError: params, since the constants of a model stand in it; system_lib.
    """
    if params is not None:
        raise ValueError("params are not bound here: constants stand in the functions, and inputs are given to a call")
    if system_lib:
        raise ValueError("libraries are linked by the user's linker: lathe.compile(mod).save(\"model.a\")")
    if exec_mode not in _MODES:
        raise ValueError(f'exec_mode is "bytecode" or "compiled", not {exec_mode!r}')
    for pipeline in (relax_pipeline, tir_pipeline):
        if callable(pipeline):
            mod = pipeline(mod)
        elif pipeline not in _PIPELINES:
            raise ValueError(f'a pipeline is "default" or a pass, not {pipeline!r}')
    return _compile(mod, "native" if target is None else target)


def _given(argument):
    return argument._data if isinstance(argument, NDArray) else argument


def _given_back(result):
    """Arrays of Lathe for NumPy's, in lists and tuples too."""
    if isinstance(result, np.ndarray):
        return NDArray(result)
    return type(result)(map(_given_back, result)) if isinstance(result, (list, tuple)) else result


def _mean_seconds(call, number, least):
    """The mean of `number` calls in seconds, or of as many as last for `least` seconds."""
    while True:
        begin = time.perf_counter()
        for _ in range(number):
            call()
        seconds = time.perf_counter() - begin
        if seconds >= least:
            return seconds / number
        number *= max(2, min(10, int(least / max(seconds, 1e-9)) + 1))


class VirtualMachine:
    """Runs what build, lathe.compile or lathe.load gave: vm["main"](x, y) takes and gives arrays.

    rt_mod: the compiled module, or the path of a saved one. device: lathe.cpu(), or a list of it. memory_cfg, profile:
    have no effect; memory is planned when the module is compiled, and `lathe bench --profile` shows times.
    """

    module = None  # what it runs

    def __init__(self, rt_mod, device=None, memory_cfg=None, profile=False):
        from ..compiler import load

        for place in device if isinstance(device, (list, tuple)) else [device]:
            if place is not None and not (isinstance(place, Device) and place.exist):
                raise ValueError(f"a module runs on lathe.cpu(), not on {place}")
        self.module = load(rt_mod) if isinstance(rt_mod, (str, bytes)) else rt_mod
        if not callable(self.module):
            raise TypeError(f"a compiled module is expected, not {type(rt_mod).__name__}")
        self._saved, self._inputs, self._outputs = {}, {}, {}

    def __getitem__(self, name):
        if name in self._saved:
            return self._saved[name]
        self._check(name)
        return lambda *args, **named: _given_back(
            self.module(*map(_given, args), **{key: _given(value) for key, value in named.items()})
        )

    def _check(self, name):
        if name != "main":
            raise AttributeError(f"'{name}' cannot be called from outside: a compiled module has 'main'")

    def save_function(self, func_name, saved_name, *args, include_return=True, **kwargs):
        """Lets vm[saved_name]() call a function with these arguments; without include_return it gives None."""
        function = self[func_name]

        def saved():
            result = function(*args, **kwargs)
            return result if include_return else None

        self._saved[saved_name] = saved

    def set_input(self, func_name, *args, **kwargs):
        """Sets what invoke_stateful gives the function."""
        self._check(func_name)
        self._inputs[func_name] = (args, kwargs)

    def invoke_stateful(self, func_name):
        """Runs a function on what set_input gave it."""
        self._check(func_name)
        if func_name not in self._inputs:
            raise ValueError(f"set_input gives '{func_name}' its inputs first")
        args, kwargs = self._inputs[func_name]
        self._outputs[func_name] = self[func_name](*args, **kwargs)

    def get_outputs(self, func_name):
        """What invoke_stateful computed: an array, or a tuple of them."""
        if func_name not in self._outputs:
            raise ValueError(f"'{func_name}' was not run by invoke_stateful")
        return self._outputs[func_name]

    def time_evaluator(self, func_name, dev=None, number=10, repeat=1, min_repeat_ms=0, cooldown_interval_ms=0,
                       repeats_to_cooldown=1, f_preproc=""):  # fmt: skip
        """A callable that runs the function with its arguments and gives a BenchmarkResult: `repeat` figures, each the
        mean of `number` runs, or of as many as last for `min_repeat_ms`."""
        function = self[func_name]

        def evaluate(*args, **kwargs):
            seconds = []
            for turn in range(repeat):
                if turn and cooldown_interval_ms and turn % repeats_to_cooldown == 0:
                    time.sleep(cooldown_interval_ms / 1000)
                seconds.append(_mean_seconds(lambda: function(*args, **kwargs), number, min_repeat_ms / 1000))
            return BenchmarkResult(seconds)

        return evaluate

    def __getattr__(self, name):
        why = why_not("VirtualMachine", name)
        raise AttributeError(f"a VirtualMachine has no '{name}'" + (f": {why}" if why else ""))


__all__ = ["VirtualMachine", "build"]

__getattr__ = refuser("lathe.relax.vm", globals())
