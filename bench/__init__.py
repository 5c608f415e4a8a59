"""Benchmarks: Lathe beside its peers, by one protocol.

    ./dev bench --list                       the lines there are
    ./dev bench resnet50-b1                  one line, all peers that are installed, one and two threads
    ./dev bench --group matmul --quick       a group, shortly
    ./dev bench --save now.json --html now.html
    ./dev bench --compare before.json now.json

A line is an ONNX model and its inputs. Each peer runs in a process of its own, pinned, at real-time priority where that
is allowed; the processes take turns, round after round, and only one is awake at a time. A line whose output is wrong
has no time. See docs/bench.md.
"""
