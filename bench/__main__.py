"""./dev bench: measures lines on peers, prints a table, and writes JSON or a page."""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from google.protobuf.message import DecodeError

from bench import calls, compile_time, language, programs, report, states, symbolic
from bench.files import SUFFIX, file_line, parsed
from bench.lines import all_lines, chosen_lines
from bench.measure import QUICK, PeerFailed, Protocol, ask, measure, prepare
from bench.peers import LATHE, PEERS
from scripts import setup
from tests.onnx_backend import __main__ as onnx_suite
from tests.support.worker import Worker


# What is no comparison by lines, by its first word.
COMMANDS = {"language": language.main, "compile": compile_time.main, "programs": programs.main,
            "symbolic": symbolic.main, "states": states.main, "calls": calls.main,
            "onnx-suite": onnx_suite.main}


def arguments_of(words):
    parser = argparse.ArgumentParser(
        prog="./dev bench", description="Measures Lathe beside its peers, by the protocol in docs/bench.md.",
        epilog="example: ./dev bench --group matmul --threads 1 --save products.json --html products.html. No "
        f"comparison by lines, with options of their own: {', '.join(COMMANDS)}, as ./dev bench compile --help",
    )  # fmt: skip
    parser.add_argument("lines", nargs="*", help="names of lines or of groups, or ONNX files (default: all lines)")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N",
                        help="the size of an open dimension of the files")  # fmt: skip
    parser.add_argument("--group", action="append", default=[], help="the lines of a group")
    parser.add_argument("--quick", action="store_true", help="few lines, few and short rounds")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default: 1,2)")
    names = ",".join(peer.name for peer in PEERS)
    parser.add_argument("--peers", help=f"which, of {names} (default: those that are quick to load)")
    parser.add_argument("--list", action="store_true", help="print the lines and stop")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the results as JSON, line by line")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with plots")
    parser.add_argument("--compare", nargs="+", type=Path, metavar="FILE",
                        help="earlier results: two files are compared and nothing is run")  # fmt: skip
    options = parser.parse_args(words)
    if options.compare and len(options.compare) > 2:
        parser.error("--compare takes one file of earlier results, or two")
    try:
        options.threads = [int(word) for word in options.threads.split(",")]
        options.chosen = chosen(options)
    except (ValueError, OSError, DecodeError) as error:
        parser.error(str(error))
    options.chosen_peers = [peer for peer in PEERS if peer.default]
    if options.peers:
        names = options.peers.split(",")
        unknown = set(names) - {peer.name for peer in PEERS}
        if unknown:
            parser.error(f"no peer is named '{sorted(unknown)[0]}'")
        options.chosen_peers = [peer for peer in PEERS if peer.name in (*names, LATHE, "onnxruntime")]
    return options


def chosen(options):
    """The lines that are named, those of files last; all where nothing is."""
    files = [Path(word) for word in options.lines if word.endswith(SUFFIX)]
    names = [word for word in options.lines if not word.endswith(SUFFIX)]
    known = chosen_lines(names, options.group, options.quick) if names or options.group or not files else []
    return [*known, *(file_line(path, parsed(options.dim)) for path in files)]


def interpreters_of(peers):
    """{peer: the Python that it runs in, or a PeerFailed that says why it could not be installed}."""
    result = {}
    for peer in peers:
        result[peer.name] = sys.executable
        if peer.requirements:
            try:
                folder = setup.make_environment([setup.ROOT / peer.requirements])
                result[peer.name] = str(folder / "bin" / "python")
            except (setup.SetupError, OSError) as error:
                result[peer.name] = PeerFailed(f"not installed: {' '.join(str(error).split())[:300]}")
    return result


def versions(peers, interpreters):
    result = {}
    for peer in peers:
        interpreter = interpreters[peer.name]
        if peer.name != LATHE and isinstance(interpreter, str):
            code = f"import importlib.metadata as m; print(m.version('{peer.package}'))"
            asked = subprocess.run([interpreter, "-c", code], capture_output=True, text=True)
            result[peer.package] = asked.stdout.strip() or "of no known version"
    return result


def cpu_name():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.machine()


def say(text):
    """What goes on, on one line that the next replaces; nothing where nobody looks."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def machine_limits(threads):
    result = {}
    for count in threads:
        with Worker("bench.worker") as worker:
            result[str(count)] = ask(worker, do="probe", threads=count, limits=True)
    return result


def run(options):
    interpreters = interpreters_of(options.chosen_peers)
    result = {
        "cpu": cpu_name(), "date": time.strftime("%Y-%m-%d"), "versions": versions(options.chosen_peers, interpreters),
        "machine": machine_limits(options.threads), "lines": [],
    }  # fmt: skip
    print(report.machine_text(result), flush=True)
    protocol = QUICK if options.quick else Protocol()
    for line in options.chosen:
        try:
            with tempfile.TemporaryDirectory() as folder:
                say(f"{line.name}: making the model and its reference")
                ready = prepare(line, Path(folder), sys.executable)
                for threads in options.threads:
                    machine = result["machine"][str(threads)]
                    record = measure(ready, threads, options.chosen_peers, protocol, machine, interpreters, say)
                    result["lines"].append(record)
                    say("")
                    print("  ".join(cell for cell in report.row(record) if cell), flush=True)
                    if options.save:
                        options.save.write_text(json.dumps(result, indent=1))
        except PeerFailed as failure:
            say("")
            print(f"{line.name}: {failure}", flush=True)
    return result


def main(words):
    if words and words[0] in COMMANDS:
        COMMANDS[words[0]](words[1:])
        return
    options = arguments_of(words)
    if options.list:
        for line in all_lines():
            print(f"{line.group:10} {line.name}{'  (quick)' if line.quick else ''}")
        return
    earlier = [json.loads(path.read_text()) for path in options.compare or []]
    if len(earlier) == 2:
        print(report.change_table(*earlier))
        return
    result = run(options)
    print("\n" + report.table(result))
    if options.peers:
        print("\n" + report.peers_table(result))
    if earlier:
        print("\n" + report.change_table(earlier[0], result))
    if options.html:
        options.html.write_text(report.page(result))


if __name__ == "__main__":
    main(sys.argv[1:])
