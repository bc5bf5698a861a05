"""A plot of the supply over years, as SVG."""

from html import escape

WIDTH, HEIGHT = 800, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 44, 56
COLORS = ("#1b6ca8", "#3a8f4d", "#c77d0a")
MILLION = 1_000_000
# Between two lines of the grid, in SURE and in years.
STEP, YEARS = 3 * MILLION, 2


def draw(report):
    """The curves of a report, the cap, and the supply from which on the rate falls."""
    axes = _Axes(report)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 22, "SURE ever minted, by what part of it is bonded", size=15),
        *axes.grid(),
        *axes.level(report["cap"], "cap"),
        *axes.level(report["cap"] - report["taper"], "from here on less than 7 % a year is paid"),
    ]
    for number, (curve, colour) in enumerate(zip(report["curves"], COLORS, strict=True)):
        points = curve["supply_by_month"]
        months = report["months_per_year"]
        line = " ".join(f"{axes.x(month / months):.1f},{axes.y(sure):.1f}" for month, sure in enumerate(points))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += _legend(curve, colour, number)
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Axes:
    def __init__(self, report):
        self.years = report["years"]
        self.top = (report["cap"] // STEP + 1) * STEP

    def x(self, year):
        return LEFT + year / self.years * (WIDTH - LEFT - RIGHT)

    def y(self, sure):
        return TOP + (self.top - sure) / self.top * (HEIGHT - TOP - BOTTOM)

    def grid(self):
        for year in range(0, self.years + 1, YEARS):
            yield f'<path d="M{self.x(year):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#eee"/>'
            yield _text(self.x(year), HEIGHT - BOTTOM + 18, f"{year}")
        for sure in range(0, self.top + 1, STEP):
            yield f'<path d="M{LEFT} {self.y(sure):.1f}H{WIDTH - RIGHT}" stroke="#eee"/>'
            yield _text(LEFT - 8, self.y(sure) + 4, f"{sure // MILLION}", anchor="end")
        yield _text(WIDTH / 2, HEIGHT - 14, "years")
        middle = (TOP + HEIGHT - BOTTOM) / 2
        yield f'<g transform="rotate(-90 20 {middle})">{_text(20, middle, "million SURE")}</g>'

    def level(self, sure, name):
        yield f'<path d="M{LEFT} {self.y(sure):.1f}H{WIDTH - RIGHT}" stroke="#333" stroke-dasharray="5 4"/>'
        yield _text(LEFT + 8, self.y(sure) - 5, name, anchor="start", size=11)


def _legend(curve, colour, number):
    x, y = WIDTH - RIGHT - 330, HEIGHT - BOTTOM - 60 + 18 * number
    yield f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
    last = curve["supply_by_month"][-1] / MILLION
    text = f"{curve['bonded_percent']} % bonded: {last:.2f} million in the end"
    yield _text(x + 16, y, text, anchor="start", size=11)


def _text(x, y, text, anchor="middle", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
