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
    """A string for gnuplot: in single quotes only the quote itself is special."""
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


# The range is from half the reference's time (blue) over the same time (white) to twice the time
# (red).
RATIO_COLOURS = """set palette defined (-1 '#2166ac', -0.5 '#92c5de', 0 '#ffffff', \
                    0.5 '#f4a582', 1 '#b2182b')
set cbrange [-1:1]
set cbtics ('0.5 or less' -1, '0.7' log(0.7)/log(2), '1' 0, '1.4' log(1.4)/log(2), '2 or more' 1)
"""


def ratio_map(path, rows, name, title):
    """Draws the ratios of one configuration as a map of collectives and sizes, with colours and
    numbers. Of each cell only the first row is drawn, which is its most frequent state."""
    cells = {}
    for row in rows:
        if name in row.ratios:
            cells.setdefault(row.cell, row.ratios[name].medians)
    if not cells:
        raise Wrong("nothing to draw: no cell has a ratio")
    kinds = list(dict.fromkeys(kind for kind, _ in cells))
    sizes = sorted({size for _, size in cells})
    data = [f"{sizes.index(size)} {kinds.index(kind)} {ratio:g}"
            for (kind, size), ratio in cells.items()]
    columns = ", ".join(f"{quoted(size_name(size))} {i}" for i, size in enumerate(sizes))
    lines = ", ".join(f"{quoted(kind)} {i}" for i, kind in enumerate(kinds))
    draw(path, title, blocks({"cells": data}) + RATIO_COLOURS + f"""unset key
unset grid
set xtics ({columns})
set ytics ({lines}) noenhanced
set yrange [{len(kinds) - 0.5}:-0.5]
set xrange [-0.5:{len(sizes) - 0.5}]
set xlabel 'bytes'
bounded(x) = x < -1 ? -1 : x > 1 ? 1 : x
plot $d0 using 1:2:(0.5):(0.5):(bounded(log($3)/log(2))) with boxxyerror \
         fillcolor palette fillstyle solid border lc rgb '#dddddd', \
     $d0 using 1:2:(sprintf('%.2f', $3)) with labels font ',11'
""")


def size_name(size):
    """The size as the options write it; an operation without a size has a dash."""
    for unit, name in ((1 << 20, "M"), (1 << 10, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size) if size else "-"


def time_lines(path, rows, names, title):
    """Draws times by size, with one line per kind and configuration; both axes are logarithmic."""
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
    """Draws the times of all cells, with one bar per configuration and a logarithmic axis."""
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
