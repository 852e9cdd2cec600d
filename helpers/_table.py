"""A measured table: a frozen dataclass of equally long arrays that prints as text or HTML."""

from __future__ import annotations

import dataclasses
import html
from dataclasses import dataclass

import numpy as np


def column(header: str, fmt: str = ".3f"):
    """A dataclass field that is a column: its printed header and the format of its numbers."""
    return dataclasses.field(metadata={"header": header, "fmt": fmt})


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Base of the measured tables.

    Fields made with `column` are arrays of one shape `(rows,)`, read as attributes; other fields
    are kept but not printed. `print(table)` and `table.text(...)` give aligned plain text, and
    a notebook shows the same cells as an HTML table.

    Raises `ValueError` when two columns differ in length.
    """

    def __post_init__(self) -> None:
        lengths = {}
        for field in self._columns():
            values = np.asarray(getattr(self, field.name))
            object.__setattr__(self, field.name, values)
            lengths[field.name] = values.shape
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns differ in shape: {lengths}; give one value a row to each.")

    @classmethod
    def from_rows(cls, rows: list[dict], **others):
        """The table whose columns are collected from one dictionary a row.

        Raises `ValueError` when there is no row.
        """
        if not rows:
            raise ValueError("got 0 rows; a table needs at least 1: pass at least one setting.")
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        return cls(**columns, **others)

    @classmethod
    def _columns(cls):
        return [field for field in dataclasses.fields(cls) if "header" in field.metadata]

    def __len__(self) -> int:
        return len(getattr(self, self._columns()[0].name))

    def rows(self) -> list[dict]:
        """One dictionary a row: column name → plain Python value."""
        names = [field.name for field in self._columns()]
        values = (getattr(self, name).tolist() for name in names)
        return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]

    def text(self, *names: str) -> str:
        """Aligned plain text of the named columns, in that order; of every column if none is named.

        Raises `ValueError` for a name that is no column.
        """
        head, body = self._cells(names)
        widths = [max(map(len, cells)) for cells in zip(head, *body, strict=True)]
        left = [isinstance(value, str) for value in self._first_row(names)]
        lines = [
            "  ".join(
                cell.ljust(width) if is_left else cell.rjust(width)
                for cell, width, is_left in zip(line, widths, left, strict=True)
            ).rstrip()
            for line in [head, *body]
        ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, body = self._cells(())
        heading = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
        lines = (
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>"
            for line in body
        )
        return (
            f"<table><thead><tr>{heading}</tr></thead>\n<tbody>\n"
            + "\n".join(lines)
            + "\n</tbody></table>"
        )

    def _chosen(self, names):
        fields = {field.name: field for field in self._columns()}
        for name in names:
            if name not in fields:
                raise ValueError(f"no column {name!r}; choose from: {', '.join(fields)}.")
        return [fields[name] for name in names] or list(fields.values())

    def _first_row(self, names):
        return [getattr(self, field.name).tolist()[0] for field in self._chosen(names)]

    def _cells(self, names):
        chosen = self._chosen(names)
        head = [field.metadata["header"] for field in chosen]
        columns = [
            [_cell(value, field.metadata["fmt"]) for value in getattr(self, field.name).tolist()]
            for field in chosen
        ]
        return head, [list(line) for line in zip(*columns, strict=True)]


def _cell(value, fmt: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    shown = format(value, fmt)
    # A rounded −0.000 would depend on the last bit of a sum.
    return shown.replace("-", "", 1) if float(shown) == 0 else shown
