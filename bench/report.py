"""Results for people: a table of text, and a page of its own."""

import html
import math

from bench.compare import best_peer, changes, is_noisy, ratio, time_of
from bench.peers import LATHE

COLUMNS = ("line", "threads", "lathe", "best peer", "", "ratio", "limit", "share", "compile", "load", "first",
           "memory", "theirs", "artifact", "")  # fmt: skip


def duration(seconds):
    """Three digits with a unit."""
    if seconds is None:
        return "–"
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def size(count):
    if count is None:
        return "–"
    return f"{count / 2**20:.3g} MB" if count >= 2**20 else f"{count / 2**10:.3g} KB"


def memory(entry):
    """What a process took beyond the peer's own code and Python."""
    return entry["peak_bytes"] - entry["base_bytes"] if "peak_bytes" in entry else None


def row(record):
    """The cells of a line, as of COLUMNS; the last says why there is no time, or warns."""
    ours, peer = record["peers"].get(LATHE, {}), best_peer(record)
    theirs, ratio_now, time = record["peers"].get(peer, {}), ratio(record), time_of(ours)
    note = ours.get("failure", "")
    if not note and (is_noisy(ours) or (peer and is_noisy(theirs))):
        note = "noisy"
    return (
        record["name"], str(record["threads"]), duration(time), duration(time_of(theirs)) if peer else "–", peer or "",
        f"{ratio_now:.2f}" if ratio_now else "–", duration(record["limit_s"]),
        f"{record['limit_s'] / time:.0%}" if time and record["limit_s"] else "–", duration(ours.get("compile_s")),
        duration(ours.get("load_s")), duration(ours.get("first_s")), size(memory(ours)), size(memory(theirs)),
        size(ours.get("artifact_bytes")), note,
    )  # fmt: skip


def mean_ratios(lines):
    """{(group, threads): (geometric mean of the ratios, how many, the least)}."""
    ratios = {}
    for record in lines:
        value = ratio(record)
        if value:
            ratios.setdefault((record["group"], record["threads"]), []).append(value)
    return {
        key: (math.exp(sum(map(math.log, values)) / len(values)), len(values), min(values))
        for key, values in ratios.items()
    }


def table(result):
    rows = [COLUMNS, *map(row, result["lines"])]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(COLUMNS))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows]
    for (group, threads), (mean, count, least) in mean_ratios(result["lines"]).items():
        text.append(f"{group}, {threads} threads: geometric mean {mean:.2f} over {count} lines, least {least:.2f}")
    return "\n".join(text)


def peers_table(result):
    """Every peer's time, a column each; below, why those that failed have none."""
    names = list(dict.fromkeys(name for record in result["lines"] for name in record["peers"]))
    rows, failures = [("line", "threads", *names)], []
    for record in result["lines"]:
        cells = []
        for name in names:
            entry = record["peers"].get(name, {})
            cells.append("failed" if "failure" in entry else duration(time_of(entry)))
            if "failure" in entry:
                failures.append(f"{name}, {record['name']}, {record['threads']} threads: {entry['failure']}")
        rows.append((record["name"], str(record["threads"]), *cells))
    widths = [max(map(len, column)) for column in zip(*rows)]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows]
    return "\n".join(text + failures)


def machine_text(result):
    """One line a number of threads: what the machine can do, as it was measured first."""
    lines = [result["cpu"] + "; " + ", ".join(f"{name} {version}" for name, version in result["versions"].items())]
    for threads, machine in result["machine"].items():
        levels = ", ".join(f"{level['level']} {level['gb_s']:.0f}" for level in machine["memory"])
        lines.append(f"{threads} threads: {machine['gflop_s']:.0f} GFLOP/s; reads in GB/s: {levels}")
    return "\n".join(lines)


def change_table(before, now):
    """Lathe's times of two runs, the largest change first; what is within the noise of the two is marked."""
    lines = []
    for name, threads, factor, noise in sorted(changes(before, now), key=lambda c: -abs(math.log(c[2]))):
        note = "within the noise" if abs(factor - 1) <= noise else "faster" if factor > 1 else "SLOWER"
        lines.append(f"{name:34} {threads} threads  {factor:6.2f} times as fast, noise {noise:4.0%}  {note}")
    return "\n".join(lines) or "the two runs have no line in common"


def bars(record):
    """A line's times as bars, the limit as a mark on each."""
    times = {name: time_of(entry) for name, entry in record["peers"].items()}
    times = {name: time for name, time in times.items() if time}
    limit = record["limit_s"]
    longest = max([*times.values(), limit or 0])
    mark = f'<div class="limit" style="left:{100 * limit / longest:.1f}%"></div>' if limit else ""
    parts = []
    for name, time in sorted(times.items(), key=lambda item: item[1]):
        kind = "ours" if name == LATHE else "peer"
        parts.append(
            f'<div class="bar"><span>{html.escape(name)}</span><div class="track">'
            f'<div class="{kind}" style="width:{100 * time / longest:.1f}%"></div>{mark}</div>'
            f"<b>{duration(time)}</b></div>"
        )
    for name, entry in record["peers"].items():
        if "failure" in entry:
            why = html.escape(entry["failure"])
            parts.append(f'<div class="bar"><span>{html.escape(name)}</span><i>{why}</i></div>')
    return "".join(parts)


STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1b1f24; }
h3 { margin: 1.4rem 0 .3rem; font-size: 1rem; } h3 small { color: #667; font-weight: normal; }
.bar { display: flex; align-items: center; gap: .6rem; margin: .15rem 0; } .bar span { width: 7rem; }
.track { position: relative; flex: 1; height: .9rem; background: #eef0f3; } .track > div { height: 100%; }
.ours { background: #2563eb; } .peer { background: #9aa5b4; } .bar b { width: 6rem; font-weight: 500; }
.track .limit { position: absolute; top: -2px; width: 2px; height: 1.15rem; background: #d9480f; }
pre { background: #f6f7f9; padding: .8rem; overflow-x: auto; font-size: 12px; }
"""


def page(result):
    """The results as one HTML page without anything from elsewhere."""
    sections = []
    for record in result["lines"]:
        value = ratio(record)
        said = f"{value:.2f} times the best peer" if value else "no ratio"
        said = f"{record['threads']} threads, {said}, limit {duration(record['limit_s'])}"
        sections.append(f"<h3>{html.escape(record['name'])} <small>{said}</small></h3>{bars(record)}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Lathe: benchmarks</title><style>{STYLE}</style>'
        f"<h1>Lathe: benchmarks</h1><pre>{html.escape(machine_text(result))}</pre>"
        "<p>Shorter is better; the mark is the limit of the machine.</p>"
        f"{''.join(sections)}<h2>Table</h2><pre>{html.escape(table(result))}</pre></html>\n"
    )
