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


def _money(devnet, view):
    """Who got what of a finished task. Amounts are in plancks."""
    paid = {payment["provider"]: payment["price"] for payment in view["state"].get("payments", [])}
    return {
        "cap": view["cap"],
        "providers": [
            {"account": provider.stash, "agent": provider.agent, "paid": paid.get(provider.stash, 0)}
            for provider in devnet.providers
        ],
        "fee": view["state"].get("fee"),
        "client_refund": view["state"].get("refund"),
        "escrow_left": view["escrow"],
    }


class Tokens:
    """Takes the events of a generation, and shows its text in lines as it grows."""

    WIDTH = 100

    def __init__(self, console):
        self.console, self.line, self.count = console, "", 0

    def __call__(self, event):
        if event["event"] == "token":
            self.count += 1
            self.line += event["text"]
            *done, self.line = self.line.split("\n")
            for line in done:
                self.console.detail(line)
            if len(self.line) > self.WIDTH and " " in self.line:
                head, _, self.line = self.line.rpartition(" ")
                self.console.detail(head)
        elif event["event"] == "restart":
            self.console.detail(f"{self.line} … {event['reason']}")
            self.line, self.count = "", 0
        elif self.line:
            self.console.detail(self.line)
            self.line = ""


def generation(devnet, prompt, result):
    """Everything that is known of a finished generation."""
    view = devnet.chain.task(result["task"])
    made = result["generation"]
    return {
        "task": result["task"],
        "state": view["state"]["name"],
        "model": view["spec"]["model"],
        "prompt": prompt,
        "text": made["text"],
        "tokens": len(made["tokens"]),
        "prompt_tokens": made["prompt_tokens"],
        "finish_reason": made["finish_reason"],
        "tokens_streamed": made["streamed"]["tokens"],
        "streamed_as_settled": made["streamed"]["as_settled"],
        "seconds_post_to_first_token": made["streamed"]["seconds_post_to_first_token"],
        "seconds_post_to_result": result["seconds_post_to_result"],
        "seconds_post_to_settled": result["seconds_post_to_settled"],
        "redundancy": view["spec"]["redundancy"],
        "units": view["state"].get("claim", {}).get("units"),
        "output_hash": view["state"].get("claim", {}).get("output"),
        **_money(devnet, view),
    }


def received(devnet, before):
    """What each worker's stash got since `before`: for audits, and for work with what is minted for it."""
    after = devnet.purses()
    return [
        {"worker": worker.name, "received": after[worker.stash] - before[worker.stash]} for worker in devnet.workers()
    ]


def make(devnet, result, out, watch, before, generated=None):
    """Everything that is known of a finished task. Amounts are in plancks."""
    chain, task = devnet.chain, result["task"]
    view = chain.task(task)
    nearest = devnet.nearest(out)
    half = len(nearest) // 2
    hits = sum(found["nearest"] == nearest[(i + half) % len(nearest)]["line"] for i, found in enumerate(nearest))
    final = chain.finalized_number()
    return {
        "task": task,
        "state": view["state"]["name"],
        "client": view["client"],
        "model": view["spec"]["model"],
        "redundancy": view["spec"]["redundancy"],
        **_money(devnet, view),
        "posted_block": view["posted_at"],
        "settled_block": view["state"].get("at"),
        "finalized_block": result["finalized_block"],
        "output_hash": view["state"].get("claim", {}).get("output"),
        "output_path": str(out),
        "vectors_sha256": hashlib.sha256(Path(out).read_bytes()).hexdigest(),
        "units": view["state"].get("claim", {}).get("units"),
        "nearest": nearest[: half : max(1, half // 5)],
        "paraphrases_found": hits,
        "paraphrases": len(nearest),
        "seconds_post_to_result": result["seconds_post_to_result"],
        "seconds_post_to_settled": result["seconds_post_to_settled"],
        "generation": generated,
        "received": received(devnet, before),
        "seconds_per_block": block_seconds(chain, max(1, final - 100), final),
        "finality_lag_blocks": watch.lags(),
        "memory": devnet.memory(),
        "rpc": devnet.ws,
    }


def write(report, path):
    """Writes a report as JSON."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")


def _seconds(value):
    return "unknown" if value is None else f"{value:.1f} s"


def _show_money(report, client, console):
    console.title(f"Money of task {report['task']}")
    console.table(
        [(f"earned by {provider['account']}", sure(provider["paid"])) for provider in report["providers"]]
        + [
            ("protocol fee", sure(report["fee"])),
            (f"refund to {client}", sure(report["client_refund"])),
            ("left in escrow", sure(report["escrow_left"])),
        ]
    )


def _show_generation(found, client, console):
    console.title(f"Task {found['task']}: {found['state']}")
    streamed = f"{found['tokens_streamed']} of {found['tokens']}, the first after "
    console.table(
        [
            ("model", found["model"]),
            ("prompt", f"{found['prompt']!r}, {found['prompt_tokens']} tokens"),
            ("content hash", found["output_hash"]),
            ("tokens streamed", streamed + _seconds(found["seconds_post_to_first_token"])),
            ("post to settled", _seconds(found["seconds_post_to_settled"])),
        ]
    )
    console.text(f"\n  {found['prompt']}{found['text']}")
    _show_money(found, client, console)


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
    _show_money(report, report["client"], console)
    if report["generation"]:
        _show_generation(report["generation"], report["client"], console)
    console.title("Received, once auditors have their part of what providers earned")
    console.table([(row["worker"], sure(row["received"])) for row in report["received"]])
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
