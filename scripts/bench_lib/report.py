"""The figures as tables for people."""

from . import embedding


def show(report, console):
    """Prints the report of `exact`."""
    _machine(report, console)
    _accuracy(report, console)
    for threads, found in report["embedding"]["threads"].items():
        _rates(f"Sentences per second, threads: {threads}", found["rates"], console)
    for threads, found in report["decoding"]["threads"].items():
        for what, rates in found["rates"].items():
            _rates(f"Tokens per second, {what}, threads: {threads}", rates, console)
    _ratios(report, console)
    _needs(report, console)
    _shares(report, console)


def table(head, rows, console):
    """A heading of columns and rows, aligned; numbers to the right."""
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        first, *others = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        console.text("  " + "  ".join([first, *others]).rstrip())


def _machine(report, console):
    machine = report["machine"]
    console.title("Machine")
    versions = [(name, version) for name, version in report["versions"].items()]
    console.table(
        [
            ("processor", f"{machine['cpu']}, {machine['cores']} cores, {' '.join(machine['flags'])}"),
            ("instructions up to", report["isa"] or "all of these"),
            ("in use by others", f"{report['busy_before']:.0%} before, {report['busy_after']:.0%} after"),
            *versions,
        ]
    )


def _accuracy(report, console):
    found = report["embedding"]
    console.title(f"Accuracy: {found['sentences']} sentences of {found['text']}, against candle's f32")
    rows = [
        (
            name,
            f"{of['mean_cosine']:.5f}",
            f"{of['min_cosine']:.5f}",
            f"{of['nearest_kept']:.1%}",
            _share(of["nearest_kept_where_clear"]),
            f"{of['similarity_lost_mean']:.5f}",
            f"{of['similarity_lost_most']:.4f}",
        )
        for name, of in found["accuracy"].items()
    ]
    head = ("", "mean cosine", "least", "nearest kept", "where clear", "similarity lost", "most")
    table(head, rows, console)
    if of := found["accuracy"].get(embedding.EXACT):
        console.text(f"\n  clear: with f32 the nearest leads by 0.01 or more ({of['nearest_clear']} of {of['count']})")
    perplexity = report["decoding"]["perplexity"]
    console.text(
        f"\n  perplexity on {perplexity['tokens']} tokens: {perplexity['perplexity_exact']:.3f} exact, "
        f"{perplexity['perplexity_f32']:.3f} f32"
    )


def _rates(title, rates, console):
    console.title(title)
    rows = [
        (
            f"{name}, {mode}",
            f"{of['median']:.1f}",
            f"{of['lowest']:.1f}",
            f"{of['highest']:.1f}",
            f"{of['median_per_processor_second']:.1f}",
            of["rounds"],
        )
        for name, modes in rates.items()
        for mode, of in modes.items()
    ]
    table(("", "median", "lowest", "highest", "per processor second", "rounds"), rows, console)


def _share(value):
    return "-" if value is None else f"{value:.1%}"


def _ratio(value):
    return "not measured" if value is None else f"{value:.2f}"


def _ratios(report, console):
    console.title("How many times faster than the other's best")
    columns = [*report["speeds_by_threads"].values(), report["speeds_by_processor_time"]]
    threads = [f"threads: {threads}" for threads in report["speeds_by_threads"]]
    rows = [(name, *(_ratio(column[name]) for column in columns)) for name in columns[0]]
    table(("", *threads, "processor time, threads: 1"), rows, console)
    trace = report["embedding"]["trace"]
    if trace:
        console.text(
            f"\n  recording the trace takes {trace['overhead']:.1%} more time for embedding "
            f"({trace['overhead_of_processor_time']:.1%} of processor time)"
        )
    for what, overhead in report["trace_overhead_decoder"].items():
        if overhead is not None:
            console.text(f"  and {overhead:.1%} for {what}")


def _needs(report, console):
    console.title("What each needs")
    threads = list(report["embedding"]["threads"])
    rows = []
    for what in ("embedding", "decoding"):
        needs = [report[what]["threads"][count]["needs"] for count in threads]
        for name in needs[0]:
            of_each = [of.get(name, {}) for of in needs]
            load = [f"{of['load_seconds']:.2f}" if of else "-" for of in of_each]
            memory = [str(of.get("peak_memory_mib", "-")) for of in of_each]
            rows.append((f"{what}, {name}", *load, *memory))
    head = [f"{what}, threads: {count}" for what in ("load, s", "MiB") for count in threads]
    table(("", *head), rows, console)
    _memory(report["memory_per_stream"], console)


def _memory(memory, console):
    if not memory:
        return
    resident = ", ".join(f"{mib} MiB with {streams}" for streams, mib in memory["resident_mib"].items())
    console.text(
        f"\n  generations side by side, of {memory['positions']} positions: {resident}; "
        f"{memory['resident_bytes_per_stream'] / 2**20:.1f} MiB more for each"
    )
    console.text(
        f"  1,000 positions are counted for {memory['keys_values_bytes_per_1000_positions'] / 2**20:.1f} MiB of keys "
        f"and values and {memory['trace_bytes_per_1000_positions'] / 2**10:.1f} KiB of trace"
    )


def _shares(report, console):
    passes = {"embedding": (report["embedding"]["trace"] or {}).get("shares")}
    passes.update(report["decoding"]["shares"] or {})
    for name, shares in passes.items():
        if shares:
            console.title(f"Where the time goes: {name}, one thread")
            largest = sorted(shares.items(), key=lambda pair: -pair[1])
            console.table([(step, f"{share:5.1%}") for step, share in largest if share >= 0.005])
