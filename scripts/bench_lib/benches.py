"""What there is to measure: for each name what runs, and what shows its figures."""

from collections.abc import Callable
from typing import NamedTuple

from . import (
    bounds,
    burst,
    chaos,
    devnet_runs,
    exact,
    gpu_proofs,
    report,
    seconds,
    soak,
    staking,
    supply,
    trust,
    trust_report,
    upgrade,
    validators,
)


class Bench(NamedTuple):
    """A bench."""

    # Of the options and a console: the figures.
    run: Callable
    # Of the figures and a console: prints them.
    show: Callable
    # What `--only` can name.
    parts: tuple = ()


BENCHES = {
    "bounds": Bench(bounds.run, bounds.show),
    "exact": Bench(exact.run, report.show),
    "seconds": Bench(seconds.run, seconds.show),
    "soak": Bench(soak.run, soak.show, soak.PARTS),
    "staking": Bench(staking.run, staking.show, staking.PARTS),
    "supply": Bench(supply.run, supply.show),
    "trust": Bench(trust.run, trust_report.show),
    "chaos": Bench(chaos.run, chaos.show),
    "burst": Bench(burst.run, burst.show),
    "devnet-runs": Bench(devnet_runs.run, devnet_runs.show),
    "gpu-proofs": Bench(gpu_proofs.run, gpu_proofs.show),
    "upgrade": Bench(upgrade.run, upgrade.show),
    "validators": Bench(validators.run, validators.show, validators.PARTS),
}
