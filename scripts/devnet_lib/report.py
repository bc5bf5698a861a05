"""What a run came to: as a summary for people and as JSON for programs."""

import hashlib
import json
from pathlib import Path

from .chain import sure


def block_seconds(chain, first, last):
    """Mean seconds between blocks `first` and `last`, by the blocks' own clocks."""
    if last <= first:
        return None
    return (chain.timestamp_ms(last) - chain.timestamp_ms(first)) / 1000 / (last - first)


def make(devnet, result, out, watch):
    """Everything that is known of a finished task. Amounts are in plancks."""
    chain, task = devnet.chain, result["task"]
    view = chain.task(task)
    paid = {payment["provider"]: payment["price"] for payment in view["state"].get("payments", [])}
    agents = {provider.stash: provider.agent for provider in devnet.providers}
    nearest = devnet.nearest(out)
    half = len(nearest) // 2
    hits = sum(found["nearest"] == nearest[(i + half) % len(nearest)]["line"] for i, found in enumerate(nearest))
    final = chain.finalised_number()
    return {
        "task": task,
        "state": view["state"]["name"],
        "client": view["client"],
        "model": view["spec"]["model"],
        "redundancy": view["spec"]["redundancy"],
        "cap": view["cap"],
        "posted_block": view["posted_at"],
        "settled_block": view["state"].get("at"),
        "finalized_block": result["finalized_block"],
        "providers": [
            {"account": stash, "agent": agent, "paid": paid.get(stash, 0)} for stash, agent in agents.items()
        ],
        "fee": view["state"].get("fee"),
        "client_refund": view["state"].get("refund"),
        "escrow_left": view["escrow"],
        "output_hash": view["state"].get("claim", {}).get("output"),
        "output_path": str(out),
        "vectors_sha256": hashlib.sha256(Path(out).read_bytes()).hexdigest(),
        "units": view["state"].get("claim", {}).get("units"),
        "nearest": nearest[: half : max(1, half // 5)],
        "paraphrases_found": hits,
        "paraphrases": len(nearest),
        "seconds_post_to_result": result["seconds_post_to_result"],
        "seconds_post_to_settled": result["seconds_post_to_settled"],
        "seconds_per_block": block_seconds(chain, max(1, final - 100), final),
        "finality_lag_blocks": watch.lags(),
        "memory": devnet.memory(),
        "rpc": devnet.ws,
    }


def write(report, path):
    """Writes a report as JSON."""
    Path(path).write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")


def _seconds(value):
    return "unknown" if value is None else f"{value:.1f} s"


def show(report, console):
    """Prints a report for people."""
    console.title(f"Task {report['task']}: {report['state']}")
    console.table(
        [
            ("model", report["model"]),
            ("vectors", f"{report['units']} in {report['output_path']}"),
            ("content hash", report["output_hash"]),
            ("sha-256", report["vectors_sha256"]),
            ("posted in block", report["posted_block"]),
            ("settled in block", f"{report['settled_block']}, final with block {report['finalized_block']}"),
            ("post to result", _seconds(report["seconds_post_to_result"])),
            ("post to settled", _seconds(report["seconds_post_to_settled"])),
        ]
    )
    console.title("Nearest sentences, by the vectors that were paid for")
    for found in report["nearest"]:
        console.text(f"  {found['line']}\n  {found['cosine']:.3f}  {found['nearest']}\n")
    found, all_of_them = report["paraphrases_found"], report["paraphrases"]
    console.text(f"  Of {all_of_them} sentences {found} have their own paraphrase as the nearest.")
    console.title("Money")
    console.table(
        [(f"paid to {provider['account']}", sure(provider["paid"])) for provider in report["providers"]]
        + [
            ("protocol fee", sure(report["fee"])),
            (f"refund to {report['client']}", sure(report["client_refund"])),
            ("left in escrow", sure(report["escrow_left"])),
        ]
    )
    console.title("Machine")
    lags = report["finality_lag_blocks"]
    console.table(
        [
            ("seconds per block", f"{report['seconds_per_block']:.2f}"),
            ("finality lag", f"{lags['median']} blocks (median), {lags['max']} (most)"),
        ]
        + [
            (row["process"], f"{row['rss_mib']} MiB resident, {row['rss_peak_mib']} MiB at its peak (pid {row['pid']})")
            for row in report["memory"]
        ]
    )
    console.title("Look around")
    console.text("  polkadot.js apps: choose Development, Custom node, and enter " + report["rpc"])
