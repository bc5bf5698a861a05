"""`scripts/bench seconds`: what it costs to be answered and paid within seconds, beside the engine alone."""

import contextlib
import datetime
import functools
import http.client
import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from devnet_lib import gateway, models, wait
from devnet_lib.devnet import Devnet
from devnet_lib.errors import DevnetError
from devnet_lib.folders import binaries, cache_dir, new_run_dir, remove_data
from devnet_lib.ports import Ports
from devnet_lib.processes import Process, Supervisor
from devnet_lib.surety import Surety

from . import machine, programs, report
from .contestant import Contestant
from .errors import BenchError, ContestantFailed
from .install import LLAMA_CPP_PYTHON, PACKAGES, Peers, command
from .transfers import is_signed

# More than this in use by somebody else, and figures by the clock say little.
BUSY = 0.1
# Beside other networks.
PORTS = Ports(2500)
STREAMS = (1, 8, 32)
THREADS = 1
# Made-up weights of this shape, 77 million parameters, sold as any model is. The words are those of the demonstration
# model, whose own weights fit into a processor's caches: what surrounds it would be all that is measured.
MODEL = "bench-llama-exact"
SHAPE = {
    "hidden": 768,
    "inner": 2048,
    "layers": 12,
    "heads": 12,
    "kv_heads": 4,
    "vocabulary": 2048,
    "context": 2048,
}
PROMPT = 64
TOKENS, QUICK_TOKENS = 96, 32
ROUNDS, QUICK_ROUNDS = 5, 1
# Whose money the gateway spends.
PAYER = "//Two"
UNIT_PRICE, CAP = "0.00001 SURE", "5 SURE"
KEY_CAP, DEPOSIT, BUDGET = "20 SURE", "1 SURE", "5 SURE"
SURETY, ENGINE, LLAMA_CPP = "gateway, channel and provider", "engine alone", "llama.cpp"
# Of its servers, one for each number of streams, beside those of the gateways.
LLAMA_CPP_PORTS = {streams: PORTS.gateway(2 + place) for place, streams in enumerate(STREAMS)}
# Calls of one token over one channel of another gateway, all of them on a real chain, so many side by side.
MANY, QUICK_MANY, MANY_PAYER, MANY_DEPOSIT = 10_000, 200, "//Eve", "2 SURE"
PAID_SECONDS = 1800
# Calls over a channel, receipts in a batch: the first is what is asked for, the others show what bytes depend on.
CALLS = 10_000
SHAPES = ((CALLS, CALLS), (1000, 1000), (130, 130), (1000, 10))
STAGES = ("sign", "verify", "batch", "chain", "audit")
ANSWER_SECONDS, CONVERT_SECONDS = 300, 1800
GOALS = {"ttft_added_ms": 50, "tokens_per_s_vs_engine": 0.95, "receipts_per_s": 12_000, "bytes_per_call": 10}


class Round(NamedTuple):
    """What some streams side by side came to."""

    # Milliseconds to the first token, of each.
    first: list
    tokens_per_s: float


def run(options, console):
    """Measures everything. Returns the report."""
    began = time.monotonic()
    peers = Peers(cache_dir() / "bench", console)
    peers.install()
    found = {
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "versions": {**PACKAGES, "llama-cpp-python": LLAMA_CPP_PYTHON},
        "quick": options.quick,
        "busy_before": machine.busy_share(),
    }
    if found["busy_before"] > BUSY:
        console.detail(f"something else uses {found['busy_before']:.0%} of this machine: times will be off")
    console.step("paid calls over a channel, without an engine and a network")
    found["calls"] = _calls(QUICK_ROUNDS if options.quick else ROUNDS)
    found["model"] = {"name": MODEL, "shape": SHAPE}
    found["streams"] = _streams(_make_model(peers, console), peers, options, console)
    found["busy_after"] = machine.busy_share()
    found["seconds"] = round(time.monotonic() - began)
    return _headline(found) | found


