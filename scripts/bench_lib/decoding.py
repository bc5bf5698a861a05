"""A decoder: its perplexity beside f32, and the speed of prefill and decoding beside llama.cpp with Q8_0."""

from .contestant import all_of
from .errors import ContestantFailed
from .rounds import in_turns

# The second is what the first would be without recording a trace.
EXACT, BLIND, LLAMA_CPP = "exact", "exact without trace", "llama.cpp Q8_0"
PROMPT, DECODE = 512, 32
SECONDS_MAX = 45.0
# Generations side by side whose memory is looked at, fewest first: what a process has given back it keeps for the
# next. Their positions fill one block of attention.
STREAMS, HELD_PROMPT, HELD_DECODE = (1, 8, 64), 121, 8
HELD_SECONDS_MAX = 180.0


def speed(models, threads, rounds, console):
    """Tokens per second: `{"prefill": {name: {mode: summary}}, "decode": ...}`, and what each needed to start."""
    starters = {EXACT: lambda: models.decoder(threads), LLAMA_CPP: lambda: models.llama_cpp(threads)}
    rates = {}
    with all_of(starters, console) as running:
        for what, command in {"prefill": {"prompt": PROMPT}, "decode": {"prompt": PROMPT, "decode": DECODE}}.items():
            if EXACT in running:
                running[BLIND] = running[EXACT]
            modes = {EXACT: {"traced": {**command, "look": "traced"}}, BLIND: {"blind": {**command, "look": "blind"}}}
            modes[LLAMA_CPP] = {
                name: {**command, "flash": flash} for name, flash in (("plain", False), ("flash attention", True))
            }
            rates[what] = in_turns(running, modes, rounds, console, SECONDS_MAX)
        needs = {
            name: {
                "load_seconds": contestant.ready["load_seconds"],
                "peak_memory_mib": contestant.peak_memory_mib(),
            }
            for name, contestant in running.items()
            if name != BLIND
        }
    return rates, needs


def shares(models, console):
    """Where the time goes, with one thread: `{"prefill": {step: share}, "decode": ...}`."""
    with all_of({EXACT: lambda: models.decoder(1)}, console) as running:
        try:
            decoder = running[EXACT]
            return {
                "prefill": decoder.ask(prompt=PROMPT, look="timed")["shares"],
                "decode": decoder.ask(prompt=PROMPT, decode=DECODE, look="timed")["shares"],
            }
        except (KeyError, ContestantFailed):
            return None


def memory(models, threads, console):
    """What generations that run side by side take: in memory, what is reserved for them, and what 1,000 positions of
    one are counted for. None when that cannot be had."""
    with all_of({EXACT: lambda: models.serving(threads)}, console) as running:
        try:
            found = {
                streams: running[EXACT].ask(
                    HELD_SECONDS_MAX, streams=streams, prompt=HELD_PROMPT, decode=HELD_DECODE, batched=True, held=True
                )
                for streams in STREAMS
            }
        except (KeyError, ContestantFailed) as error:
            console.detail(f"memory of generations: {error}")
            return None
    fewest, most = found[STREAMS[0]], found[STREAMS[-1]]
    more = most["resident_bytes"] - fewest["resident_bytes"]
    return {
        # All but the last token that each has chosen.
        "positions": HELD_PROMPT + HELD_DECODE - 2,
        "keys_values_bytes_per_1000_positions": fewest["keys_values_bytes_per_1000"],
        "trace_bytes_per_1000_positions": fewest["trace_bytes_per_1000"],
        "resident_mib": {str(streams): of["resident_bytes"] // 2**20 for streams, of in found.items()},
        "reserved_mib": {str(streams): round(of["reserved_bytes"] / 2**20, 1) for streams, of in found.items()},
        "resident_bytes_per_stream": more // (STREAMS[-1] - STREAMS[0]),
    }
