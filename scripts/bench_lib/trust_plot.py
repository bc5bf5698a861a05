"""A plot of profit over the size of the lock, as SVG."""

from html import escape

WIDTH, HEIGHT = 800, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 44, 56
COLORS = ("#1b6ca8", "#3a8f4d", "#c77d0a", "#b3261e")


def draw(curves):
    """The curves of `break_even` in a report.

    Points are what was played, with three standard errors; dashed lines stand where theory puts the break-even.
    """
    axes = _Axes(curves)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 22, "Profit of cheating beside honest work, over the lock", size=15),
        *axes.grid(),
    ]
    for number, (curve, colour) in enumerate(zip(curves, COLORS, strict=False)):
        parts += _curve(axes, curve, colour)
        parts += _legend(curve, colour, number)
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Axes:
    def __init__(self, curves):
        points = [point for curve in curves for point in curve["points"]]
        self.right = _round_up(max(point[0] for point in points))
        self.top = _round_up(max(point[1] for point in points))
        self.bottom = -_round_up(-min(0, *(point[1] for point in points)))

    def x(self, lock):
        return LEFT + lock / self.right * (WIDTH - LEFT - RIGHT)

    def y(self, profit):
        return TOP + (self.top - profit) / (self.top - self.bottom) * (HEIGHT - TOP - BOTTOM)

    def grid(self):
        for step in range(11):
            lock = self.right * step / 10
            yield f'<path d="M{self.x(lock):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#eee"/>'
            yield _text(self.x(lock), HEIGHT - BOTTOM + 18, f"{lock:g}")
        for step in range(9):
            profit = self.bottom + (self.top - self.bottom) * step / 8
            yield f'<path d="M{LEFT} {self.y(profit):.1f}H{WIDTH - RIGHT}" stroke="#eee"/>'
            yield _text(LEFT - 8, self.y(profit) + 4, f"{profit:.2g}", anchor="end")
        yield f'<path d="M{LEFT} {self.y(0):.1f}H{WIDTH - RIGHT}" stroke="#333"/>'
        yield _text(WIDTH / 2, HEIGHT - 14, "lock, in rewards R")
        middle = (TOP + HEIGHT - BOTTOM) / 2
        yield f'<g transform="rotate(-90 20 {middle})">{_text(20, middle, "mean profit of a task, in R")}</g>'


def _curve(axes, curve, colour):
    line = " ".join(f"{axes.x(lock):.1f},{axes.y(profit):.1f}" for lock, profit, _ in curve["points"])
    yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
    for lock, profit, error in curve["points"]:
        x, low, high = axes.x(lock), axes.y(profit - 3 * error), axes.y(profit + 3 * error)
        yield f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{colour}"/>'
        yield f'<circle cx="{x:.1f}" cy="{axes.y(profit):.1f}" r="3" fill="{colour}"/>'
    x = axes.x(curve["break_even_promised_in_r"])
    yield f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{colour}" stroke-dasharray="5 4"/>'


def _legend(curve, colour, number):
    x, y = WIDTH - RIGHT - 330, TOP + 18 + 18 * number
    yield f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
    text = (
        f"{curve['corrupt_percent']} % corrupt: break-even {curve['break_even_promised_in_r']:.2f} R by theory, "
        f"{curve['break_even_seen_in_r']:.2f} R played"
    )
    yield _text(x + 16, y, text, anchor="start", size=11)


def _text(x, y, text, anchor="middle", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _round_up(value):
    """To the next of 1, 2, 3, 4, 5, 6, 8 times a power of ten."""
    if value <= 0:
        return 0
    power = 10.0 ** (len(f"{value:.0f}") - 1) if value >= 1 else 0.1
    while True:
        for factor in (1, 2, 3, 4, 5, 6, 8):
            if factor * power >= value:
                return factor * power
        power *= 10
