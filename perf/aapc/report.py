"""The results of all measurements: they are kept as JSON and shown as tables and pictures."""

import json
import os

from measure import Wrong
from plot import blocks, draw, quoted


def _key(row):
    return tuple(row[name] for name in ("topology", "rate", "bytes", "variable", "routine"))


def _megabits(row, us):
    """Aggregate throughput in Mbit/s."""
    return row["all_bytes"] * 8 / us


class Data:
    """Rows by cell. If `path` is given, the file is read first and written after each addition."""

    def __init__(self, path):
        self.path, self.rows = path, {}
        if path and os.path.exists(path):
            try:
                with open(path, encoding="utf-8") as file:
                    self.rows = {_key(row): row for row in json.load(file)["rows"]}
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise Wrong(f"{path}: no data of perf/aapc/run: {error!r}") from error

    def add(self, rows, load):
        for row in rows:
            self.rows[_key(row)] = {**row, "load_before": load, "processor_count": os.cpu_count()}
        if self.path:
            try:
                with open(self.path, "w", encoding="utf-8") as file:
                    json.dump({"rows": list(self.rows.values())}, file, indent=1)
                    file.write("\n")
            except OSError as error:
                raise Wrong(f"{self.path}: {error.strerror}") from error

    def _pictures(self):
        """{(topology, rate, is variable): rows on links with a rate}, in the order of
        measurement."""
        groups = {}
        for row in self.rows.values():
            if row["rate"]:
                group = (row["topology"], row["rate"], row["variable"] is not None)
                groups.setdefault(group, []).append(row)
        return groups

    def table(self):
        text = ""
        for (name, rate, variable), rows in self._pictures().items():
            call = "alltoallv, lengths 0 to 2 x bytes" if variable else "alltoall"
            text += f"\n({name}) {call}, links of {rate}: ms, and part of the peak\n\n"
            text += _markdown(rows)
            unlimited = [row for row in self.rows.values()
                         if not row["rate"] and row["topology"] == name
                         and (row["variable"] is not None) == variable]
            for row in unlimited:
                text += (f"\nWithout a rate on the links, {row['routine']} takes "
                         f"{row['median_us'] / 1000:.1f} ms for {row['bytes']} bytes.\n")
        return text

    def draw(self, prefix):
        for (name, rate, variable), rows in self._pictures().items():
            lines = {"peak": [f"{row['bytes']} {_megabits(row, row['least_us'])}"
                              for row in sorted(rows, key=lambda row: row["bytes"])]}
            for row in sorted(rows, key=lambda row: row["bytes"]):
                lines.setdefault(row["routine"], []).append(
                    f"{row['bytes']} {_megabits(row, row['median_us'])}")
            plots = [f"$d0 using 1:2 with lines lw 2 dt 2 lc 'black' title {quoted('peak')}"]
            plots += [f"$d{i} using 1:2 with linespoints pt 7 ps 0.5 title {quoted(line)}"
                      for i, line in enumerate(lines) if line != "peak"]
            base = os.path.splitext(os.path.basename(name))[0]
            kind, call = ("-variable", "Alltoallv") if variable else ("", "Alltoall")
            draw(f"{prefix}-{base}-{rate}{kind}.svg",
                 f"{call} on topology {name}, links of {rate}",
                 blocks(lines) + "set logscale x 2\nset yrange [0:*]\nset format x '%.0b%B'\n"
                 "set xlabel 'bytes for each rank'\n"
                 "set ylabel 'aggregate throughput, Mbit/s'\nplot " + ", ".join(plots) + "\n")


def _markdown(rows):
    routines = list(dict.fromkeys(row["routine"] for row in rows))
    cells = {(row["bytes"], row["routine"]): row for row in rows}
    lines = [["bytes", "least", *routines], ["---"] * (2 + len(routines))]
    for size in sorted({row["bytes"] for row in rows}):
        present = [cells[size, routine] for routine in routines if (size, routine) in cells]
        least = present[0]["least_us"]
        line = [str(size), f"{least / 1000:.1f}"]
        for routine in routines:
            row = cells.get((size, routine))
            line.append("-" if row is None else f"{row['median_us'] / 1000:.1f} "
                        f"({100 * least / row['median_us']:.0f} %)")
        lines.append(line)
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
