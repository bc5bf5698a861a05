"""`scripts/bench supply`: how much SURE there is in 20 years, by the formulas that the chain mints with."""

import datetime
import json
from itertools import pairwise
from pathlib import Path

from devnet_lib.folders import REPO

from . import machine, programs, supply_plot
from .install import command
from .report import table

SECONDS_MAX = 300
# Which years the table shows.
YEARS = (0, 1, 2, 3, 4, 5, 8, 10, 12, 15, 18, 20)


def run(options, _console):
    """Computes the series. Returns the report, and draws the plot beside where it goes."""
    found = json.loads(command([programs.program("supply", "examples", "supply")], SECONDS_MAX))
    report = {"date": datetime.date.today().isoformat(), "commit": machine.commit()} | found
    for curve in report["curves"]:
        by_year = curve["supply_by_month"][:: report["months_per_year"]]
        curve["supply_by_year"] = by_year
        curve["minted_by_year"] = [after - before for before, after in pairwise(by_year)]
    report["checks"] = _checks(report)
    report["failed"] = [name for name, held in report["checks"].items() if not held]
    plot = Path(options.report or REPO / "target" / "reports" / "supply.json").with_suffix(".svg")
    plot.parent.mkdir(parents=True, exist_ok=True)
    plot.write_text(supply_plot.draw(report))
    report["plot"] = str(plot)
    return report


def _checks(report):
    """What has to hold, by name."""
    curves = [curve["supply_by_month"] for curve in report["curves"]]
    genesis = sum(report["genesis"].values())
    years = report["years"] * report["months_per_year"]
    return {
        "every curve begins with the genesis": all(curve[0] == genesis for curve in curves),
        "every curve is whole": all(len(curve) == years + 1 for curve in curves),
        "supply never falls": all(a <= b for curve in curves for a, b in pairwise(curve)),
        "supply stays below the cap": all(curve[-1] < report["cap"] for curve in curves),
        "no year mints more than 7 % of what is bonded at its end": all(
            minted <= 0.07 * curve["bonded_percent"] / 100 * after
            for curve in report["curves"]
            for minted, after in zip(curve["minted_by_year"], curve["supply_by_year"][1:], strict=True)
        ),
    }


def show(report, console):
    """Prints the report."""
    console.title("Supply by year, in million SURE")
    rows = [
        (f"{curve['bonded_percent']} % bonded", *(f"{curve['supply_by_year'][year] / 1e6:.2f}" for year in YEARS))
        for curve in report["curves"]
    ]
    table(("", *YEARS), rows, console)
    console.title("Minted in a year, in SURE")
    shown = [year for year in YEARS if year]
    rows = [
        (f"{curve['bonded_percent']} % bonded", *(f"{curve['minted_by_year'][year - 1]:,.0f}" for year in shown))
        for curve in report["curves"]
    ]
    table(("", *shown), rows, console)
    console.text(
        f"\n  at most {report['cap']:,} SURE; {report['taper']:,} before that the rate of 7 % begins to fall"
        f"\n  plot: {report['plot']}"
    )
    console.title("Checks")
    console.table([("ok" if held else "MISSED", name) for name, held in report["checks"].items()])
