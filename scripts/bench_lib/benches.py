"""What there is to measure: for each name what runs, and what shows its figures."""

from collections.abc import Callable
from typing import NamedTuple

from . import exact, report, trust, trust_report


class Bench(NamedTuple):
    """A bench."""

    # Of the options and a console: the figures.
    run: Callable
    # Of the figures and a console: prints them.
    show: Callable


BENCHES = {
    "exact": Bench(exact.run, report.show),
    "trust": Bench(trust.run, trust_report.show),
}
