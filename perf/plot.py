"""Pictures of comparisons, drawn by gnuplot as SVG."""

import subprocess

from measure import Wrong

HEAD = """set terminal svg size 900,560 dynamic background rgb 'white' font 'sans,13'
set output {output}
set title {title} noenhanced
set grid lc rgb '#dddddd'
set key outside right noenhanced
"""


def quoted(text):
    """A string of gnuplot: in single quotes only the quote itself is special."""
    return "'" + str(text).replace("'", "''") + "'"


def blocks(data):
    """Inline data: {name: [line, ...]} as $d0, $d1 ..."""
    return "".join(f"$d{i} << EOD\n" + "\n".join(lines) + "\nEOD\n"
                   for i, lines in enumerate(data.values()))


def draw(path, title, script):
    text = HEAD.format(output=quoted(path), title=quoted(title)) + script
    done = subprocess.run(["gnuplot"], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Wrong(f"gnuplot: {done.stderr.strip()}")


def ratio_lines(path, rows, others, title, against):
    """Ratio by size, one line per kind and configuration; kinds without sizes are points at the
    left. Only the first row of a cell is drawn: its most frequent state."""
    sizes = [row.cell[1] for row in rows if row.cell[1] > 0]
    edge = min(sizes, default=2) / 2  # Where those without a size are drawn.
    lines, seen = {}, set()
    for row in rows:
        for name in others:
            if (row.cell, name) in seen or name not in row.ratios:
                continue
            seen.add((row.cell, name))
            middle, width = row.ratios[name][0], row.ratios[name][1] or 0
            line = row.cell[0] if len(others) == 1 else f"{row.cell[0]} {name}"
            lines.setdefault(line, []).append(
                f"{row.cell[1] or edge:g} {middle:g} {middle * (1 - width):g} "
                f"{middle * (1 + width):g}")
    if not lines:
        raise Wrong("nothing to draw: no cell has a ratio")
    plots = ", ".join(f"$d{i} using 1:2:3:4 with yerrorlines pt 7 ps 0.5 title {quoted(name)}"
                      for i, name in enumerate(lines))
    draw(path, title, blocks(lines) + f"""set logscale x 2
set logscale y
set xrange [{edge / 1.4:g}:*]
set format x '%.0b%B'
set xlabel 'bytes (leftmost: operations without a size)'
set ylabel {quoted('time over ' + against)} noenhanced
plot 1 with lines lc rgb 'black' dt 2 notitle, {plots}
""")


def time_lines(path, rows, names, title):
    """Times by size, one line per kind and configuration, both axes logarithmic."""
    lines = {}
    for row in rows:
        for name in names:
            if name in row.medians:
                lines.setdefault(f"{row.cell[0]} {name}", []).append(
                    f"{row.cell[1]} {row.medians[name]:g}")
    plots = ", ".join(f"$d{i} using 1:2 with linespoints pt 7 ps 0.5 title {quoted(name)}"
                      for i, name in enumerate(lines))
    draw(path, title, blocks(lines) + f"""set logscale x 2
set logscale y
set format x '%.0b%B'
set xlabel 'bytes'
set ylabel 'us per call'
plot {plots}
""")


def time_bars(path, rows, names, title):
    """Times of all cells, one bar per configuration, with a logarithmic axis."""
    data = {name: [] for name in names}
    for name in names:
        for row in rows:
            label = f"{row.cell[0]} {row.cell[1]}" if row.cell[1] > 0 else row.cell[0]
            data[name].append(f'"{label}" {row.medians.get(name, "NaN")}')
    least = min((us for row in rows for us in row.medians.values() if us > 0), default=1)
    plots = ", ".join(f"$d{i} using 2:xtic(1) title {quoted(name)}"
                      for i, name in enumerate(data))
    draw(path, title, blocks(data) + f"""set style data histograms
set style fill solid 0.7 border
set xtics rotate by -40 noenhanced
set logscale y
set yrange [{least / 2:g}:*]
set ylabel 'us per call'
plot {plots}
""")


def ratio_bars(path, bars, title, against):
    """`bars`: [(label, ratio, its relative spread or None), ...] in the order of the picture."""
    data = [f'"{label}" {middle:g} {middle * (around or 0):g}' for label, middle, around in bars]
    draw(path, title, blocks({"ratios": data}) + f"""set style data histograms
set style histogram errorbars lw 1
set style fill solid 0.7 border
set xtics rotate by -40 noenhanced
set yrange [0:*]
set ylabel {quoted('time over ' + against)} noenhanced
unset key
plot 1 with lines lc rgb 'black' dt 2, $d0 using 2:3:xtic(1)
""")


def model_lines(path, lines, title):
    """`lines`: {name: ["bytes measured predicted", ...]}; both axes logarithmic."""
    plots = ", ".join(
        f"$d{i} using 1:2 with points pt 7 ps 0.6 lc {i + 1} title {quoted(name)}, "
        f"$d{i} using 1:3 with lines lc {i + 1} notitle" for i, name in enumerate(lines))
    draw(path, title, blocks(lines) + f"""set logscale x 2
set logscale y
set format x '%.0b%B'
set xlabel 'bytes'
set ylabel 'us per call'
plot {plots}
""")
