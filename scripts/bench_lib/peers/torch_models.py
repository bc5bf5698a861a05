"""torch's side of `scripts/on-device`: models of the same shapes in bf16 with random weights, on the first device.

Usage: torch_models.py DECODER ENCODER, each a shape as JSON. It says whether it can, then answers line by line. What is
known to be fast in torch is used: joined matrices, flash attention, and one graph for all of a token's launches.
"""

import json
import sys
import time

THETA, EPSILON = 10_000.0, 1e-5
# Rows that go through a model together: more would not be faster, and take memory.
ROWS_MAX = 16_384


def say(**answer):
    print(json.dumps(answer), flush=True)


try:
    import torch
    from torch.nn import functional
except ImportError as error:
    say(ready=False, error=f"this machine's Python has no torch: {error}")
    sys.exit(0)
if not torch.cuda.is_available():
    say(ready=False, error=f"torch {torch.__version__} finds no device")
    sys.exit(0)


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16).mul_(0.02)


class Decoder:
    """A Llama."""

    def __init__(self, shape):
        self.shape = shape
        self.heads, self.kv_heads = shape["heads"], shape["kv_heads"]
        self.head_dim = shape["hidden"] // self.heads
        self.joined = (self.heads + 2 * self.kv_heads) * self.head_dim
        hidden, inner = shape["hidden"], shape["inner"]
        self.tokens, self.head = random(shape["vocabulary"], hidden), random(shape["vocabulary"], hidden)
        self.norm = torch.ones(hidden, device="cuda", dtype=torch.bfloat16)
        self.layers = [
            (random(self.joined, hidden), random(hidden, hidden), random(2 * inner, hidden), random(hidden, inner))
            for _ in range(shape["layers"])
        ]
        halves = torch.arange(0, self.head_dim, 2, device="cuda") / self.head_dim
        angles = torch.arange(shape["context"], device="cuda")[:, None] * THETA ** -halves[None, :]
        self.cos, self.sin = (part.to(torch.bfloat16) for part in (angles.cos(), angles.sin()))

    def cache(self, streams, positions):
        """Keys and values of all layers."""
        size = (streams, self.kv_heads, positions, self.head_dim)
        both = [torch.zeros(2, *size, device="cuda", dtype=torch.bfloat16) for _ in self.layers]
        return [(keys, values) for keys, values in both]

    def rotated(self, rows, positions):
        """Rotary positions, of half and half."""
        cos, sin = self.cos[positions][None, None], self.sin[positions][None, None]
        one, other = rows.chunk(2, dim=-1)
        return torch.cat((one * cos - other * sin, one * sin + other * cos), dim=-1)

    def forward(self, ids, positions, cache, whole):
        """The likeliest token behind each sequence. With `whole` it attends to all that the cache has room for: so the
        same launches do for every token. Else the tokens are a prompt."""
        count, length = ids.shape
        state = self.tokens[ids]
        widths = [self.heads * self.head_dim, self.kv_heads * self.head_dim, self.kv_heads * self.head_dim]
        for (attention, output, up, down), (keys, values) in zip(self.layers, cache, strict=True):
            normed = functional.rms_norm(state, state.shape[-1:], self.norm, EPSILON)
            query, key, value = (
                part.view(count, length, -1, self.head_dim).transpose(1, 2)
                for part in functional.linear(normed, attention).split(widths, dim=-1)
            )
            query, key = self.rotated(query, positions), self.rotated(key, positions)
            keys.index_copy_(2, positions, key)
            values.index_copy_(2, positions, value)
            key, value = (keys, values) if whole else (key, value)
            attended = functional.scaled_dot_product_attention(
                query, key, value, is_causal=not whole, enable_gqa=self.heads != self.kv_heads
            )
            state = state + functional.linear(attended.transpose(1, 2).reshape(count, length, -1), output)
            normed = functional.rms_norm(state, state.shape[-1:], self.norm, EPSILON)
            gate, more = functional.linear(normed, up).chunk(2, dim=-1)
            state = state + functional.linear(functional.silu(gate) * more, down)
        last = functional.rms_norm(state[:, -1], state.shape[-1:], self.norm, EPSILON)
        return functional.linear(last, self.head).argmax(dim=-1)

    def prefill(self, prompts, cache):
        """Reads prompts, some at a time."""
        length = prompts.shape[1]
        together = max(1, ROWS_MAX // length)
        positions = torch.arange(length, device="cuda")
        first = []
        for start in range(0, len(prompts), together):
            part = [(keys[start : start + together], values[start : start + together]) for keys, values in cache]
            first.append(self.forward(prompts[start : start + together], positions, part, False))
        return torch.cat(first)

    def steps(self, first, prompt, cache):
        """A graph that adds a token to each sequence, and the memory that it works in."""
        ids, position = first[:, None].clone(), torch.tensor([prompt], device="cuda")

        def step():
            ids.copy_(self.forward(ids, position, cache, True)[:, None])
            position.add_(1)

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        position.fill_(prompt)
        return graph, (ids, position)


class Encoder:
    """A BERT, whose items are padded to the longest of those that go together."""

    def __init__(self, shape):
        self.shape, hidden, inner = shape, shape["hidden"], shape["inner"]
        self.tokens, self.positions = random(shape["vocabulary"], hidden), random(shape["positions"], hidden)
        self.norm = torch.ones(hidden, device="cuda", dtype=torch.bfloat16)
        self.layers = [
            (random(3 * hidden, hidden), random(hidden, hidden), random(inner, hidden), random(hidden, inner))
            for _ in range(shape["layers"])
        ]

    def normed(self, state):
        return functional.layer_norm(state, state.shape[-1:], self.norm, self.norm, EPSILON)

    def forward(self, ids, lengths):
        """A vector of each item."""
        count, longest = ids.shape
        mask = torch.arange(longest, device="cuda")[None, :] < lengths[:, None]
        state = self.normed(self.tokens[ids] + self.positions[:longest])
        for attention, output, up, down in self.layers:
            parts = functional.linear(state, attention).view(count, longest, 3, self.shape["heads"], -1)
            query, key, value = (part.transpose(1, 2) for part in parts.unbind(2))
            attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None, :])
            attended = attended.transpose(1, 2).reshape(count, longest, -1)
            state = self.normed(state + functional.linear(attended, output))
            inner = functional.gelu(functional.linear(state, up))
            state = self.normed(state + functional.linear(inner, down))
        sums = (state * mask[..., None]).sum(dim=1) / lengths[:, None]
        return functional.normalize(sums.float(), dim=-1)

    def embed(self, items):
        """Items by length, as many at a time as fill a pass."""
        by_length, start, vectors = sorted(items, key=len), 0, []
        while start < len(by_length):
            end = start + 1
            while end < len(by_length) and (end + 1 - start) * len(by_length[end]) <= ROWS_MAX:
                end += 1
            some = by_length[start:end]
            longest = len(some[-1])
            ids = torch.tensor([item + [0] * (longest - len(item)) for item in some]).cuda()
            vectors.append(self.forward(ids, torch.tensor([len(item) for item in some]).cuda()).cpu())
            start = end
        return torch.cat(vectors)


