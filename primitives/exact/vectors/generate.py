#!/usr/bin/env python3
"""Writes the golden vectors beside this file. Needs numpy.

A second implementation of the canonical numbers, from their definition in words: numpy's float32, one operation at a
time, so that the vectors check the formulas and not merely that the code has not changed. Floats are written as the
hexadecimal digits of their bits, rows with blanks between.
"""

import json
import pathlib
import random

import numpy

HERE = pathlib.Path(__file__).parent
F = numpy.float32
GROUP = 128
LANES = 32
WEIGHT_MAX = 8191


# --- Writing ----------------------------------------------------------------------------------------------------------
def bits(value) -> int:
    return int(F(value).view(numpy.uint32))


def floats(row) -> str:
    return " ".join(f"{bits(value):08x}" for value in row)


def integers(row) -> str:
    return " ".join(str(int(value)) for value in row)


def from_bits(value: int):
    return numpy.uint32(value).view(F)


# --- Functions --------------------------------------------------------------------------------------------------------
EXP = [from_bits(b) for b in (0x39506967, 0x3AB743CE, 0x3C088908, 0x3D2AA9C1, 0x3E2AAAAA, 0x3F000000)]


def exp(x):
    x = F(min(max(F(x), F(-87)), F(88)))
    # Rounded to the nearest integer, ties to even, as adding 1.5 * 2^23 and taking it away does.
    n = F(F(x * from_bits(0x3FB8AA3B)) + F(12582912)) - F(12582912)
    r = F(F(x - F(n * F(0.693359375))) - F(n * from_bits(0xB95E8083)))
    p = EXP[0]
    for coefficient in EXP[1:]:
        p = F(F(p * r) + coefficient)
    p = F(F(F(p * F(r * r)) + r) + F(1))
    return numpy.ldexp(p, int(n))


def sqrt(x):
    return numpy.sqrt(F(x))


def rsqrt(x):
    return F(1) / sqrt(x)


def tanh(x):
    e = exp(F(-2) * abs(F(x)))
    return numpy.copysign(F(F(1) - e) / F(F(1) + e), F(x))


def erf(x):
    size = abs(F(x))
    t = F(1) / F(F(1) + F(F(0.3275911) * size))
    p = F(1.0614054)
    for coefficient in (F(-1.453152), F(1.4214138), F(-0.28449674), F(0.2548296)):
        p = F(F(p * t) + coefficient)
    return numpy.copysign(F(F(1) - F(F(p * t) * exp(-F(size * size)))), F(x))


def gelu(x):
    return F(F(0.5) * F(x)) * F(F(1) + erf(F(x) * F(numpy.sqrt(0.5))))


def gelu_tanh(x):
    x = F(x)
    inner = F(0.7978846) * F(x + F(F(0.044715) * F(F(x * x) * x)))
    return F(F(0.5) * x) * F(F(1) + tanh(inner))


def silu(x):
    return F(x) / F(F(1) + exp(-F(x)))


def sin_cos_turn(turn: int):
    quarter = ((turn + (1 << 29)) >> 30) % 4
    rest = turn - (quarter << 30)
    if rest >= 1 << 31:
        rest -= 1 << 32
    x = F(rest >> 6) * F(2.0**-26)
    x2 = F(x * x)
    s = F(-76.7046)
    for coefficient in (F(81.60525), F(-41.3417), F(6.2831855)):
        s = F(F(s * x2) + coefficient)
    s = F(s * x)
    c = F(60.24464)
    for coefficient in (F(-85.45682), F(64.93939), F(-19.739208), F(1)):
        c = F(F(c * x2) + coefficient)
    return [(s, c), (c, -s), (-s, -c), (-c, s)][quarter]


def at(turns: int, position: int):
    return sin_cos_turn(((turns * position) % (1 << 64)) >> 32)


# --- Rows -------------------------------------------------------------------------------------------------------------
def fold(lanes):
    lanes = list(lanes)
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [F(lanes[i] + lanes[i + half]) for i in range(half)]
    return lanes[0]


def lane_sum(row):
    lanes = [F(0)] * LANES
    for i, value in enumerate(row):
        lanes[i % LANES] = F(lanes[i % LANES] + F(value))
    return fold(lanes)


def sum_of_squares(row):
    return lane_sum([F(value * value) for value in row])


