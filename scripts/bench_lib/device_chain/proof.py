"""What is done on the network, and what has to come of it."""

import contextlib
import subprocess
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor

from devnet_lib import calls, report, verdict
from devnet_lib.errors import CommandFailed, DevnetError
from devnet_lib.gateway import Gateway, sell

from ..chaos.account import computed_in
from ..gpu_proofs import SOON_SECONDS, Round
from .bundle import PARAPHRASES, text
from .net import ON_DEVICE

# Both providers, so that the chain compares a device's result with a processor's.
REDUNDANCY = 2
EMBEDDING_CAP, GENERATION_CAP = "8 SURE", "1 SURE"
MAX_TOKENS = 128
# A run made again takes a minute, after up to half of these were waited at random.
OPEN_BLOCKS = 75
# What is asked over a payment channel.
PAYER, QUESTION, ANSWER_TOKENS = "//Two", "Where is the white whale?", 48
BUSY = (429, 503)
PAUSE_SECONDS = 1


class Proof(Round):
    """Two tasks, a round of the benchmark and an answer over a payment channel at once."""

    def __init__(self, net, console, until, save, options):
        super().__init__(net, console)
        self.deadline, self.save, self.book_lines = until, save, options.lines
        self.found = {"tasks": {}, "device": {}}
        if net.is_on_device:
            self.open_blocks = OPEN_BLOCKS

    @property
    def left(self):
        """Seconds until all has to be over."""
        return max(0.0, self.deadline - time.monotonic())

    def until(self, what, probe, seconds=SOON_SECONDS):
        """Waits, no longer than there is time."""
        return super().until(what, probe, min(seconds, self.left))

    def check(self, what, is_so):
        """Takes it down at once."""
        super().check(what, is_so)
        self.save()

    def embedding(self):
        """Posts the first task, and follows it until it is settled."""
        lines, path = text(self.book_lines), self.net.run_dir / "text.txt"
        path.write_text("\n".join(lines) + "\n")
        self.out, self.text = self.net.run_dir / "vectors.safetensors", path
        options = {"text": path, "cap": EMBEDDING_CAP, "redundancy": REDUNDANCY, "units_max": len(lines)}
        return self.net.submit(self.out, timeout=self.left, **options)

    def generation(self):
        """Posts the second, and follows it."""
        args = self.net.generation_args(cap=GENERATION_CAP, redundancy=REDUNDANCY, max_tokens=MAX_TOKENS)
        args[args.index("--listen") + 1] = f"127.0.0.1:{self.net.ports.client() + 1}"
        tokens = report.Tokens(self.console)
        return self.net.second_client.follow(
            *args, "--follow", on_event=tokens, on_line=self.console.detail, timeout=self.left
        )

    def live(self):
        """All of it. What fails keeps nothing else from being tried."""
        with self.before, ThreadPoolExecutor(3) as pool:
            try:
                self.console.title("Two tasks, a round of the benchmark and an answer at once")
                self.gateway = Gateway(self.net, "gateway", PAYER, place=1)
                key = self.gateway.create_key(calls.KEY_CAP, "--requests-per-minute", calls.REQUESTS_A_MINUTE)["key"]
                self.gateway.begin("--deposit", calls.DEPOSIT, "--budget", calls.BUDGET)
                self.answered = pool.submit(self.answer, key)
                self.posted = {
                    "embedding": pool.submit(self.embedding),
                    "generation": pool.submit(self.generation),
                }
                steps = (
                    self.begin,
                    self.measure,
                    self.settle,
                    self.same_bits,
                    self.answers,
                    self.judge,
                    self.on_device,
                )
                for step in steps:
                    self.attempt(step)
            finally:
                # Who waits for its commands would be waited for.
                self.net.stop()

    def attempt(self, step):
        """One step."""
        try:
            step()
        except (DevnetError, OSError, KeyError, TypeError, ValueError) as error:
            self.failed.append(f"{step.__name__}: {error}")
            self.console.text(f"{step.__name__}: {type(error).__name__}: {error}")
            if step in (self.begin, self.measure):
                self.console.text(self.told())
        self.save()

    def measure(self):
        """The device's run, and what is drawn of it."""
        self.seeded, _ = self.happens("RunsSeeded")
        self.commit(None)
        self.apps()
        self.shown()

    def apps(self):
        """Who has memory of the device, by the driver."""
        if not self.net.is_on_device:
            return
        argv = ["nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader"]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
            self.found["device"]["driver_apps"] = done.stdout.splitlines()
            self.found["device"]["pids"] = {worker.name: worker.process.pid for worker in self.net.on_device()}

    def settle(self):
        """Both tasks are settled, and what was paid for is here."""
        for name, posted in self.posted.items():
            try:
                result = posted.result(self.left + 1)
            except CommandFailed as error:
                self.check(f"the {name} is settled", False)
                self.failed.append(str(error))
                continue
            self.found["tasks"][name] = of = self.told_of(result)
            self.check(f"the {name} is settled", of["state"] == "Settled")
            self.check(f"both providers are paid for the {name}", len(of["paid"]) == REDUNDANCY)
            if name == "embedding":
                self.nearest(of)
            else:
                of["text"], of["tokens"] = result["generation"]["text"], len(result["generation"]["tokens"])

    def told_of(self, result):
        """What the chain and the client say of a task."""
        view = self.chain.task(result["task"])
        state, claim = view["state"], view["state"].get("claim", {})
        seconds = {key: result[key] for key in ("seconds_post_to_result", "seconds_post_to_settled")}
        return {
            "task": result["task"],
            "state": state["name"],
            "model": view["spec"]["model"],
            "units": claim.get("units"),
            "output": claim.get("output"),
            "paid": {payment["provider"]: payment["price"] for payment in state.get("payments", [])},
            **seconds,
        }

    def nearest(self, of):
        """How many paraphrases are nearest to each other: whether vectors are more than equal bits."""
        nearest = self.net.nearest(self.out, self.text)
        count = len(PARAPHRASES.read_text().splitlines())
        lines = nearest[:count]
        hits = sum(found["nearest"] == lines[(at + count // 2) % count]["line"] for at, found in enumerate(lines))
        of |= {"paraphrases_found": hits, "paraphrases": count}
        self.check("most paraphrases are found among all lines", hits > count // 2)

    def same_bits(self):
        """Each provider has computed the same by itself, and verifiers agree."""
        computed = {provider.name: computed_in(provider.process.log) for provider in self.net.providers}
        events = self.log.events()
        for name, of in self.found["tasks"].items():
            outputs = {who: found[of["task"]][1] for who, found in computed.items() if of["task"] in found}
            of["computed"] = outputs
            is_same = len(outputs) == REDUNDANCY and set(outputs.values()) == {of["output"]}
            self.check(f"device and processor have the same bits of the {name}", is_same)
            of["audits"] = self.audits(events, of["task"])
            for who in self.net.verifiers:
                self.check(f"{who.name} has audited the {name} and agrees", of["audits"].get(who.name))

    def audits(self, events, task):
        """By verifier, whether all that it has opened of a task agrees."""
        found, names = {}, {verifier.stash: verifier.name for verifier in self.net.verifiers}
        for _, _, name, fields in events:
            if name in verdict.AUDITS and fields.get("task") == task:
                name = names.get(fields["verifier"])
                found[name] = found.get(name, True) and bool(fields["agrees"])
        return found

    def answer(self, key):
        """The provider on the device sells answers, and a gateway is asked for one."""
        provider, model, gateway = self.net.providers[0], self.net.generator, self.gateway
        sell(self.net, provider, {model: "generate"}, cap=calls.CAP, price=calls.UNIT_PRICE, places=calls.PLACES)
        self.until("the model to be offered at once", lambda: gateway.offers(model, key))
        of = self.asked(key)
        # Its receipt is on the chain, and final there.
        proofs = self.until("a batch to have its receipt", lambda: gateway.proofs(of["receipt"], key))
        return of | {"batch": proofs[-1]["batch"], "price": proofs[-1]["says"]["price"]}

    def asked(self, key):
        """An answer, as soon as the provider has time for it: while it is measured it has none."""
        question = {
            "model": self.net.generator,
            "messages": [{"role": "user", "content": QUESTION}],
            "max_tokens": ANSWER_TOKENS,
            "seed": 7,
            "stream": True,
        }
        refused = []
        while self.left:
            begun = time.monotonic()
            try:
                parts = [(time.monotonic() - begun, part) for part in self.gateway.stream(key, question)]
                return _joined(parts) | {"refused": refused}
            except urllib.error.HTTPError as error:
                with error:
                    refused.append(f"{error.code}: {error.read().decode(errors='replace')[:300]}")
                if error.code not in BUSY:
                    break
                time.sleep(PAUSE_SECONDS)
        raise DevnetError(f"no answer over a channel: {refused[-1:]}")

    def answers(self):
        """The answer was given, and its receipt is batched."""
        provider = self.net.providers[0]
        try:
            self.found["answer"] = of = self.answered.result(self.left + 1)
        finally:
            self.found["calls"] = self.net.metrics(provider, "surety_calls_")
        self.check("an answer came over a payment channel, and its receipt is in a final batch", of["text"])

    def on_device(self):
        """The device has done it: what workers say of it, and that none has dropped it."""
        self.found["device"] |= {worker.name: self.net.seen_of(worker) for worker in self.net.on_device()}
        self.found["speeds"] = {
            provider.name: path.read_text()
            for provider in self.net.providers
            if (path := provider.surety.home / "speeds.json").exists()
        }
        if not self.net.is_on_device:
            return
        for name in ON_DEVICE:
            seen = self.found["device"][name]
            self.check(f"{name} has opened the device", len(seen["opened"]) == 1)
            up = [value for key, value in seen.get("metrics", {}).items() if key.startswith("surety_gpu_up")]
            self.check(f"{name} has it yet", up == ["1"])
        calls_of = self.found.get("calls", {})
        faults = [int(value) for key, value in calls_of.items() if key.startswith("surety_calls_device_faults_total")]
        is_served = calls_of.get("surety_calls_device_models") == "1" and not any(faults)
        self.check("the device answers over channels, without a fault", is_served)


def _joined(parts):
    """An answer whole, of (seconds, part)."""
    texts = [
        (seconds, choice["delta"].get("content") or "") for seconds, part in parts for choice in part.get("choices", [])
    ]
    receipts = [part["surety"]["receipt"] for _, part in parts if (part.get("surety") or {}).get("receipt")]
    return {
        "text": "".join(text for _, text in texts),
        "receipt": receipts[0],
        "seconds_to_first_token": round(next(seconds for seconds, text in texts if text), 3),
        "seconds": round(parts[-1][0], 3),
    }
