"""InferenceSession: the interface people know from ONNX Runtime, over compiled models."""

import os

from .compiler import compile, load

_TYPE_NAMES = {
    "float32": "float", "float64": "double", "bool": "bool", "object": "string",
    "float8_e4m3fn": "float8e4m3fn", "float8_e4m3fnuz": "float8e4m3fnuz", "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz",
}  # fmt: skip


class NodeArg:
    """An input or output: .name, .shape (sizes, symbols' names or None), .type ("tensor(float)")."""

    def __init__(self, port):
        self.name = port.name
        self.shape = list(port.shape) if port.shape is not None else None
        self.type = f"tensor({_TYPE_NAMES.get(port.dtype, port.dtype)})"

    def __repr__(self):
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class SessionOptions:
    """The options that mean something here: intra_op_num_threads (0: by the usual rule). Others are accepted."""

    def __init__(self):
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.log_severity_level = 2


class ModelMetadata:
    """What an artifact says of itself."""

    def __init__(self, metadata):
        self.producer_name = metadata.get("builder", "lathe")
        self.custom_metadata_map = dict(metadata)


class InferenceSession:
    """Runs a model by names of inputs and outputs.

    path_or_bytes: an ONNX model (path, bytes or ModelProto), or a saved artifact (.so). providers is accepted and says
    nothing: the CPU runs it. target, winograd, dims, states: of a model, as for compile(). A session of a model that
    keeps states has one of its own, `state`, with which each run goes on (docs/states.md).
    """

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, *, target="native",
                 winograd=False, dims=None, states=None):  # fmt: skip
        threads = getattr(sess_options, "intra_op_num_threads", 0) or None
        is_artifact = isinstance(path_or_bytes, (str, os.PathLike)) and os.fspath(path_or_bytes).endswith(".so")
        if is_artifact:
            self._executable = load(path_or_bytes, threads=threads)
        else:
            self._executable = compile(
                path_or_bytes, target, threads=threads, winograd=winograd, dims=dims, states=states
            )
        self.state = self._executable.make_state() if self._executable.states else None
        self._options = sess_options or SessionOptions()
        self._inputs = [NodeArg(port) for port in self._executable.inputs]
        self._outputs = [NodeArg(port) for port in self._executable.outputs]
        self._input_names = [port.name for port in self._inputs]
        self._output_index = {port.name: index for index, port in enumerate(self._outputs)}

    def get_inputs(self):
        return self._inputs

    def get_outputs(self):
        return self._outputs

    def get_providers(self):
        return ["CPUExecutionProvider"]

    def get_session_options(self):
        return self._options

    def get_modelmeta(self):
        return ModelMetadata(self._executable.metadata)

    def run(self, output_names, input_feed, run_options=None):
        """The outputs named (all for None), as a list."""
        unknown = [name for name in output_names or () if name not in self._output_index]
        if unknown:
            raise ValueError(f"there is no output {unknown[0]!r}; the model has {list(self._output_index)}")
        missing = [name for name in self._input_names if name not in input_feed]
        if missing:
            raise ValueError(f"the input {missing[0]!r} is missing from the feed")
        extra = [name for name in input_feed if name not in self._input_names]
        if extra:
            raise ValueError(f"there is no input {extra[0]!r}; the model takes {self._input_names}")
        results = self._executable.run([input_feed[name] for name in self._input_names], state=self.state)
        if not output_names:
            return results
        return [results[self._output_index[name]] for name in output_names]
