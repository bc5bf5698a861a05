"""The protocol's windows in blocks: production's from the runtime's source, presets' from the chain specifications."""

import json
import re

from devnet_lib.folders import REPO

from .errors import BenchError

PRESETS = ("dev", "local", "testnet")
# The blocks of a unit, as in runtime/src/units.rs.
UNITS = {"MINUTES": 30, "HOURS": 30 * 60, "DAYS": 30 * 60 * 24}
# Of the pallets that decide how long a verdict takes, by the name of their group in the specifications.
GROUPS = {"results": "results", "disputes": "disputes", "trust_lock": "trustLock", "staking": "staking"}
# What is asked of them.
NAMES = ("CommitWindow", "AuditWindow", "RevealWindow", "ChallengeWindow", "OpeningWindow", "DisputeClock")
NAMES += ("DecisionWindow", "SeatWindow", "VoteWindow", "SlashDeferral", "UnbondingPeriod")
# Most ballots of a committee: eight rounds, and the vote of all.
BALLOTS_MAX = 9
# From the last commitment until it is known what auditors draw themselves with.
SEED_BLOCKS = 2

_GROUP = re.compile(r"\n    pub mod (\w+) \{(.*?)\n    \}", re.DOTALL)
_PARAMETER = re.compile(r"pub static (\w+): (?:BlockNumber|u32) =\s*([^;]+);")


def _blocks(expression):
    value = 1
    for factor in expression.split("*"):
        factor = factor.strip().replace("_", "")
        if factor not in UNITS and not factor.isdecimal():
            return None
        value *= UNITS[factor] if factor in UNITS else int(factor)
    return value


def production():
    """What holds where a preset says nothing."""
    source = (REPO / "runtime" / "src" / "params.rs").read_text(encoding="utf-8")
    found = {}
    for group, body in _GROUP.findall(source):
        if group in GROUPS:
            found |= {name: _blocks(value) for name, value in _PARAMETER.findall(body)}
    missing = [name for name in NAMES if not found.get(name)]
    if missing:
        raise BenchError(f"no {', '.join(missing)} in runtime/src/params.rs")
    return found


def all_presets():
    """Production's, and each preset's."""
    defaults = production()
    found = {"production": defaults}
    for preset in PRESETS:
        spec = json.loads((REPO / "chain-spec" / f"{preset}.json").read_text(encoding="utf-8"))
        patch = spec["genesis"]["runtimeGenesis"]["patch"]
        overrides = patch.get("genesisParameters", {}).get("overrides", {})
        of_preset = dict(defaults)
        for group in GROUPS.values():
            named = {key[0].upper() + key[1:]: value for key, value in overrides.get(group, {}).items()}
            of_preset |= {name: value for name, value in named.items() if name in defaults}
        found[preset] = of_preset
    return found


def verdict_blocks(blocks):
    """From the last commitment: to the verdict, to settlement, and to the end of a dispute.

    That is the longest: a commitment is opened as late as can be, then its audit,
    a challenge comes in the last block, both sides use up their clocks, and no block can compute the cell.
    """
    verdict = SEED_BLOCKS + blocks["AuditWindow"] + blocks["RevealWindow"]
    settled = verdict + blocks["ChallengeWindow"]
    ballots = BALLOTS_MAX * (blocks["SeatWindow"] + blocks["VoteWindow"])
    disputed = 2 * blocks["DisputeClock"] + max(blocks["DecisionWindow"], ballots)
    return {"verdict": verdict, "settled": settled, "disputed_max": settled + 2 * blocks["OpeningWindow"] + disputed}
