"""Measuring several contestants side by side: in turns, so that what else the machine does meets all of them alike."""

import time
from statistics import median
from typing import NamedTuple

from .errors import ContestantFailed

# A way of working that is so much slower than its contestant's best is not measured again.
SLOWER_BY = 1.3
# Who takes longer for one round is left out from then on: threads that wait by spinning hardly get on where others
# use the processors, too.
ROUND_SECONDS_MAX = 40.0


class Rate(NamedTuple):
    """Units per second of a round, by the clock and by the processor time that they took."""

    clock: float
    processor: float

    @classmethod
    def of(cls, answer):
        return cls(answer["units"] / answer["seconds"], answer["units"] / answer["processor_seconds"])


def summary(rates):
    """Of the rates of some rounds."""
    clock = [rate.clock for rate in rates]
    return {
        "median": median(clock),
        "lowest": min(clock),
        "highest": max(clock),
        "median_per_processor_second": median(rate.processor for rate in rates),
        "rounds": len(rates),
    }


def in_turns(contestants, modes, rounds, console, seconds_max):
    """Rates by contestant and mode: `{name: {mode: summary}}`, of units per second.

    `modes` is `{name: {mode: command}}`; every answer has `units`, `seconds` and
    `processor_seconds`. A round goes through all of them. The
    first one warms up, and decides which modes are worth more rounds. No round begins after `seconds_max`.

    A machine that has other things to do gives fewer seconds of its processors than seconds pass, and not the same
    share to each: with one thread, units per second of processor time tell more then.
    """
    rates = {name: {mode: [] for mode in modes[name]} for name in contestants}
    begun = time.monotonic()
    for number in range(rounds + 1):
        if number > 1 and time.monotonic() - begun > seconds_max:
            console.detail(f"stopped after {number - 1} rounds: out of time")
            break
        for name, contestant in contestants.items():
            _one_round(name, contestant, modes[name], rates[name], console)
        if number == 0:
            for of_one in rates.values():
                _keep_the_best(of_one)
    return {name: {mode: summary(found) for mode, found in of_one.items() if found} for name, of_one in rates.items()}


def _one_round(name, contestant, modes, rates, console):
    for mode in list(rates):
        if contestant.failure:
            return
        try:
            rates[mode].append(Rate.of(contestant.ask(ROUND_SECONDS_MAX, **modes[mode])))
        except ContestantFailed as error:
            console.detail(f"{name}, {mode}: {error}")


def _keep_the_best(rates):
    best = max((found[0].clock for found in rates.values() if found), default=0)
    for mode in list(rates):
        if not rates[mode] or rates[mode][0].clock * SLOWER_BY < best:
            del rates[mode]
        else:
            rates[mode].clear()


def best(summaries, key="median"):
    """The fastest of a contestant's modes, as (mode, rate). None when it has failed."""
    found = [(mode, of_mode[key]) for mode, of_mode in summaries.items()]
    return max(found, key=lambda pair: pair[1], default=None)