def timed(work):
    """Seconds that it takes, all of it done."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - begun


def copy(size):
    one = torch.zeros(size // 2, device="cuda", dtype=torch.bfloat16)
    other = torch.empty_like(one)
    other.copy_(one)
    seconds = timed(lambda: [other.copy_(one) for _ in range(20)])
    return {"bytes_per_second": 2 * size * 20 / seconds}


def generate(decoder, what, streams, prompt, decode=0):
    ids = torch.randint(decoder.shape["vocabulary"], (streams, prompt), device="cuda")
    cache = decoder.cache(streams, prompt + decode)
    if what == "prefill":
        return {"units": streams * prompt, "seconds": timed(lambda: decoder.prefill(ids, cache))}
    graph, _kept = decoder.steps(decoder.prefill(ids, cache), prompt, cache)
    return {"units": streams * decode, "seconds": timed(lambda: [graph.replay() for _ in range(decode)])}


def embed(encoder, items, longest):
    numbers = torch.Generator().manual_seed(7)
    lengths = torch.randint(1, longest + 1, (items,), generator=numbers).tolist()
    vocabulary = encoder.shape["vocabulary"]
    texts = [torch.randint(vocabulary, (length,), generator=numbers).tolist() for length in lengths]
    return {"units": items, "seconds": timed(lambda: encoder.embed(texts))}


def answer(decoder, encoder, command):
    what = command.pop("what")
    if what == "copy":
        return copy(command["bytes"])
    if what == "embed":
        return embed(encoder, **command)
    return generate(decoder, what, **command)


@torch.inference_mode()
def main():
    decoder, encoder = (json.loads(shape) for shape in sys.argv[1:3])
    decoder, encoder = Decoder(decoder), Encoder(encoder)
    name = torch.cuda.get_device_name()
    say(ready=True, torch=torch.__version__, cuda=torch.version.cuda, device=name)
    for line in sys.stdin:
        say(**answer(decoder, encoder, json.loads(line)))


if __name__ == "__main__":
    main()