def _calls(rounds):
    """Of calls without a network: by calls and receipts of a batch, the medians of some runs."""
    found = []
    for calls, per_batch in SHAPES:
        argv = [programs.program("seconds", "examples", "seconds"), calls, per_batch]
        runs = [json.loads(command(argv)) for _ in range(rounds)]
        of = {**runs[0], "per_batch": per_batch}
        of["seconds"] = {stage: median(run["seconds"][stage] for run in runs) for stage in runs[0]["seconds"]}
        found.append(of)
    return found


def _make_model(peers, console):
    """Made-up weights in the exact form, where the workers of a network find their models."""
    home = cache_dir()
    # Nobody is asked at this address.
    surety = Surety(Supervisor(home), binaries() / "surety", home, "ws://127.0.0.1:9944")
    source, made, shape = home / "demo-source", peers.folder / "streams.made", json.dumps(SHAPE)
    if not (home / "models" / MODEL).is_dir() or not made.is_file() or made.read_text() != shape:
        if not (source / "tokenizer.json").is_file():
            models.train(surety, console, source, True)
        console.step("making a model of made-up weights: a minute, once")
        shutil.rmtree(home / "models" / MODEL, ignore_errors=True)
        with TemporaryDirectory(prefix="surety-bench-") as folder:
            peers.script("random_llama.py", shape, source / "tokenizer.json", folder)
            surety.run("model", "convert", folder, "--name", MODEL, timeout=CONVERT_SECONDS)
        made.write_text(shape)
    return surety.run("model", "show", MODEL)["id"]


class Net(Devnet):
    """Three validators and a provider of one model."""

    def __init__(self, run_dir, console, model):
        super().__init__(run_dir, console, providers=1, verifiers=0, ports=PORTS)
        self.model = model

    def prepare_models(self):
        """The model that is measured, and no other."""
        self.models = {MODEL: self.model}
        return cache_dir()

    def start_provider(self, provider, *flags, **options):
        super().start_provider(provider, *flags, **{"models": (MODEL,), **options})


class Gateway(gateway.Gateway):
    """A gateway that pays a provider."""

    def __init__(self, net, name="gateway", payer=PAYER, place=0):
        super().__init__(net, name, payer, place)
        limits = ("--requests-per-minute", 1_000_000, "--tokens-per-minute", 1_000_000_000)
        self.key = self.create_key(KEY_CAP, *limits)["key"]

    def open(self, deposit=DEPOSIT):
        """Waits until a first answer has opened a channel."""
        self.start("--deposit", deposit, "--budget", BUDGET)
        wait.until("a first answer", self.answers, ANSWER_SECONDS, self.net.supervisor.check)

    def answers(self):
        """Whether it answers: not before the offer is found, and the channel final."""
        with contextlib.suppress(NotAnswered):
            return stream(self.http, self.key, prompts(0, 1)[0], 1)
        return None

    @property
    def address(self):
        """Its account's."""
        return self.surety.run("account", "show")["address"]

    def transactions(self):
        """How many its account has sent."""
        return self.net.chain.account(self.address)["nonce"]


class NotAnswered(BenchError):
    """A request has come to nothing."""


class Stream(NamedTuple):
    """One answer: when it was asked for, when its first and its last token came, and how many there were."""

    begun: float
    first: float
    ended: float
    tokens: int


def prompts(seed, streams):
    """Ids that nobody has been asked to continue before."""
    return [
        [
            300 + (7919 * place + 977 * (seed * max(STREAMS) + number) + place * place * (seed + number)) % 1700
            for place in range(PROMPT)
        ]
        for number in range(streams)
    ]


