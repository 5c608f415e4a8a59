"""What the samples say: times, the best peer of a line, ratios, and one run beside an earlier one."""

import statistics

from bench.peers import LATHE


def rounds_of(entry):
    """The rounds that count: those kept, or all where fewer than two were."""
    rounds = entry.get("rounds", [])
    kept = [index for index, r in enumerate(rounds) if r["kept"]]
    return kept if len(kept) >= 2 else list(range(len(rounds)))


def time_of(entry):
    """The median over rounds of their medians, in seconds; None without a time."""
    if "failure" in entry or not entry.get("rounds"):
        return None
    return statistics.median(entry["rounds"][index]["median_s"] for index in rounds_of(entry))


def is_noisy(entry):
    """Whether a time should not be leant on: few rounds kept, or a median far above its minimum."""
    rounds = entry.get("rounds", [])
    if sum(r["kept"] for r in rounds) < 2:
        return True
    chosen = [rounds[index] for index in rounds_of(entry)]
    return statistics.median(r["median_s"] for r in chosen) > 1.3 * min(r["min_s"] for r in chosen)


def best_peer(record):
    """The peer other than Lathe with the least time, or None."""
    times = {name: time_of(entry) for name, entry in record["peers"].items() if name != LATHE}
    times = {name: time for name, time in times.items() if time is not None}
    return min(times, key=times.get) if times else None


def ratio(record):
    """The median over rounds of the best peer's time over Lathe's in that round; None where one has no time."""
    peer, ours = best_peer(record), record["peers"].get(LATHE, {})
    if peer is None or time_of(ours) is None:
        return None
    theirs = record["peers"][peer]
    both = sorted(set(rounds_of(ours)) & set(rounds_of(theirs)))
    both = both or range(min(len(ours["rounds"]), len(theirs["rounds"])))
    return statistics.median(theirs["rounds"][i]["median_s"] / ours["rounds"][i]["median_s"] for i in both)


def spread(entry):
    """The largest over the smallest median of the rounds that count, less one."""
    medians = [entry["rounds"][index]["median_s"] for index in rounds_of(entry)]
    return max(medians) / min(medians) - 1


def changes(before, now):
    """[(line, threads, time before over time now, spread)] for the lines that both runs have."""
    earlier = {(r["name"], r["threads"]): r["peers"].get(LATHE, {}) for r in before["lines"]}
    result = []
    for record in now["lines"]:
        key, entry = (record["name"], record["threads"]), record["peers"].get(LATHE, {})
        if key not in earlier or time_of(earlier[key]) is None or time_of(entry) is None:
            continue
        noise = max(spread(earlier[key]), spread(entry))
        result.append((*key, time_of(earlier[key]) / time_of(entry), noise))
    return result