def layer_norm_row(row, weight, bias, epsilon):
    n = F(len(row))
    mean = F(lane_sum(row) / n)
    centred = [F(value - mean) for value in row]
    scale = rsqrt(F(F(sum_of_squares(centred) / n) + F(epsilon)))
    return [F(F(F(c * scale) * w) + b) for c, w, b in zip(centred, weight, bias, strict=True)]


def rms_norm_row(row, weight, epsilon):
    scale = rsqrt(F(F(sum_of_squares(row) / F(len(row))) + F(epsilon)))
    return [F(F(value * scale) * w) for value, w in zip(row, weight, strict=True)]


def rotate_pair(a, b, sin, cos):
    return F(F(a * cos) - F(b * sin)), F(F(b * cos) + F(a * sin))


def rotate_row(head, turns, position):
    half = len(turns)
    pairs = [rotate_pair(head[i], head[i + half], *at(turns[i], position)) for i in range(half)]
    return [a for a, _ in pairs] + [b for _, b in pairs]


def nearest(x) -> int:
    return int(numpy.rint(F(x)))


def quantize_group(values, most):
    size = max((abs(F(value)) for value in values), default=F(0))
    if size < F(1e-30):
        return [0] * len(values), F(0)
    inverse = F(most) / size
    return [nearest(F(value * inverse)) for value in values], F(size / F(most))


def quantize_row(row, most):
    groups = [quantize_group(row[at : at + GROUP], most) for at in range(0, len(row), GROUP)]
    return [q for group, _ in groups for q in group], [scale for _, scale in groups]


def dot(a, b) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def product_cell(q, q_scales, w, w_scales, bias):
    total = F(0)
    for g, (s, t) in enumerate(zip(q_scales, w_scales, strict=True)):
        part = slice(g * GROUP, (g + 1) * GROUP)
        total = F(total + F(F(dot(q[part], w[part])) * F(s * t)))
    return F(total + F(bias))


def one_by_one(terms):
    total = F(0)
    for term in terms:
        total = F(total + term)
    return total


def quantize_heads(row, head_dim):
    heads = [quantize_group(row[at : at + head_dim], 2047) for at in range(0, len(row), head_dim)]
    return [q for head, _ in heads for q in head], [scale for _, scale in heads]


def softmax_block(scores, value_scales):
    top = max(scores)
    weights = [exp(F(score - top)) for score in scores]
    q, scale = quantize_group([F(w * s) for w, s in zip(weights, value_scales, strict=True)], WEIGHT_MAX)
    return top, weights, lane_sum(weights), q, scale


def merge(before, block, factors):
    return F(F(before * factors[0]) + F(block * factors[1]))


def attention_row(query, keys, values, scale):
    (q, q_scale), heads = quantize_group(query, 2047), [quantize_group(key, 2047) for key in keys]
    values = [quantize_group(value, 2047) for value in values]
    scores = [F(F(dot(q, k)) * F(F(q_scale * F(scale)) * s)) for k, s in heads]
    top, total, out = from_bits(0xFF7FFFFF), F(0), [F(0)] * len(query)
    for at in range(0, len(keys), GROUP):
        of = values[at : at + GROUP]
        block_top, _, block_total, weights, weight_scale = softmax_block(scores[at : at + GROUP], [s for _, s in of])
        new_top = max(top, block_top)
        factors = exp(F(top - new_top)), exp(F(block_top - new_top))
        dots = [dot(weights, [v[d] for v, _ in of]) for d in range(len(query))]
        out = [merge(o, F(F(n) * weight_scale), factors) for o, n in zip(out, dots, strict=True)]
        top, total = new_top, merge(total, block_total, factors)
    return [F(value / total) for value in out]


def mean_pool(rows):
    return [F(one_by_one(row[j] for row in rows) / F(len(rows))) for j in range(len(rows[0]))]


def l2_normalize(row):
    norm = sqrt(sum_of_squares(row))
    return [F(value / norm) for value in row]


# --- Sampling ---------------------------------------------------------------------------------------------------------
def greedy(logits) -> int:
    return min(range(len(logits)), key=lambda token: (-logits[token], token))