def stream(address, key, prompt, tokens):
    """Asks for an answer, and reads it as it comes."""
    body = {"model": MODEL, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True}
    body["stream_options"] = {"include_usage": True}
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    begun, first, last, usage = time.monotonic(), None, b"", None
    connection = http.client.HTTPConnection(address, timeout=ANSWER_SECONDS)
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise NotAnswered(f"{address} answers {response.status}: {response.read()[:500]!r}")
        for line in response:
            if not line.startswith(b"data: "):
                continue
            first = first or time.monotonic()
            if b"completion_tokens" in line:
                usage = json.loads(line[6:])["usage"]
            last = line
    except (OSError, http.client.HTTPException) as error:
        raise NotAnswered(f"{address} does not answer: {error}") from None
    finally:
        connection.close()
    if usage is None:
        raise NotAnswered(f"{address} has broken off: {last[:500]!r}")
    return Stream(begun, first, time.monotonic(), usage["completion_tokens"])


def over_http(address, key):
    """Whoever is asked over HTTP: a function of prompts and tokens that measures a round."""

    def ask(asked, tokens):
        with ThreadPoolExecutor(len(asked)) as pool:
            found = list(pool.map(lambda prompt: stream(address, key, prompt, tokens), asked))
        seconds = max(one.ended for one in found) - min(one.begun for one in found)
        first = [(one.first - one.begun) * 1e3 for one in found]
        return Round(first, sum(one.tokens for one in found) / seconds)

    return ask


def alone(engine):
    """The same of the engine with nothing around it."""

    def ask(asked, tokens):
        answer = engine.ask(ANSWER_SECONDS, prompts=asked, tokens=tokens)
        return Round(answer["first"], answer["tokens"] / answer["seconds"])

    return ask


def _llama_cpp(peers, tokens, run_dir, stack):
    """llama.cpp's own server, with random weights of the same shape: it takes the same requests."""
    program = peers.llama_server()
    gguf, made, shape = peers.folder / "streams.gguf", peers.folder / "streams.gguf.made", json.dumps(SHAPE)
    if not made.is_file() or made.read_text() != shape:
        peers.script("gguf_llama.py", shape, gguf)
        made.write_text(shape)
    servers = {}
    # One for each number of streams, as whoever serves so many would start it: of more slots it may choose some that
    # are not neighbors, and those do not share a step.
    for streams, port in LLAMA_CPP_PORTS.items():
        address = f"127.0.0.1:{port}"
        # With room for what the end of an answer takes.
        context = streams * (PROMPT + tokens + 8)
        argv = [program, "--model", gguf, "--host", "127.0.0.1", "--port", port, "--no-ui", "--offline"]
        argv += ["--threads", THREADS, "--parallel", streams, "--ctx-size", context, "--flash-attn", "on"]
        # As many tokens as are asked for, and nothing kept of prompts that nobody asks again.
        argv += ["--ignore-eos", "--no-cache-prompt", "--cache-ram", 0]
        server = Process(f"llama.cpp for {streams}", argv, run_dir / f"llama-server-{streams}.log")
        stack.callback(server.stop)
        wait.until(server.name, functools.partial(_is_healthy, address), ANSWER_SECONDS, server.check)
        servers[streams] = over_http(address, "")
    return lambda asked, tokens: servers[len(asked)](asked, tokens)


def _is_healthy(address):
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _streams(model, peers, options, console):
    """All of them in turns, by the number of streams: `{streams: {name: {...}}}`, and who was left out."""
    tokens = QUICK_TOKENS if options.quick else TOKENS
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    run_dir, left_out = new_run_dir(), {}
    with contextlib.ExitStack() as stack:
        stack.callback(remove_data, run_dir)
        llama_cpp = {}
        try:
            # First, as building it disturbs whatever keeps time.
            llama_cpp[LLAMA_CPP] = _llama_cpp(peers, tokens, run_dir, stack)
        except (BenchError, DevnetError) as error:
            left_out[LLAMA_CPP] = str(error)
            console.detail(f"left out: {error}")
        net = Net(run_dir, console, model)
        stack.callback(net.stop)
        net.up()
        console.step(f"provider 1 sells {MODEL} over channels; a gateway opens one")
        gateway.sell(net, net.providers[0], {MODEL: "generate"}, cap=CAP, price=UNIT_PRICE, places=max(STREAMS))
        door = Gateway(net)
        door.open()
        engine = Contestant(
            ENGINE, [programs.program("seconds", "examples", "bench_streams"), cache_dir(), MODEL, THREADS]
        )
        stack.callback(engine.stop)
        asked = {SURETY: over_http(door.http, door.key), ENGINE: alone(engine)} | llama_cpp
        found = _in_turns(asked, rounds, tokens, left_out, console)
        transactions, channels = door.transactions(), door.surety.run("channel", "list")
        many = _many(net, QUICK_MANY if options.quick else MANY, console)
    return {
        "prompt": PROMPT,
        "tokens": tokens,
        "rounds": rounds,
        "threads": THREADS,
        "by_streams": found,
        "left_out": left_out,
        "gateway_transactions": transactions,
        "gateway_channels": len(channels),
        "many": many,
    }


