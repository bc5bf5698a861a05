"""A decoder: its perplexity beside f32, and the speed of prefill and decoding beside llama.cpp with Q8_0."""

from .contestant import all_of
from .errors import ContestantFailed
from .rounds import in_turns

# The second is what the first would be without recording a trace.
EXACT, BLIND, LLAMA_CPP = "exact", "exact without trace", "llama.cpp Q8_0"
PROMPT, DECODE = 512, 32
SECONDS_MAX = 45.0


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
