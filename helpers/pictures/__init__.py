"""Pictures: pure functions of data that return an SVG string, and what shows one in a cell."""

from helpers.pictures.figure import Figure
from helpers.pictures.matrices import Matrix, equation

__all__ = ["Figure", "Matrix", "equation"]