def _many(net, calls, console):
    """Short calls of a gateway that has done nothing before, until the chain has paid for all: what that took of it."""
    chain, began = net.chain, net.chain.finalized_number()
    door = Gateway(net, "many", MANY_PAYER, place=1)
    before = door.transactions()
    door.open(MANY_DEPOSIT)
    console.step(f"{calls:,} calls of one token, {max(STREAMS)} at once")
    at = time.monotonic()

    def ask(number):
        # No two of them are the same.
        return stream(door.http, door.key, [300 + number % 1700, 300 + number // 1700], 1)

    with ThreadPoolExecutor(max(STREAMS)) as pool:
        for done, _ in enumerate(pool.map(ask, range(calls)), 1):
            if done % 1000 == 0:
                console.detail(f"{done:,} answered")
    seconds = time.monotonic() - at
    console.step("until the chain has paid for them")
    owed = sum(int(key["spent"]) for key in door.surety.run("gateway", "keys", "list"))
    paid = lambda: sum(int(one["paid"]) for one in door.surety.run("channel", "list"))  # noqa: E731
    wait.until("the last payment", lambda: paid() >= owed, PAID_SECONDS, net.supervisor.check)
    signed = [size for number in range(began + 1, chain.finalized_number() + 1) for size in _signed(chain, number)]
    return {
        "calls": calls,
        "calls_per_s": calls / seconds,
        "channels": len(door.surety.run("channel", "list")),
        "client_transactions": door.transactions() - before,
        # Of all accounts, whatever for.
        "transactions": len(signed),
        "bytes_per_call": sum(signed) / calls,
    }


def _signed(chain, number):
    """The bytes of each signed extrinsic of a block."""
    block = chain.rpc.call("chain_getBlock", chain.block_hash(number))["block"]
    found = (bytes.fromhex(extrinsic[2:]) for extrinsic in block["extrinsics"])
    return [len(extrinsic) for extrinsic in found if is_signed(extrinsic[:8])]


def _in_turns(asked, rounds, tokens, left_out, console):
    found, seed = {}, 0
    for streams in STREAMS:
        console.step(f"{streams} streams of {tokens} tokens, {rounds} rounds")
        measured = {name: [] for name in asked}
        # The first one warms up.
        for number in range(rounds + 1):
            seed += 1
            for name, ask in asked.items():
                if name in left_out:
                    continue
                try:
                    came = ask(prompts(seed, streams), tokens)
                except (NotAnswered, ContestantFailed) as error:
                    if name != LLAMA_CPP:
                        raise
                    left_out[name] = str(error)
                    console.detail(f"left out: {error}")
                    continue
                if number > 0:
                    measured[name].append(came)
        found[str(streams)] = {name: _summary(came) for name, came in measured.items() if came}
    return found


def _summary(rounds):
    rates = [one.tokens_per_s for one in rounds]
    first = [milliseconds for one in rounds for milliseconds in one.first]
    return {
        "ttft_ms": median(first),
        "ttft_ms_most": max(first),
        "tokens_per_s": median(rates),
        "tokens_per_s_lowest": min(rates),
        "tokens_per_s_highest": max(rates),
    }


def _by_streams(found, other, compare):
    """By number of streams, what ours comes to beside another's. None where that was not measured."""
    by_streams = found["streams"]["by_streams"].items()
    return {
        streams: compare(of[SURETY], of[other]) if SURETY in of and other in of else None for streams, of in by_streams
    }


def _rates(seconds):
    """Receipts per second and core, of each stage, and of all of them one after the other."""
    stages = {stage: 1 / seconds[stage] for stage in STAGES}
    ends = {end: 1 / seconds[end] for end in ("payer", "payee")}
    return {**stages, "in_all": 1 / sum(seconds[stage] for stage in STAGES), **ends}


def _headline(found):
    """What others look for, on top."""

    def faster(ours, theirs):
        return ours["tokens_per_s"] / theirs["tokens_per_s"]

    most, many = found["calls"][0], found["streams"]["many"]
    llama_cpp = _by_streams(found, LLAMA_CPP, faster)
    return {
        "ttft_added_ms": _by_streams(found, ENGINE, lambda ours, theirs: ours["ttft_ms"] - theirs["ttft_ms"]),
        "tokens_per_s_vs_engine": _by_streams(found, ENGINE, faster),
        "vs_llamacpp_server": None if LLAMA_CPP in found["streams"]["left_out"] else llama_cpp,
        "receipts_per_s": _rates(most["seconds"]),
        "bytes_per_call": most["bytes_per_call"],
        "bytes_per_call_on_a_chain": many["bytes_per_call"],
        # One more closes the channel.
        "client_transactions_for_10000_calls": None if found["quick"] else many["client_transactions"] + 1,
        "goals": GOALS,
    }


def show(found, console):
    """Prints the report for people."""
    console.title("Machine")
    of = found["machine"]
    busy = f"{found['busy_before']:.0%} before, {found['busy_after']:.0%} after"
    console.table([("processor", f"{of['cpu']}, {of['cores']} cores"), ("in use by others", busy)])
    streams = found["streams"]
    console.title(f"{MODEL}: {streams['prompt']} tokens asked, {streams['tokens']} answered, threads: {THREADS}")
    rows = [
        (f"{count}, {name}", f"{of['ttft_ms']:.1f}", f"{of['ttft_ms_most']:.1f}", f"{of['tokens_per_s']:.1f}")
        for count, by_name in streams["by_streams"].items()
        for name, of in by_name.items()
    ]
    report.table(("streams", "first token after, ms", "most", "tokens per second"), rows, console)
    for name, why in streams["left_out"].items():
        console.text(f"\n  {name} was left out: {why}")
    console.title("Beside the engine alone and llama.cpp")
    llama_cpp = found["vs_llamacpp_server"] or {}
    rows = [
        (count, f"{added:+.1f}", _ratio(found["tokens_per_s_vs_engine"][count]), _ratio(llama_cpp.get(count)))
        for count, added in found["ttft_added_ms"].items()
    ]
    report.table(("streams", "first token later by, ms", "tokens, of the engine's", "of llama.cpp's"), rows, console)
    console.title("Receipts per second and core")
    console.table([(stage.replace("_", " "), f"{rate:,.0f}") for stage, rate in found["receipts_per_s"].items()])
    console.title("On the chain")
    rows = [
        (
            f"{of['calls']:,} calls, {of['per_batch']:,} a batch",
            of["client_transactions"],
            of["provider_transactions"],
            f"{of['bytes_per_call']:.2f}",
        )
        for of in found["calls"]
    ]
    report.table(("", "client's transactions", "provider's", "bytes per call"), rows, console)
    many = streams["many"]
    console.title(f"{many['calls']:,} calls over HTTP, on a chain")
    console.table(
        [
            ("calls per second", f"{many['calls_per_s']:.0f}"),
            ("channels", many["channels"]),
            ("client's transactions", many["client_transactions"]),
            ("transactions in all", many["transactions"]),
            ("bytes per call", f"{many['bytes_per_call']:.2f}"),
        ]
    )


def _ratio(value):
    return "not measured" if value is None else f"{value:.2f}"
