"""`scripts/devnet`: the main job, from nothing to a settled task."""

import argparse
import os
import signal
import sys
import time

from . import call_cheats, calls, cheats, every_cheat, openai_client, report, verdict
from .console import Console
from .devnet import PROMPT, TEXT, UNITS_MAX, Devnet
from .errors import CommandFailed, DevnetError, Interrupted
from .folders import CHEAT, binaries, new_run_dir, remove_data
from .ports import Ports
from .watch import FinalityWatch

# Instead of one kind of cheat.
EVERY = "all"


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/devnet",
        description="Starts three validators, providers and verifiers as processes of their own, has a real text "
        "embedded by a real model and a prompt continued by another, streams a chat over a payment channel, and shows "
        "who was paid what. Stops everything at the end.",
    )
    parser.add_argument("--report", metavar="FILE", help="write the summary as JSON")
    parser.add_argument(
        "--cheat",
        choices=[*sorted(cheats.CHEATS), *sorted(call_cheats.CHEATS), call_cheats.ALL, EVERY],
        metavar="KIND",
        help="have somebody do something wrong, and show how it is found out and what it loses: "
        + ", ".join(sorted(cheats.CHEATS))
        + "; over payment channels: "
        + ", ".join(sorted(call_cheats.CHEATS))
        + f", or all of these on one network with {call_cheats.ALL}; or {EVERY}, on networks of their own",
    )
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.add_argument("--no-build", action="store_true", help="use the programs that are built already")
    parser.add_argument(
        "--port-offset", type=int, default=0, metavar="N", help="move all ports by N, beside another network"
    )
    return parser.parse_args()


def interrupt(number, _frame):
    # One is enough: a second Ctrl-C must not keep us from stopping what we started.
    for again in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(again, signal.SIG_IGN)
    raise Interrupted(f"stopped by {signal.Signals(number).name}")


def keep(devnet, console):
    """Waits for Ctrl-C. What is killed meanwhile, to see what happens, is named."""
    console.title(f"Running until Ctrl-C, or: kill {os.getpid()}")
    console.table([(process.name, f"pid {process.pid}, log {process.log}") for process in devnet.supervisor.processes])
    while True:
        for process in list(devnet.supervisor.processes):
            if process.returncode() is not None:
                console.step(f"{process.name} ended with {process.returncode()}; the others go on")
                devnet.supervisor.forget(process)
        time.sleep(1.0)


def show_ended(devnet, shown, console):
    """What processes that should still run have said last, unless that is shown already."""
    for process in devnet.supervisor.processes if devnet else []:
        if process.returncode() is not None and f"{process.name} ended with" not in shown:
            console.text(f"{process.name} has ended with {process.returncode()}. The end of {process.log}:")
            console.text(process.tail())


def run_cheat(options, devnet, console):
    devnet.up()
    found = cheats.run(devnet, cheats.CHEATS[options.cheat], devnet.run_dir / "vectors.safetensors")
    if options.report:
        report.write(found, options.report)
    cheats.show(found, console)
    if options.keep:
        keep(devnet, console)


def kinds_over_channels(kind):
    """What `--cheat` names of it; nothing where it is done with tasks."""
    return list(call_cheats.CHEATS) if kind == call_cheats.ALL else [kind] * (kind in call_cheats.CHEATS)


def run_cheats_over_channels(options, devnet, console):
    devnet.up()
    found = call_cheats.run(devnet, kinds_over_channels(options.cheat), console)
    if options.report:
        report.write(found, options.report)
    call_cheats.show(found, console)
    if options.keep:
        keep(devnet, console)


def run_every_cheat(options, console):
    # What takes longest begins first: disputes.
    kinds = sorted(cheats.CHEATS, key=lambda kind: not cheats.CHEATS[kind].disputed)
    kinds.insert(0, call_cheats.ALL)
    results = every_cheat.run(kinds, new_run_dir(), console, options.port_offset)
    every_cheat.show(results, console, options.report)


def run(options, devnet, console):
    devnet.ports.check_gateway()
    devnet.up()
    console.step("installing OpenAI's own client, unless it is here")
    openai_client.folder()
    with verdict.Before(devnet) as before:
        found = {}
        try:
            found = main_job(devnet, before, console)
            report.show(found, console)
            found["calls"] = calls.run(devnet, console, report.Tokens(console), before.log)
            calls.show(found["calls"], console)
        except CommandFailed as error:
            found["failed"] = str(error)
        found |= verdict.judge(before.gather(), says=verdict.log_says, chat=found.get("calls"))
    problems = verdict.problems(found)
    if "failed" in found:
        problems.append(found["failed"])
        found["as_it_must_be"] = False
    if options.report:
        report.write(found, options.report)
        console.text(f"  written to {options.report}")
    console.title("Not as it must be" if problems else "As it must be")
    console.text(
        "\n".join(problems)
        or "  every task is settled, every provider was paid for each, a chat's receipt was audited and redeemed, and\n"
        "  nobody was fined"
    )
    if options.keep:
        keep(devnet, console)
    if problems:
        raise DevnetError(f"{len(problems)} things are not as they must be, named above")


def main_job(devnet, before, console):
    """Two tasks from post to paid. Returns the report."""
    out = devnet.run_dir / "vectors.safetensors"
    console.step(f"posting a task: embed {TEXT.name}, three providers, at most 3 SURE for up to {UNITS_MAX} lines")
    with FinalityWatch(devnet.chain) as watch:
        result = devnet.submit(out)
        console.step(f"task {result['task']} is {result['state']}")
        console.step(f'posting another: go on from "{PROMPT}", three providers; its tokens as they come:')
        second = devnet.generate(on_event=report.Tokens(console))
    console.step(f"task {second['task']} is {second['state']}")
    return report.make(devnet, result, out, watch, before.purses, report.generation(devnet, PROMPT, second))


def main():
    options, console = arguments(), Console()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    devnet, code = None, 0
    try:
        # Before a folder is made for a run that cannot be.
        binaries(*([CHEAT] if options.cheat else []))
        ports = Ports(options.port_offset)
        if options.cheat == EVERY:
            run_every_cheat(options, console)
        elif kinds_over_channels(options.cheat):
            kinds = kinds_over_channels(options.cheat)
            devnet = call_cheats.network(kinds, new_run_dir(), console, ports=ports)
            run_cheats_over_channels(options, devnet, console)
        elif options.cheat:
            cheat = cheats.CHEATS[options.cheat]
            devnet = cheat.network(new_run_dir(), console, ports=ports)
            run_cheat(options, devnet, console)
        else:
            devnet = Devnet(new_run_dir(), console, ports=ports)
            run(options, devnet, console)
    except Interrupted as error:
        console.text(f"\n{error}")
        code = 0 if options.keep else 130
    except DevnetError as error:
        console.text(f"\nFAILED: {error}")
        show_ended(devnet, str(error), console)
        code = 1
    finally:
        if devnet:
            console.text("\nstopping everything")
            devnet.stop()
            remove_data(devnet.run_dir)
            console.text(f"stopped; logs are in {devnet.logs}")
    return code


if __name__ == "__main__":
    sys.exit(main())