def sample(logits, temperature_milli, top_k, top_p_milli, number) -> int:
    if temperature_milli == 0:
        return greedy(logits)
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    order = order[: top_k or len(order)]
    sharpness = F(F(1000) / F(temperature_milli))
    weights = [int(exp(F(F(logits[t] - logits[order[0]]) * sharpness)) * F(2**30)) for t in order]
    wanted = sum(weights) * min(top_p_milli, 1000)
    nucleus = next(n for n in range(1, len(order) + 1) if sum(weights[:n]) * 1000 >= wanted)
    drawn = number * sum(weights[:nucleus]) >> 64
    return order[next(i for i in range(nucleus) if sum(weights[: i + 1]) > drawn)]


# --- Cases ------------------------------------------------------------------------------------------------------------
DICE = random.Random("canonical numbers")


def row(n, size=4.0):
    return [F(DICE.uniform(-size, size)) for _ in range(n)]


def outlier_row(n):
    return [value * F(DICE.choice([1, 1, 1, 1, 0, 1e-3, 40])) for value in row(n)]


def functions():
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, 88.0, -87.0, 87.9, -86.9, 88.1, -87.1, 1e-30, -1e-30, 1e-42, 3e38, -3e38]
    edges += [100.0, -100.0, 0.34657359, -0.34657359, 1.5, 2.5, 6.0, -6.0]
    arguments = edges + row(40, 4.0) + row(20, 12.0) + row(20, 80.0)
    for function in (exp, tanh, erf, gelu, gelu_tanh, silu):
        yield {
            "function": function.__name__,
            "arguments": floats(arguments),
            "values": floats(function(x) for x in arguments),
        }
    arguments = [abs(x) for x in arguments if x != 0]
    for function in (sqrt, rsqrt):
        yield {
            "function": function.__name__,
            "arguments": floats(arguments),
            "values": floats(function(x) for x in arguments),
        }


def sums():
    for n in (0, 1, 5, 31, 32, 33, 64, 100, 384):
        values = outlier_row(n)
        yield {"row": floats(values), "sum": floats([lane_sum(values)]), "squares": floats([sum_of_squares(values)])}


def norms():
    for n, epsilon in ((1, 1e-5), (7, 1e-12), (16, 1e-6), (65, 1e-5), (384, 1e-12)):
        values, weight, bias = outlier_row(n), row(n, 2.0), row(n, 0.5)
        yield {
            "row": floats(values),
            "weight": floats(weight),
            "bias": floats(bias),
            "epsilon": floats([epsilon]),
            "layer_norm": floats(layer_norm_row(values, weight, bias, epsilon)),
            "rms_norm": floats(rms_norm_row(values, weight, epsilon)),
        }


def rounded():
    values = [n / 2 for n in range(-9, 10)] + [126.49999, 126.5, 127.0, -127.0, 2.0**22, -(2.0**22)] + row(20, 127.0)
    return {"arguments": floats(values), "integers": integers(nearest(value) for value in values)}


def of_row(values):
    """Both precisions of a row."""
    (q, scales), (fine, fine_scales) = quantize_row(values, 127), quantize_row(values, 2047)
    return {
        "q": integers(q),
        "scales": floats(scales),
        "int12": {"q": integers(fine), "scales": floats(fine_scales)},
    }


def quantized():
    for n in (1, 31, 128, 129, 300):
        values, by = outlier_row(n), row(n, 1.5)
        scaled = [F(value * factor) for value, factor in zip(values, by, strict=True)]
        yield {"row": floats(values), "by": floats(by), "scaled": floats(scaled), **of_row(scaled)}
    for values in ([F(9e-31), F(-9e-31)], [F(3.4e38), F(-1e38), F(1)], [F(0), F(-0.0)], [F(1), F(0.5) / F(127)]):
        by = [1] * len(values)
        yield {"row": floats(values), "by": floats(by), "scaled": floats(values), **of_row(values)}


