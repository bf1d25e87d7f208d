"""Draws the paper's figures from the results of `run`."""

from measure import Wrong
from plot import blocks, draw, quoted

DOUBLING, STOCK, MPICH = "recursive doubling", "Open MPI", "MPICH"


def _cells(rows):
    """{(ranks, bytes): {schedule: row}}, in the order of measurement."""
    cells = {}
    for row in rows:
        cells.setdefault((row["ranks"], row["bytes"]), {})[row["schedule"]] = row
    return cells


def _best(cell):
    """The schedule with the lowest median that is neither recursive doubling nor stock."""
    others = [row for name, row in cell.items() if name not in (DOUBLING, STOCK, MPICH)]
    return min(others, key=lambda row: row["median_us"], default=cell[DOUBLING])


def _lines(path, title, x_name, points):
    """Draws points, [(x, cell)]: the minimum dashed, the median solid, and one colour for each
    schedule."""
    data, plots = {}, []
    compared = [(DOUBLING, lambda cell: cell[DOUBLING]), ("best schedule", _best),
                (STOCK, lambda cell: cell[STOCK])]
    if all(MPICH in cell for _, cell in points):
        compared.append((MPICH, lambda cell: cell[MPICH]))
    for colour, (name, pick) in enumerate(compared, 1):
        picked = [(x, pick(cell)) for x, cell in points]
        data[name] = [f"{x} {row['minimum_us']} {row['median_us']}" for x, row in picked]
        index = len(data) - 1
        plots += [f"$d{index} using 1:2 with linespoints lc {colour} dt 2 "
                  f"title {quoted(name + ', minimum')}",
                  f"$d{index} using 1:3 with linespoints lc {colour} "
                  f"title {quoted(name + ', median')}"]
    draw(path, title, blocks(data) + f"set xlabel {quoted(x_name)}\nset ylabel 'us'\n"
         "set yrange [0:*]\nplot " + ", ".join(plots) + "\n")


def _difference(path, cells):
    """Figure 12."""
    data = {kind: [f"{ranks} {row[kind + '_us'] / row['predicted_us'][kind] - 1}"
                   for (ranks, _), cell in cells.items() for row in [_best(cell)]]
            for kind in ("minimum", "median")}
    draw(path, "Best schedule: measured against predicted", blocks(data)
         + "set xlabel 'ranks'\nset ylabel 'measured / predicted - 1'\n"
         "plot $d0 with linespoints title 'minimum', $d1 with linespoints title 'median', "
         "0 lc 'gray' notitle\n")


def _correlation(path, rows, kind):
    """Figures 14 and 15."""
    data = {}
    for row in rows:
        if "predicted_us" in row:
            data.setdefault(row["ranks"], []).append(
                f"{row['predicted_us'][kind]} {row[kind + '_us']}")
    plots = [f"$d{index} with points pt 7 title {quoted(f'{ranks} ranks')}"
             for index, ranks in enumerate(data)]
    draw(path, f"Schedules, {kind}", blocks(data) + "set xlabel 'predicted, us'\n"
         "set ylabel 'measured, us'\nplot " + ", ".join(plots) + ", x lc 'gray' title 'equal'\n")


def _distributions(path, cell, ranks):
    """Draws boxes of the blocks' times by schedule, like figure 13."""
    data = {name: [str(us) for us in row["times_us"]] for name, row in cell.items()}
    plots = [f"$d{index} using ({index}):1 with boxplot notitle" for index in range(len(data))]
    tics = ", ".join(f"{quoted(name)} {index}" for index, name in enumerate(data))
    draw(path, f"Blocks of {ranks} ranks", blocks(data)
         + f"set style fill solid 0.3 border\nset boxwidth 0.4\nset xtics ({tics}) noenhanced "
         f"rotate by -25\nset xrange [-0.6:{len(data) - 0.4}]\nset ylabel 'us'\n"
         "set yrange [0:*]\nplot " + ", ".join(plots) + "\n")


def draw_all(prefix, rows):
    cells = _cells(rows)
    if not cells:
        raise Wrong("nothing to draw")
    least = min(size for _, size in cells)
    most = max(ranks for ranks, _ in cells)
    short = {key: cell for key, cell in cells.items() if key[1] == least}
    _lines(f"{prefix}-ranks.svg", f"Allreduce of {least} bytes", "ranks",
           [(ranks, cell) for (ranks, _), cell in short.items()])
    sizes = [(size, cell) for (ranks, size), cell in cells.items() if ranks == most]
    if len(sizes) > 1:
        _lines(f"{prefix}-sizes.svg", f"Allreduce of {most} ranks", "bytes", sizes)
    _difference(f"{prefix}-difference.svg", short)
    for kind in ("minimum", "median"):
        _correlation(f"{prefix}-{kind}.svg", list(rows), kind)
    _distributions(f"{prefix}-blocks.svg", cells[most, least], most)
