"""Curves on logarithmic axes as an SVG, panels beside each other. Python 3 standard library only."""
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 340, 230  # of what is inside the axes
LEFT, RIGHT, TOP, BOTTOM = 62, 26, 30, 48
KEY_HEIGHT = 26
COLOURS = ("#1b6ca8", "#c8553d")
STYLE = "text{font:12px sans-serif;fill:#222}.grid{stroke:#ddd}.axis{stroke:#444;fill:none}"


def number(value):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def decades(values):
    """Powers of ten around the values, and all multiples of them between."""
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)


def panel_svg(panel, left):
    points = [point for _, _, points in panel["curves"] for point in points]
    xs = sorted({x for x, _ in points})
    low_x, high_x = log10(xs[0]), max(log10(xs[-1]), log10(xs[0]) + 0.1)
    low_y, high_y = decades([y for _, y in points])

    def at_x(x):
        return left + LEFT + (log10(x) - low_x) / (high_x - low_x) * WIDTH

    def at_y(y):
        return TOP + (high_y - log10(y)) / (high_y - low_y) * HEIGHT

    out = [f'<text x="{left + LEFT + WIDTH / 2:.0f}" y="{TOP - 12}" text-anchor="middle">{escape(panel["title"])}</text>']
    for power in range(low_y, high_y + 1):
        y = at_y(10.0 ** power)
        out.append(f'<path class="grid" d="M{left + LEFT} {y:.1f}h{WIDTH}"/>'
                   f'<text x="{left + LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{number(10.0 ** power)}</text>')
    for i, x in enumerate(xs):
        out.append(f'<path class="grid" d="M{at_x(x):.1f} {TOP}v{HEIGHT}"/>')
        if len(xs) < 7 or i % 3 == 0:
            out.append(f'<text x="{at_x(x):.1f}" y="{TOP + HEIGHT + 17}" text-anchor="middle">{number(x)}</text>')
    out.append(f'<rect class="axis" x="{left + LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}"/>')
    out.append(f'<text x="{left + LEFT + WIDTH / 2:.0f}" y="{TOP + HEIGHT + 38}" text-anchor="middle">'
               f'{escape(panel["x"])}</text>')
    out.append(f'<text transform="translate({left + 14} {TOP + HEIGHT / 2:.0f})rotate(-90)" text-anchor="middle">'
               f'{escape(panel["y"])}</text>')
    for i, (_, dashed, curve) in enumerate(panel["curves"]):
        colour, dash = COLOURS[i % len(COLOURS)], ' stroke-dasharray="5 4"' if dashed else ""
        path = "L".join(f"{at_x(x):.1f} {at_y(y):.1f}" for x, y in curve)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        out += [f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="2.5" fill="{colour}"/>' for x, y in curve]
    return out


def svg(panels):
    """A panel: title, x and y (what the axes show), curves: (name, dashed, [(x, y), ...]); all have the same curves."""
    across = LEFT + WIDTH + RIGHT
    width, height = across * len(panels), TOP + HEIGHT + BOTTOM + KEY_HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
           f'<style>{STYLE}</style><rect width="{width}" height="{height}" fill="#fff"/>']
    for i, panel in enumerate(panels):
        out += panel_svg(panel, i * across)
    for i, (name, dashed, _) in enumerate(panels[0]["curves"]):
        x, y = LEFT + i * (width - LEFT) / len(panels[0]["curves"]), height - 14
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        out.append(f'<path d="M{x:.0f} {y - 4}h26" stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="2"{dash}/>'
                   f'<text x="{x + 32:.0f}" y="{y}">{escape(name)}</text>')
    return "\n".join(out + ["</svg>", ""])
