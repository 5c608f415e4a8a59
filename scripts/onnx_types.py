"""What each ONNX operator's inputs may be, out of the `onnx` package, as rows of C++: python scripts/onnx_types.py.

A row is an operator, after its domain and a dot where it is not of ONNX's own, and for each input the type parameter
that it shares with others, its name, and a set of element types as bits by their number in TensorProto. What any
release of the operator lists counts: a newer release takes more types, and nothing is lost where an older model has
them, too. The last input of a variadic operator stands for all that follow. After the inputs come the outputs: the
parameter of inputs that each shares, or -1.
"""

import onnx

EVERYTHING = 2**40 - 1
PREFIX, SUFFIX = "tensor(", ")"
# As the schema's texts write them, which are not all as TensorProto's names.
NUMBERS = {name.lower(): number for name, number in onnx.TensorProto.DataType.items()}


def bits_of(texts):
    """The set of a constraint; everything where it lists sequences, optionals or types that have no number here."""
    bits = 0
    for text in texts:
        name = text.removeprefix(PREFIX).removesuffix(SUFFIX)
        if not text.startswith(PREFIX) or name not in NUMBERS:
            return EVERYTHING
        bits |= 1 << NUMBERS[name]
    return bits


def inputs_of(releases):
    """(parameter, name, bits, whether inputs of the parameter are of one type) of each input of the newest release."""
    newest = releases[-1]
    parameters, rows = [], []
    for position, formal in enumerate(newest.inputs):
        bits = 0
        for release in releases:
            if position < len(release.inputs):
                bits |= bits_of(release.inputs[position].types)
        if formal.type_str not in parameters:
            parameters.append(formal.type_str)
        shared = formal.is_homogeneous
        rows.append((parameters.index(formal.type_str) if shared else -1, formal.name, bits))
    return rows


def outputs_of(schema):
    parameters = list(dict.fromkeys(formal.type_str for formal in schema.inputs))
    shared = [formal.is_homogeneous and formal.type_str in parameters for formal in schema.outputs]
    return [parameters.index(o.type_str) if s else -1 for o, s in zip(schema.outputs, shared, strict=True)]


def main():
    operators = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.deprecated:
            name = f"{schema.domain}.{schema.name}" if schema.domain else schema.name
            operators.setdefault(name, []).append(schema)
    for name in sorted(operators):
        releases = sorted(operators[name], key=lambda schema: schema.since_version)
        variadic = any(i.option == onnx.defs.OpSchema.FormalParameterOption.Variadic for i in releases[-1].inputs)
        inputs = ", ".join(f'{{{p}, "{n}", {bits:#x}}}' for p, n, bits in inputs_of(releases))
        outputs = ", ".join(str(parameter) for parameter in outputs_of(releases[-1]))
        print(f'{{"{name}", {str(variadic).lower()}, {{{inputs}}}, {{{outputs}}}}},')


if __name__ == "__main__":
    main()
