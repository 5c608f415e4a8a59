"""Writes one of the test networks to a file, for the benchmarks and for trying things by hand."""

import argparse

import onnx

from tests.models import IMAGE_MODELS, MODELS


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.models", description=__doc__,
        epilog="example: python -m tests.models resnet50 --height 224 --width 192 --batch 1 -o resnet50.onnx",
    )  # fmt: skip
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--batch", default="batch", help="a number, or a name for a symbolic dimension")
    parser.add_argument("--height", type=int, help="pixels (image models)")
    parser.add_argument("--width", type=int, help="pixels (image models)")
    parser.add_argument("--multiplier", type=float, help="of the numbers of channels (image models)")
    parser.add_argument("--seed", type=int)
    arguments = parser.parse_args()
    options = {"batch": int(arguments.batch) if arguments.batch.isdigit() else arguments.batch}
    for name in ("height", "width", "multiplier"):
        if getattr(arguments, name) is not None:
            if arguments.model not in IMAGE_MODELS:
                parser.error(f"--{name} is for {', '.join(IMAGE_MODELS)}")
            options[name] = getattr(arguments, name)
    if arguments.seed is not None:
        options["seed"] = arguments.seed
    onnx.save(MODELS[arguments.model](**options), arguments.output)


if __name__ == "__main__":
    main()
