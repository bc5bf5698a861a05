"""The commands of `scripts/on-device-chain`."""

import argparse
import datetime
import os
import signal
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from devnet_lib.console import Console
from devnet_lib.errors import DevnetError
from devnet_lib.folders import REPO, new_run_dir, remove_data
from devnet_lib.report import write

from .. import machine
from ..errors import BenchError
from ..on_device import libraries
from ..on_device.programs import check_commit
from . import bundle
from .net import Net
from .proof import Proof

# Beyond its time, for it to stop by itself.
GRACE_SECONDS = 10


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/on-device-chain",
        description="Has a whole network prove a device: two tasks from post to paid, and a round of the benchmark.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("build", "run"):
        command = commands.add_parser(name)
        command.add_argument("--folder", type=Path, default=bundle.FOLDER, metavar="DIR", help="where it is packed")
    reports = REPO / "target" / "reports" / "on-device-chain"
    command.add_argument("--out", type=Path, default=reports, metavar="DIR", help="where report and logs go")
    command.add_argument("--device", default="cuda:0", metavar="cuda:N", help="[default: cuda:0]; cpu tries it out")
    command.add_argument("--device-memory-mib", type=int, default=8192, metavar="N", help="[default: 8192]")
    command.add_argument("--seconds", type=float, default=330.0, metavar="N", help="for all of it [default: 330]")
    lines = bundle.BOOK_LINES
    command.add_argument("--lines", type=int, default=lines, metavar="N", help=f"of a book [default: {lines}]")
    command.add_argument("--any-commit", action="store_true", help="also programs of another commit than this checkout")
    return parser.parse_args()


def run(options, console):
    """Lives it. Returns whether all is as it must be."""
    deadline = time.monotonic() + options.seconds
    manifest = bundle.manifest_of(options.folder)
    if not options.any_commit:
        check_commit(manifest, "scripts/on-device-chain")
    found = {
        "programs": manifest,
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "chosen": options.device,
        "device_memory_mib": options.device_memory_mib,
        "failed": ["it was cut off"],
    }
    with tempfile.TemporaryDirectory(prefix="surety-chain-") as work:
        work = Path(work)
        console.step("unpacking")
        bundle.unpack(options.folder, work, manifest)
        (links := work / "libraries").mkdir()
        tools = libraries.found(links)
        found["found"] = tools.told()
        os.environ |= {"XDG_CACHE_HOME": str(work / "cache"), "SURETY_BIN_DIR": str(work / "bin"), **tools.env}
        live(options, console, deadline, found)
    return not found["failed"]


def live(options, console, deadline, found):
    """The network's life, and the report of it: written after every step, so that what is cut off leaves something."""
    begun, folder = time.monotonic(), new_run_dir()
    net, proof = Net(folder, console, options.device, options.device_memory_mib), None

    def save():
        found["seconds"] = round(time.monotonic() - begun, 1)
        found["doctor"] = net.doctor
        if proof:
            found.update(round=proof.figures, measured=proof.of, seen=proof.seen, **proof.found)
        write(found, options.out / "report.json")

    def late(*_):
        net.stop()
        raise DevnetError("its time is over")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(max(0, int(deadline - begun)) + GRACE_SECONDS)
    try:
        net.up()
        found["seconds_until_up"] = round(time.monotonic() - begun, 1)
        proof = Proof(net, console, deadline, save, options)
        proof.live()
        found["failed"] = proof.failed
    except DevnetError as error:
        console.text(f"FAILED: {error}")
        found["failed"] = [*(proof.failed if proof else []), str(error)]
    finally:
        signal.alarm(0)
        net.stop()
        save()
        with tarfile.open(options.out / "logs.tar.gz", "w:gz") as tar:
            tar.add(net.logs, "logs")
        remove_data(folder)


def main():
    options, console = arguments(), Console()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if options.command == "build":
            bundle.build(options.folder, console)
            return 0
        options.out.mkdir(parents=True, exist_ok=True)
        is_good = run(options, console)
    except (BenchError, DevnetError) as error:
        console.text(f"FAILED: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    console.text(f"\nreport and logs are in {options.out}")
    console.text("As it must be" if is_good else "FAILED: see `failed` in the report")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
