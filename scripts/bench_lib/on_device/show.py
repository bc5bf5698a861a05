"""A run's figures as tables for people, and those that others look for on top of its report."""

from ..report import table

WIDTH_MAX = 90


def headline(report):
    """Shares and ratios, of what was measured."""
    parts = report["parts"]
    ours, torch, llama_cpp = (parts.get(name, {}) for name in ("decoding", "torch", "llama.cpp"))
    peak = parts.get("memory", {}).get("bytes_per_second")
    found = {}
    for what in ("prefill", "decode"):
        for streams, of in ours.get(what, {}).items():
            name = f"{what}, {streams} at once"
            found[name] = {"tokens_per_second": of["traced"]["median"], "trace_overhead": of["trace_overhead"]}
            if what == "decode" and peak:
                # Each pass reads all weights once. Keys and values come on top, and are not counted.
                passes = of["traced"]["median"] / int(streams)
                found[name]["share_of_bandwidth"] = passes * ours["model"]["bytes_in_a_pass"] / peak
            if beside := torch.get(what, {}).get(streams):
                found[name]["times_torch_bf16"] = of["traced"]["median"] / beside["median"]
            if beside := llama_cpp.get(what, {}).get(streams):
                found[name]["times_llama_cpp_q8_0"] = of["traced"]["median"] / beside["median"]
    for precision in ("int12", "int8"):
        if of := parts.get("embedding", {}).get(precision):
            name = f"items, {precision}"
            found[name] = {"items_per_second": of["job"]["median"], "trace_overhead": of["trace_overhead"]}
            if beside := torch.get("embed"):
                found[name]["times_torch_bf16"] = of["job"]["median"] / beside["median"]
    return found


def show(report, console):
    """Prints a report."""
    console.title("Parts")
    rows = [
        (name, found["status"], f"{found.get('seconds', 0):.1f}", (found.get("error") or "").split("\n")[0][:WIDTH_MAX])
        for name, found in report["parts"].items()
    ]
    for name, status, seconds, error in rows:
        console.text(f"  {name:<14} {status:<10} {seconds:>7}  {error}".rstrip())
    found = report["headline"]
    if found:
        console.title("Figures")
        head = ("", "a second", "trace overhead", "share of bandwidth", "times torch bf16", "times llama.cpp Q8_0")
        cells = [
            (
                name,
                f"{of.get('tokens_per_second', of.get('items_per_second')):.0f}",
                f"{of['trace_overhead']:.1%}",
                f"{of['share_of_bandwidth']:.0%}" if "share_of_bandwidth" in of else "-",
                *(f"{of[times]:.2f}" if times in of else "-" for times in ("times_torch_bf16", "times_llama_cpp_q8_0")),
            )
            for name, of in found.items()
        ]
        table(head, cells, console)
