"""Matrices as rounded cells tinted by magnitude: the face of the whole series."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from helpers.pictures import svg
from helpers.pictures.figure import Figure
from helpers.pictures.palette import INK, QUIET, ROLES, RULE, TEXT, ink_on, tint

ROW_HEIGHT = 34
GAP = 4  # between cells
TITLE_HEIGHT = 24
LABEL_HEIGHT = 18
CAPTION_HEIGHT = 22


@dataclass(frozen=True)
class Matrix:
    """A matrix to draw.

    values : (rows, columns) numbers.
    role : a key of `palette.ROLES`; gives the colour, and the title unless one is given.
    title : the symbol over the matrix, such as "Kᵀ" or "W_Q"; None takes the role's name.
    decimals : how many to print; None prints as many as needed, up to three.
    rows, columns : labels on the left and over the columns.
    caption : a line under the matrix; None prints its shape.
    chosen_row, chosen_column : outlined, their numbers bold.
    hidden : draw empty cells, for a step that has not been taken yet.
    full : the magnitude that gets the full colour; None takes the largest entry. Give two
        matrices of one picture the same, and equal tints mean equal values.
    """

    values: np.ndarray
    role: str
    title: str | None = None
    decimals: int | None = None
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    caption: str | None = None
    chosen_row: int | None = None
    chosen_column: int | None = None
    hidden: bool = False
    full: float | None = None
    cell_width: float | None = None
    font_size: float = 13

    @property
    def name(self) -> str:
        return ROLES[self.role].name if self.title is None else self.title

    def printed(self) -> list[list[str]]:
        """The cells as text."""
        values = np.asarray(self.values, dtype=float)
        decimals = svg.decimals_needed(values) if self.decimals is None else self.decimals
        return [[svg.number(value, decimals) for value in row] for row in values]

    def measure(self) -> tuple[float, float]:
        """The width of one cell and the size of its text.

        The cell is as wide as the longest number needs, 40 at least; where the width is given,
        the text shrinks until it fits.
        """
        longest = max(svg.text_width(cell) for row in self.printed() for cell in row)
        if self.chosen_row is not None or self.chosen_column is not None:
            longest *= 1.12  # bold is wider
        if self.cell_width is None:
            return max(40.0, self.font_size * longest + 12), self.font_size
        return self.cell_width, min(self.font_size, (self.cell_width - 9) / longest)


@dataclass(frozen=True)
class Block:
    """A drawn matrix: where its parts lie, and its SVG."""

    x: float  # left edge of the first cell
    y: float  # top edge of the first cell
    cell_width: float
    shape: tuple[int, int]
    body: str = field(repr=False)

    @property
    def right(self) -> float:
        return self.x + self.shape[1] * (self.cell_width + GAP) - GAP

    @property
    def bottom(self) -> float:
        return self.y + self.shape[0] * (ROW_HEIGHT + GAP) - GAP

    @property
    def middle(self) -> tuple[float, float]:
        return (self.x + self.right) / 2, (self.y + self.bottom) / 2

    def cell(self, row: int, column: int) -> tuple[float, float, float, float]:
        """(x, y, width, height) of one cell."""
        x = self.x + column * (self.cell_width + GAP)
        y = self.y + row * (ROW_HEIGHT + GAP)
        return x, y, self.cell_width, ROW_HEIGHT


def label_width(labels: tuple[str, ...]) -> float:
    """Room that row labels take on the left of a matrix."""
    return 7.5 * max(map(len, labels)) + 14 if labels else 0.0


def height(rows: int) -> float:
    """Height of `rows` rows of cells."""
    return rows * (ROW_HEIGHT + GAP) - GAP


def draw(matrix: Matrix, x: float, y: float) -> Block:
    """Draw `matrix` with the top left corner of its first cell at (x, y)."""
    values = np.asarray(matrix.values, dtype=float)
    role = ROLES[matrix.role]
    printed = matrix.printed()
    cell_width, font_size = matrix.measure()
    block = Block(x, y, cell_width, values.shape, "")
    finite = np.abs(values[np.isfinite(values)])
    full = matrix.full or (finite.max() if finite.size else 0) or 1.0

    parts = [_heading(matrix, block)]
    for i, j in np.ndindex(values.shape):
        left, top, width, tall = block.cell(i, j)
        if matrix.hidden:
            parts.append(svg.rect(left, top, width, tall, stroke=RULE, dash="3 4"))
            continue
        size = abs(values[i, j]) / full if np.isfinite(values[i, j]) else 0.0
        background = tint(role.fill, size)
        if values[i, j] < 0:  # hollow: the sign can be seen as well as read
            inside = left + 1.25, top + 1.25, width - 2.5, tall - 2.5
            parts.append(svg.rect(*inside, fill=tint(role.fill, 0), stroke=background, line=2.5))
            background = tint(role.fill, 0)
        else:
            parts.append(svg.rect(left, top, width, tall, fill=background))
        parts.append(
            svg.text(
                left + width / 2, top + tall / 2 + 0.36 * font_size, printed[i][j],
                size=font_size, fill=ink_on(background), anchor="middle",
                weight="bold" if _is_chosen(matrix, i, j) else "normal",
            )
        )  # fmt: skip
    parts.append(_outline(matrix, block, role.fill))
    return Block(x, y, block.cell_width, block.shape, "".join(parts))


def _is_chosen(matrix: Matrix, row: int, column: int) -> bool:
    if matrix.chosen_row is None and matrix.chosen_column is None:
        return False
    return matrix.chosen_row in (None, row) and matrix.chosen_column in (None, column)


def _heading(matrix: Matrix, block: Block) -> str:
    role = ROLES[matrix.role]
    rows, columns = block.shape
    caption = f"{rows} × {columns}" if matrix.caption is None else matrix.caption
    centre = block.middle[0]
    title_y = block.y - 10 - (LABEL_HEIGHT if matrix.columns else 0)
    parts = [
        svg.text(centre, title_y, svg.formula(matrix.name, 17), size=17,
                 fill=QUIET if matrix.hidden else role.fill, anchor="middle",
                 family=svg.SERIF, weight="bold", style="italic"),
        svg.text(centre, block.bottom + 17, caption, size=11.5, fill=QUIET, anchor="middle"),
    ]  # fmt: skip
    for i, label in enumerate(matrix.rows):
        chosen = i == matrix.chosen_row
        parts.append(
            svg.text(block.x - 10, block.y + i * (ROW_HEIGHT + GAP) + ROW_HEIGHT / 2 + 4.5,
                     svg.words(label), fill=TEXT if chosen else QUIET, anchor="end",
                     weight="bold" if chosen else "normal")
        )  # fmt: skip
    for j, label in enumerate(matrix.columns):
        left, _, width, _ = block.cell(0, j)
        parts.append(
            svg.text(left + width / 2, block.y - 8, svg.words(label), size=11.5, fill=QUIET,
                     anchor="middle")
        )  # fmt: skip
    return "".join(parts)


def _outline(matrix: Matrix, block: Block, colour: str) -> str:
    if matrix.hidden or (matrix.chosen_row is None and matrix.chosen_column is None):
        return ""
    first_row, last_row = _range(matrix.chosen_row, block.shape[0])
    first_column, last_column = _range(matrix.chosen_column, block.shape[1])
    x, y, _, _ = block.cell(first_row, first_column)
    right, bottom, width, tall = block.cell(last_row, last_column)
    return svg.rect(x - 3, y - 3, right + width - x + 6, bottom + tall - y + 6,
                    stroke=colour, line=2, radius=8)  # fmt: skip


def _range(chosen: int | None, count: int) -> tuple[int, int]:
    return (0, count - 1) if chosen is None else (chosen, chosen)


def operator(x: float, y: float, sign: str, *, quiet: bool = False) -> str:
    """A sign between two matrices, centred at (x, y)."""
    size, down = (34, 11) if sign == "·" else (20, 6)
    return svg.text(x, y + down, sign, size=size, fill=QUIET if quiet else INK, anchor="middle")


def equation(*terms: Matrix | str) -> Figure:
    """Matrices and the signs between them in one line.

    terms : `Matrix` or a sign such as "·", "=", "→".
    """
    margin, sign_width = 18.0, 34.0
    matrices = [term for term in terms if isinstance(term, Matrix)]
    tallest = max(height(np.shape(m.values)[0]) for m in matrices)
    top = margin + TITLE_HEIGHT + (LABEL_HEIGHT if any(m.columns for m in matrices) else 0)
    middle = top + tallest / 2

    x, body = margin, []
    for term in terms:
        if isinstance(term, str):
            body.append(operator(x + sign_width / 2, middle, svg.words(term)))
            x += sign_width
            continue
        x += label_width(term.rows)
        block = draw(term, x, middle - height(np.shape(term.values)[0]) / 2)
        body.append(block.body)
        x = block.right
    title = " ".join(term if isinstance(term, str) else term.name for term in terms)
    words = _in_words(terms)
    bottom = top + tallest + CAPTION_HEIGHT + margin / 2
    return Figure(svg.document(x + margin, bottom, title, words, body), words)


def _in_words(terms: tuple[Matrix | str, ...]) -> str:
    """Every matrix with its name and numbers, one a paragraph."""
    paragraphs = []
    for term in terms:
        if isinstance(term, Matrix):
            cells = term.printed()
            wide = max(len(cell) for row in cells for cell in row)
            names = max(map(len, term.rows), default=0)
            lines = [
                f"  {label:{names}} " + " ".join(f"{cell:>{wide}}" for cell in row)
                for label, row in zip(term.rows or [""] * len(cells), cells)
            ]
            rows, columns = np.shape(term.values)
            paragraphs.append("\n".join([f"{term.name} ({rows} × {columns})", *lines]))
    return "\n".join(paragraphs)
