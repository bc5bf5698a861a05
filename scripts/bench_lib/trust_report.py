"""The figures of `scripts/bench trust` as tables for people."""

from .report import table


def show(report, console):
    """Prints the report."""
    _strategies(report, console)
    _what_if(report, console)
    _detection(report, console)
    _break_even(report, console)
    _channels(report, console)
    _snowflake(report, console)
    _bytes(report, console)
    _time(report, console)
    _weights(report, console)
    console.title("Checks")
    console.table([("ok" if held else "MISSED", name) for name, held in report["checks"].items()])


def _strategies(report, console):
    market = report["market"]
    console.title("Mean profit of a task beside an honest one, in R, by percent corrupt")
    parts = list(report["strategies"][0]["by_corrupt_percent"])
    rows = [
        (
            strategy["name"],
            *(f"{of_one['profit_in_r']:.4f}" for of_one in strategy["by_corrupt_percent"].values()),
            strategy["honest_slashes"],
        )
        for strategy in report["strategies"]
    ]
    table(("", *(f"{part} %" for part in parts), "honest slashed"), rows, console)
    console.text(
        f"\n  {report['tasks_per_configuration']:,} tasks each, {market['level']} level, lock {market['lock']:g} R, "
        f"saved work {market['work']:g} R, worth of a wrong answer {market['outside']:g} R"
    )
    honest = report["honest_among_hostile"]
    console.text(
        f"  {report['honest_tasks']:,} honest tasks in all ({honest['honest_tasks']:,} of them among hostile others, "
        f"with {honest['disputes']:,} disputes, {honest['stalls']:,} standstills and {honest['refusals']:,} refusals): "
        f"{report['honest_slashes']} honest slashes"
    )


def _what_if(report, console):
    console.title("Under other rules, with 33 % corrupt")
    rows = [
        (row["what"], row["strategy"], f"{row['profit_in_r']:+.4f}", f"{3 * row['error']:.4f}")
        for row in report["what_if"]
    ]
    table(("", "strategy", "profit, R", "3 sigma"), rows, console)


def _detection(report, console):
    console.title("Tasks that an honest verifier was drawn for")
    rows = [
        (
            row["level"],
            f"{row['corrupt_percent']} %",
            f"{row['promised']:.4%}",
            f"{row['seen']:.4%}",
            f"{row['sigmas']:+.2f}",
        )
        for row in report["detection"]
    ]
    table(("level", "corrupt", "1 - exp(-lambda (1-f))", "seen", "sigmas"), rows, console)


def _break_even(report, console):
    console.title("Lock with which cheating breaks even, basic level, in R")
    rows = [
        (
            f"{curve['corrupt_percent']} % corrupt",
            f"{curve['break_even_promised_in_r']:.3f}",
            f"{curve['break_even_seen_in_r']:.3f}",
        )
        for curve in report["break_even"]
    ]
    table(("", "theory", "played"), rows, console)
    console.text(f"\n  plot: {report['plot']}")


def _channels(report, console):
    console.title("Over channels: mean profit of a life beside honest trade, in SURE, by percent corrupt")
    cheats = report["channels"]["cheats"]
    parts = list(cheats[0]["by_corrupt_percent"])
    rows = []
    for cheat in cheats:
        found = cheat["by_corrupt_percent"].values()
        lost = max(of_one["honest_loss_in_chunks_max"] for of_one in found)
        rows.append(
            (
                cheat["name"],
                *(f"{of_one['profit_in_sure']:.3f}" for of_one in found),
                f"{sum(of_one['convicted'] for of_one in found)} of {sum(of_one['lives'] for of_one in found)}",
                f"{lost:.2f}{' *' if cheat['answers_wrong'] else ''}",
            )
        )
    table(("", *(f"{part} %" for part in parts), "convicted", "honest lost, chunks"), rows, console)
    console.text("\n  * answers that are wrong, and were paid where nobody found them; of others a chunk at most")
    console.title("Over channels: lives with one wrong receipt in 1,000 that end with a conviction")
    rows = [
        (
            f"{row['corrupt_percent']} % corrupt",
            f"{row['promised']:.4%}",
            f"{row['seen']:.4%}",
            f"{row['sigmas']:+.2f}",
        )
        for row in report["channels_detection"]
    ]
    table(("", "d (1 - exp(-a (1-f) G))", "seen", "sigmas"), rows, console)
    console.title("Over channels, under other rules, with nobody corrupt")
    rows = [
        (row["rule"], row["cheat"], f"{row['profit_in_sure']:+.3f}", f"{3 * row['error']:.3f}")
        for row in report["channels_what_if"]
    ]
    table(("", "cheat", "profit, SURE", "3 sigma"), rows, console)


def _snowflake(report, console):
    console.title("Committees of 20 among 100 verifiers, the corrupt with one wrong answer")
    rows = [
        (
            f"{row['corrupt']} corrupt",
            f"{row['wrong_promised']:.0e}",
            f"{row['wrong_seen']} of {row['played']}",
            f"{row['escalated_promised']:.1%}",
            f"{row['escalated_seen']:.1%}",
            f"{row['sigmas']:+.2f}",
            f"{row['rounds_mean']:.2f}",
        )
        for row in report["snowflake"]
    ]
    head = ("", "wrong, computed", "wrong, seen", "escalated, computed", "seen", "sigmas", "rounds")
    table(head, rows, console)


def _bytes(report, console):
    found = report["bytes"]
    console.title("Bytes on chain")
    rows = [(f"{call['call']}{'' if call['times'] else ' (audited task)'}", call["bytes"]) for call in found["calls"]]
    rows += [
        ("a task: one provider, one bid, no auditor", found["happy_task"]),
        ("the same without what signs the calls", found["happy_task_without_signatures"]),
        ("each audit", found["audit"]),
    ]
    rows += [
        (f"longest dispute, {dispute['name']}: {dispute['moves']} moves", dispute["bytes_on_chain"])
        for dispute in found["disputes"]
    ]
    rows += [("most that the moves of any dispute take", found["moves_bytes_max"])]
    table(("", "bytes"), rows, console)
    console.text(
        f"\n  counted: calls as they are encoded, {found['signed_bytes']} bytes around each that sign it, "
        f"{found['unsigned_bytes']} around the openings, which nobody signs; not events, not storage"
    )


def _time(report, console):
    console.title("Blocks from the last commitment")
    rows = [
        (preset, found["verdict"], found["settled"], found["disputed_max"])
        for preset, found in report["verdict_blocks"].items()
    ]
    table(("", "to the verdict", "to settlement", "to the end of a dispute, at most"), rows, console)


def _weights(report, console):
    console.title("Weight of calls, in microseconds with reads and writes")
    rows = [
        (
            f"{pallet}, {name}",
            f"{of['microseconds']:.0f}",
            f"{of['microseconds_each']:.0f}" if of["microseconds_each"] else "",
        )
        for pallet in ("results", "disputes", "trust_lock", "task_auction")
        for name, of in report["weights"].get(pallet, {}).items()
    ]
    table(("", "fixed", "for each more"), rows, console)
