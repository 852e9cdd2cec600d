"""Pictures: pure functions of data that return an SVG string, and what shows one in a cell."""

from helpers.pictures.curves import Histogram, Line, histograms, normal_density, plot
from helpers.pictures.dots import dots
from helpers.pictures.figure import Figure
from helpers.pictures.matrices import Matrix, equation
from helpers.pictures.panels import Panel, panels
from helpers.pictures.runs import Run, attention_maps, head_curves, training_curves

__all__ = [
    "Figure",
    "Histogram",
    "Line",
    "Matrix",
    "Panel",
    "Run",
    "attention_maps",
    "dots",
    "equation",
    "head_curves",
    "histograms",
    "normal_density",
    "panels",
    "plot",
    "training_curves",
]
