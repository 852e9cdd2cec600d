"""Pictures: pure functions of data that return an SVG string, and what shows one in a cell."""

from helpers.pictures.curves import Histogram, Line, histograms, normal_density, plot
from helpers.pictures.figure import Figure
from helpers.pictures.matrices import Matrix, equation

__all__ = [
    "Figure",
    "Histogram",
    "Line",
    "Matrix",
    "equation",
    "histograms",
    "normal_density",
    "plot",
]
