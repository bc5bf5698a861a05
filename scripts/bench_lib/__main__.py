"""`scripts/bench`: figures of this build."""

import argparse
import signal
import sys
from pathlib import Path

from devnet_lib.console import Console
from devnet_lib.errors import DevnetError
from devnet_lib.folders import REPO
from devnet_lib.report import write

from . import chaos, isa
from .alone import alone
from .benches import BENCHES
from .errors import BenchError


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description="Measures this build: beside others that do the same work, or beside theory."
    )
    parser.add_argument("name", choices=BENCHES, help="what to measure")
    parser.add_argument("--report", metavar="FILE", help="where the figures go [default: target/reports/NAME.json]")
    parser.add_argument("--quick", action="store_true", help="fewer rounds or tasks, for trying the bench out")
    parser.add_argument("--no-build", action="store_true", help="use the program as it is built")
    parser.add_argument(
        "--decoder",
        type=Path,
        metavar="DIR",
        help="exact: a Llama model as published, instead of the demonstration model",
    )
    parser.add_argument(
        "--isa",
        choices=isa.HIDDEN,
        help="exact: everybody as on a processor without later instructions for products (x86-64 on Linux)",
    )
    parser.add_argument("--runs", type=int, metavar="N", help="devnet-runs: how often [default: 20; with --quick 2]")
    parser.add_argument(
        "--minutes",
        type=float,
        metavar="M",
        help="soak: how long it may take [default: 60]; chaos, burst: post no longer than that [default: 60, 10]",
    )
    parts = "; ".join(f"{name}: {', '.join(bench.parts)}" for name, bench in BENCHES.items() if bench.parts)
    parser.add_argument("--only", metavar="PART", help=f"one part of a bench that has some ({parts})")
    chaos.arguments(parser)
    soak = parser.add_argument_group("soak")
    soak.add_argument("--match", default="", metavar="TEXT", help="properties with this in `PACKAGE NAME`")
    options = parser.parse_args()
    if options.only and options.only not in BENCHES[options.name].parts:
        parser.error(f"{options.name} has no part {options.only}; there are {parts}")
    return options


def main():
    options, console = arguments(), Console()
    # Those whom we measure end with us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        bench = BENCHES[options.name]
        with alone():
            found = bench.run(options, console)
    except (BenchError, DevnetError) as error:
        console.text(f"\nFAILED: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    bench.show(found, console)
    path = options.report or REPO / "target" / "reports" / f"{options.name}.json"
    write(found, path)
    console.text(f"\nwritten to {path}")
    # What may not be, where a bench has such figures.
    if found.get("failed"):
        console.text(f"\nFAILED: {', '.join(found['failed'])}")
        return 1
    return 1 if found.get("failures") else 0


if __name__ == "__main__":
    sys.exit(main())