def product(dice, n, most):
    q, w = ([dice.randint(-most, most) for _ in range(n)] for _ in range(2))
    groups = -(-n // GROUP)
    s, t = ([F(dice.uniform(1e-4, 0.1)) for _ in range(groups)] for _ in range(2))
    return q, s, w, t, dice.choice([F(0), F(dice.uniform(-1, 1))])


def products():
    # Of int12 with dice of their own: the vectors that come after these stay what they were.
    fine = random.Random(12)
    cases = [product(DICE, n, 127) for n in (1, 64, 128, 130, 384, 600)]
    cases += [([value] * GROUP, [F(1)], [-128] * GROUP, [F(1.1)], F(0)) for value in (127, -128)]
    cases += [product(fine, n, 2047) for n in (1, 64, 128, 130, 384, 600)]
    cases += [([value] * GROUP, [F(1)], [-2047] * GROUP, [F(1.1)], F(0)) for value in (2047, -2047, 2045)]
    for q, s, w, t, bias in cases:
        yield {
            "q": integers(q),
            "q_scales": floats(s),
            "w": integers(w),
            "w_scales": floats(t),
            "bias": floats([bias]),
            "dot": dot(q, w),
            "cell": floats([product_cell(q, s, w, t, bias)]),
        }


def attentions():
    for positions, width in ((1, 4), (2, 8), (15, 16), (128, 3), (129, 8), (300, 5)):
        query, size = row(width, 6.0), DICE.choice([1.0, 3.0])
        keys, values = ([outlier_row(width) for _ in range(positions)] for _ in range(2))
        scale = rsqrt(width)
        scores, value_scales = row(min(positions, GROUP), 20.0 * size), row(min(positions, GROUP), 0.01)
        q, scales = quantize_heads(query + keys[0], width)
        top, weights, total, quantized, weight_scale = softmax_block(scores, value_scales)
        yield {
            "query": floats(query),
            "keys": floats(k for key in keys for k in key),
            "values": floats(v for value in values for v in value),
            "scale": floats([scale]),
            "out": floats(attention_row(query, keys, values, scale)),
            "heads": {"q": integers(q), "scales": floats(scales)},
            "scores": floats(scores),
            "value_scales": floats(value_scales),
            "largest": floats([top]),
            "exponentials": floats(weights),
            "total": floats([total]),
            "weights": integers(quantized),
            "weight_scale": floats([weight_scale]),
        }


def angles():
    turns = [0, 1, 63, 64, (1 << 29) - 1, 1 << 29, 1 << 30, 1 << 31, 3 << 30, (7 << 29) - 1, 7 << 29, (1 << 32) - 1]
    turns += [DICE.randrange(1 << 32) for _ in range(60)]
    pairs = [sin_cos_turn(turn) for turn in turns]
    return {"turns": integers(turns), "sin": floats(s for s, _ in pairs), "cos": floats(c for _, c in pairs)}


def rotations():
    for half, position in ((1, 0), (2, 1), (8, 17), (32, 4095), (4, 1_000_003), (3, (1 << 32) - 1)):
        turns = [round(10000.0 ** (-i / half) / (2 * numpy.pi) * 2.0**64) for i in range(half)]
        head = row(2 * half)
        yield {
            "head": floats(head),
            "turns": integers(turns),
            "position": position,
            "rotated": floats(rotate_row(head, turns, position)),
        }


def pools():
    for n, width in ((1, 3), (2, 16), (7, 20), (64, 5)):
        rows = [outlier_row(width) for _ in range(n)]
        pooled = mean_pool(rows)
        yield {
            "rows": floats(value for row in rows for value in row),
            "pooled": floats(pooled),
            "normalized": floats(l2_normalize(pooled)),
        }


def samples():
    for n in (1, 2, 9, 50):
        logits = [F(value) for value in (DICE.choice([DICE.uniform(-9, 9), DICE.randint(-4, 4)]) for _ in range(n))]
        draws = []
        for temperature, top_k, top_p in (
            (0, 0, 1000),
            (1000, 0, 1000),
            (700, 5, 1000),
            (1500, 0, 900),
            (1000, 8, 500),
        ):
            for number in (0, (1 << 64) - 1, DICE.randrange(1 << 64), DICE.randrange(1 << 64), DICE.randrange(1 << 64)):
                token = sample(logits, temperature, top_k, top_p, number)
                # The number is a string: JSON readers lose bits of 64-bit numbers.
                draws.append(f"{temperature} {top_k} {top_p} {number} {token}")
        yield {"logits": floats(logits), "greedy": greedy(logits), "draws": draws}


def main():
    numpy.seterr(over="ignore", under="ignore")
    files = {
        "functions": list(functions()),
        "sums": list(sums()),
        "norms": list(norms()),
        "quantize": {"group": GROUP, "round": rounded(), "rows": list(quantized())},
        "product": list(products()),
        "attention": list(attentions()),
        "rotary": {"angles": angles(), "heads": list(rotations())},
        "pooling": list(pools()),
        "sampling": list(samples()),
    }
    for name, vectors in files.items():
        (HERE / f"{name}.json").write_text(json.dumps(vectors, indent=1) + "\n")


if __name__ == "__main__":
    main()
