"""The measurements of the lessons: dot products, initial scores, saturation, gradients.

Each is a plain function of its settings and of a seed (an integer, or a `numpy.random.Generator`,
which it advances). The same seed gives the same numbers. A table's columns are arrays, read as
attributes; `print(table)` shows it, `table.text("d_k", "variance")` some of it, `table.rows()`
gives dictionaries. Scores, weights and gradients are pure numbers without a unit; entropies are
shares of ln T, from 0 to 1.

Words used throughout, for scores of shape (rows, keys), one row a query:

* pooled variance: over all scores of all rows;
* within-row variance: over the keys of one row, averaged over rows. Softmax ignores whatever a
  whole row shares, so this is the spread it sees.

Standard errors of anything measured on rows treat rows, not single scores, as independent.

Which file holds what: `_dot_products` (lesson 02's first experiment), `_spreads` (assumptions
broken, divisors), `_initial_scores` (initialisation), `_saturation` (lesson 03).
"""

from helpers._dot_products import (
    DISTRIBUTIONS,
    DotProductTable,
    EntryDistribution,
    LogLogFit,
    NormalityTable,
    SampleSizeTable,
    distance_from_normal,
    dot_product_table,
    draw_dot_products,
    draw_gaussian_dot_products,
    empirical_distance_from_normal,
    excess_kurtosis,
    loglog_slope,
    normal_cdf,
    normality_table,
    sample_size_table,
    variance_standard_error,
)
from helpers._initial_scores import (
    INITS,
    InitialScoreStd,
    InitTable,
    WeightInit,
    init_table,
    init_weight_std,
    initial_score_std,
    measured_initial_score_std,
)
from helpers._saturation import (
    SCALES,
    GradientTable,
    JacobianTable,
    RowGradients,
    SaturationTable,
    gradient_table,
    jacobian_eigenvalue_sweep,
    largest_jacobian_eigenvalue,
    row_gradients,
    saturation_table,
    sqrt_two_log_T,
)
from helpers._spreads import (
    BROKEN_ASSUMPTIONS,
    DivisorMistakeTable,
    DivisorTable,
    DotProductSettings,
    MeasuredSpread,
    Spread,
    SpreadTable,
    divisor_mistake,
    divisor_table,
    draw_scores,
    measured_spread,
    predicted_spread,
    spread_table,
)

__all__ = [
    "BROKEN_ASSUMPTIONS",
    "DISTRIBUTIONS",
    "INITS",
    "SCALES",
    "DivisorMistakeTable",
    "DivisorTable",
    "DotProductSettings",
    "DotProductTable",
    "EntryDistribution",
    "GradientTable",
    "InitTable",
    "InitialScoreStd",
    "JacobianTable",
    "LogLogFit",
    "MeasuredSpread",
    "NormalityTable",
    "RowGradients",
    "SampleSizeTable",
    "SaturationTable",
    "Spread",
    "SpreadTable",
    "WeightInit",
    "distance_from_normal",
    "divisor_mistake",
    "divisor_table",
    "dot_product_table",
    "draw_dot_products",
    "draw_gaussian_dot_products",
    "draw_scores",
    "empirical_distance_from_normal",
    "excess_kurtosis",
    "gradient_table",
    "init_table",
    "init_weight_std",
    "initial_score_std",
    "jacobian_eigenvalue_sweep",
    "largest_jacobian_eigenvalue",
    "loglog_slope",
    "measured_initial_score_std",
    "measured_spread",
    "normal_cdf",
    "normality_table",
    "predicted_spread",
    "row_gradients",
    "sample_size_table",
    "saturation_table",
    "spread_table",
    "sqrt_two_log_T",
    "variance_standard_error",
]
