"""The commands of `scripts/on-device`."""

import argparse
import signal
import sys
from pathlib import Path

from devnet_lib.console import Console
from devnet_lib.folders import REPO

from ..errors import BenchError
from . import build, run
from .parts import PARTS, SECONDS_OF_ALL, SECONDS_OF_SOME
from .programs import FOLDER


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/on-device", description="Proves the exact engine on an NVIDIA device, and measures it there."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("build", "run"):
        command = commands.add_parser(name)
        command.add_argument("--folder", type=Path, default=FOLDER, metavar="DIR", help="where the programs are")
        if name == "build":
            command.add_argument("--llama", action="store_true", help="llama.cpp, too: half an hour of one core, once")
    command.add_argument("--report", type=Path, default=REPO / "target" / "reports" / "on-device.json", metavar="FILE")
    seconds = f"for all of it [default: {SECONDS_OF_ALL:.0f}; with --only or --emulated {SECONDS_OF_SOME:.0f}]"
    command.add_argument("--seconds", type=float, metavar="N", help=seconds)
    command.add_argument("--device", default="cuda:0", metavar="cuda:N", help="[default: cuda:0]; tests take the first")
    command.add_argument("--emulated", action="store_true", help="small models on a program that plays a device")
    command.add_argument("--only", metavar="PART,...", help=f"some of: {', '.join(PARTS)}")
    command.add_argument("--any-commit", action="store_true", help="also programs of another commit than this checkout")
    options = parser.parse_args()
    if options.command == "run":
        options.is_whole = not options.only and not options.emulated
        options.seconds = options.seconds or (SECONDS_OF_ALL if options.is_whole else SECONDS_OF_SOME)
        options.only = options.only.split(",") if options.only else list(PARTS)
        if unknown := [name for name in options.only if name not in PARTS]:
            parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return options


def main():
    options, console = arguments(), Console()
    # What is running ends with us, and the report has what there is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if options.command == "build":
            build.build(options.folder, console, options.llama)
            return 0
        return run.run(options, console)
    except BenchError as error:
        console.text(f"FAILED: {error}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
