"""The measurements: theory within its standard errors, formulas against independent derivations."""

import dataclasses
import itertools
import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import experiments as ex
from helpers._table import Table, column
from helpers.attention import softmax

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

D_KS = (1, 4, 16, 64, 128, 256, 512, 1024)
briefly = settings(derandomize=True, deadline=None, max_examples=60)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def assert_same_table(a, b):
    assert a.rows() == b.rows()


# --- Tables ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Fruit(Table):
    name: np.ndarray = column("name")  # noqa: RUF009
    count: np.ndarray = column("n")  # noqa: RUF009
    weight: np.ndarray = column("kg < 1", ".2f")  # noqa: RUF009
    note: str = ""


FRUIT = Fruit(["fig", "melon"], [12, 3], [-0.001, 1.005], note="ripe")


def test_table_prints_aligned_text():
    assert str(FRUIT) == "name    n  kg < 1\nfig    12    0.00\nmelon   3    1.00"
    assert repr(FRUIT) == str(FRUIT)
    assert FRUIT.text("count", "name") == " n  name\n12  fig\n 3  melon"


def test_table_shows_the_same_cells_as_html():
    shown = FRUIT._repr_html_()
    assert '<th scope="col">kg &lt; 1</th>' in shown
    assert "<tr><td>melon</td><td>3</td><td>1.00</td></tr>" in shown
    assert "ripe" not in shown


def test_table_gives_plain_rows():
    rows = FRUIT.rows()
    assert rows[0] == {"name": "fig", "count": 12, "weight": -0.001}
    assert len(FRUIT) == len(rows) == 2
    json.dumps(rows)  # no NumPy scalars


def test_table_refuses_what_is_no_table():
    with pytest.raises(ValueError, match=r"differ in shape.*count"):
        Fruit(["fig"], [1, 2], [1.0])
    with pytest.raises(ValueError, match="no column 'colour'; choose from: name, count, weight"):
        FRUIT.text("colour")
    with pytest.raises(ValueError, match="at least one"):
        Fruit.from_rows([])
    with pytest.raises(dataclasses.FrozenInstanceError):
        FRUIT.note = "raw"


# --- Entries -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ex.DISTRIBUTIONS)
def test_entries_are_standardised_with_the_stated_kurtosis(name):
    distribution = ex.DISTRIBUTIONS[name]
    x = distribution.draw(np.random.default_rng(1), (1000, 1000))
    n = x.size
    assert abs(x.mean()) < 4 / math.sqrt(n)
    spread = math.sqrt((distribution.kurtosis - 1) / n)
    assert abs(x.var() - 1) <= 4 * spread + 4 / n
    if name != "student_t5":  # its eighth moment is infinite: no sample shows its fourth
        assert (x**4).mean() == pytest.approx(distribution.kurtosis, rel=0.02)


def test_student_t_has_five_degrees_of_freedom():
    # Its density is proportional to (1 + x²/5)^−3, and its variance is 5/3.
    x = np.linspace(0, 2_000, 2_000_001)
    density = (1 + x**2 / 5) ** -3.0
    density /= density.sum()
    t5 = ex.DISTRIBUTIONS["student_t5"]
    assert t5.kurtosis == pytest.approx(density @ x**4 / (density @ x**2) ** 2, rel=0.005)
    drawn = np.abs(t5.draw(np.random.default_rng(1), (1_000_000,)))
    assert drawn.mean() == pytest.approx(density @ x / math.sqrt(density @ x**2), abs=0.003)


def test_more_than_one_distribution_has_heavy_tails_and_one_has_light_ones():
    kurtosis = {name: distribution.kurtosis for name, distribution in ex.DISTRIBUTIONS.items()}
    assert sum(value > 3 for value in kurtosis.values()) >= 2
    assert min(kurtosis.values()) < 3 == kurtosis["normal"]


# --- The first table ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ex.DISTRIBUTIONS)
def test_theory_lies_within_its_standard_errors(name):
    table = ex.dot_product_table(D_KS[:5], pairs=10_000, seed=3, distribution=name)
    for z in (table.mean_z, table.variance_z, table.std_z):
        assert np.nanmax(np.abs(z)) < 3.5
    assert table.sqrt_d_k.tolist() == [math.sqrt(d) for d in D_KS[:5]]


def test_z_scores_are_standard_normal_over_seeds():
    tables = [ex.dot_product_table((2, 8), pairs=400, seed=seed) for seed in range(300)]
    for name in ("mean_z", "variance_z", "std_z"):
        z = np.array([getattr(table, name) for table in tables])
        assert np.abs(z.mean(axis=0)).max() < 0.25
        assert z.std(axis=0) == pytest.approx(1, abs=0.15)


def test_the_table_says_what_its_sample_says():
    table = ex.dot_product_table([7], pairs=50, seed=5, distribution="uniform")
    scores = ex.draw_dot_products(7, 50, 5, "uniform")
    assert table.mean[0] == scores.mean()
    assert table.variance[0] == pytest.approx(np.var(scores, ddof=1), rel=1e-12)
    assert table.std[0] == pytest.approx(np.std(scores, ddof=1), rel=1e-12)
    assert table.variance_error[0] == ex.variance_standard_error(7, 50, 9 / 5)
    assert table.std_error[0] == pytest.approx(table.variance_error[0] / (2 * math.sqrt(7)))
    assert table.mean_error[0] == pytest.approx(math.sqrt(7 / 50))


def test_standard_error_of_the_variance_is_the_design_formula():
    for d in D_KS:
        expected = d * math.sqrt((2 + 6 / d) / 10_000)
        assert ex.variance_standard_error(d, 10_000) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["normal", "uniform", "laplace", "rademacher"])
@pytest.mark.parametrize("d_k", [2, 12])
def test_standard_error_of_the_variance_is_its_scatter(name, d_k):
    pairs, repeats = 200, 2_000
    scores = ex.draw_dot_products(d_k, pairs * repeats, 11, name).reshape(repeats, pairs)
    scatter = scores.var(axis=1, ddof=1).std()
    kurtosis = ex.DISTRIBUTIONS[name].kurtosis
    assert ex.variance_standard_error(d_k, pairs, kurtosis) == pytest.approx(scatter, rel=0.1)


def test_entries_of_plus_and_minus_one_leave_no_error_at_d_k_1():
    row = ex.dot_product_table([1], distribution="rademacher").rows()[0]
    assert row["variance_error"] == 0
    assert math.isnan(row["variance_z"])
    assert math.isnan(row["std_z"])


def test_log_log_slopes_are_one_for_the_variance_and_a_half_for_the_deviation():
    table = ex.dot_product_table(D_KS)
    fit = ex.loglog_slope(table.d_k, table.variance)
    assert fit.slope == pytest.approx(1, abs=3 * fit.standard_error)
    assert fit.standard_error < 0.01
    half = ex.loglog_slope(table.d_k, table.std)
    assert half.slope == pytest.approx(fit.slope / 2)


def test_dot_products_in_chunks_are_dot_products():
    # 1024 entries and 1,100 pairs: more than one chunk, the last one short.
    scores = ex.draw_dot_products(1024, 1_100, 2, "rademacher")
    assert scores.shape == (1_100,)
    assert np.all(scores == np.rint(scores))
    assert len(np.unique(scores)) > 50
    assert np.abs(scores).max() < 6 * 32


def test_the_short_cut_has_the_law_of_the_dot_product():
    for d_k in (1, 2, 16):
        drawn = np.sort(ex.draw_dot_products(d_k, 40_000, 1))
        short = np.sort(ex.draw_gaussian_dot_products(d_k, 40_000, 2))
        share = np.searchsorted(short, drawn) / short.size
        distance = np.abs(share - np.arange(drawn.size) / drawn.size).max()
        assert distance < 1.63 * math.sqrt(2 / 40_000)  # Kolmogorov-Smirnov, 1 %


@pytest.mark.parametrize("slope", [-2.0, 0.5, 1.0])
def test_loglog_slope_of_a_power_law_is_exact(slope):
    x = np.array([1, 3, 10, 50.0])
    fit = ex.loglog_slope(x, 7 * x**slope)
    assert fit.slope == pytest.approx(slope)
    assert fit.intercept == pytest.approx(math.log(7))
    assert fit.standard_error == pytest.approx(0, abs=1e-12)


def test_loglog_slope_scatters_as_its_propagated_error_says():
    d_ks = (1, 4, 16, 64, 128, 256)
    fits = []
    for seed in range(60):
        table = ex.dot_product_table(d_ks, pairs=500, seed=seed)
        fits.append(ex.loglog_slope(table.d_k, table.variance, table.variance_error))
    scatter = np.std([fit.slope for fit in fits], ddof=1)
    assert scatter == pytest.approx(np.mean([fit.standard_error for fit in fits]), rel=0.35)


def test_loglog_slope_agrees_with_polyfit():
    x = np.array(D_KS, dtype=float)
    y = x * np.exp(0.1 * normal(len(x)))
    (slope, intercept), covariance = np.polyfit(np.log(x), np.log(y), 1, cov=True)
    fit = ex.loglog_slope(x, y)
    assert fit.slope == pytest.approx(slope)
    assert fit.intercept == pytest.approx(intercept)
    assert fit.standard_error == pytest.approx(math.sqrt(covariance[0, 0]))


FIRST_TABLE = """
import json, sys, time
from helpers.experiments import dot_product_table
dot_product_table([2])
start = time.process_time()
dot_product_table((1, 4, 16, 64, 128, 256, 512, 1024), pairs=10_000)
seconds = time.process_time() - start
if sys.platform == "linux":
    # Not ru_maxrss, which also counts the parent before exec.
    status = open("/proc/self/status").read()
    peak = 1024 * int(status.split("VmHWM:")[1].split()[0])
else:
    import psutil
    peak = psutil.Process().memory_info().rss
known = {name.split(".")[0] for name in sys.modules}
ours = sorted(name for name in sys.modules if name.startswith("helpers."))
print(json.dumps([seconds, peak / 1e6, sorted(known & {"torch", "scipy", "matplotlib"}), ours]))
"""


def test_the_first_table_takes_under_a_second_and_200_mb_and_imports_only_numpy():
    done = subprocess.run(
        [sys.executable, "-c", FIRST_TABLE], capture_output=True, text=True, check=True
    )
    seconds, megabytes, foreign, ours = json.loads(done.stdout)
    assert seconds < 1  # of one core: other work on the machine does not count
    assert megabytes < 200
    assert foreign == []
    public = {name for name in ours if not name.split(".")[1].startswith("_")}
    assert public == {"helpers.attention", "helpers.experiments"}


# --- Sample size -------------------------------------------------------------------------------


@pytest.mark.parametrize("d_k", [2, 64])
def test_measured_variance_is_unbiased_and_scatters_as_predicted(d_k):
    table = ex.sample_size_table(d_k, (4, 16, 100), repeats=20_000, seed=1)
    error = table.predicted_scatter / math.sqrt(20_000)
    assert np.abs((table.mean - d_k) / error).max() < 4
    assert table.scatter == pytest.approx(table.predicted_scatter, rel=0.06)
    quantiles = np.array([table.q05, table.q25, table.median, table.q75, table.q95])
    assert np.all(np.diff(quantiles, axis=0) > 0)
    assert np.all(np.diff(table.q95 - table.q05) < 0)


def test_sample_sizes_agree_with_vectors_that_are_really_drawn():
    scores = ex.draw_dot_products(3, 8 * 20_000, 4).reshape(20_000, 8)
    expected = np.quantile(scores.var(axis=1, ddof=1), (0.05, 0.25, 0.5, 0.75, 0.95))
    row = ex.sample_size_table(3, [8], repeats=20_000, seed=9).rows()[0]
    got = [row[name] for name in ("q05", "q25", "median", "q75", "q95")]
    assert got == pytest.approx(expected.tolist(), rel=0.05)


def test_four_pairs_with_two_entries_say_next_to_nothing():
    row = ex.sample_size_table(2, [4], repeats=5_000).rows()[0]
    assert row["q25"] < 1.6 < row["q75"]  # theory says 2
    assert row["q05"] < 0.25 < 4 < row["q95"]


# --- Normality ---------------------------------------------------------------------------------


def test_normal_cdf_is_the_error_function():
    x = np.linspace(-9.5, 9.5, 1001)
    expected = [0.5 * math.erfc(-value / math.sqrt(2)) for value in x]
    assert ex.normal_cdf(x) == pytest.approx(expected, abs=1e-7)


def test_distance_at_d_k_1_is_that_of_the_product_of_two_normals():
    # The density is K₀(|x|)/π with K₀(x) = ∫ exp(−x cosh t) dt, t from 0 to ∞; so
    # P(q·k > x) = ∫ exp(−x cosh t)/cosh t dt / π.
    t = np.linspace(0, 12, 4_001)
    x = np.linspace(0.05, 3, 600)
    tail = np.trapezoid(np.exp(-x[:, None] * np.cosh(t)) / np.cosh(t), t) / math.pi
    expected = np.abs(1 - tail - ex.normal_cdf(x)).max()
    assert ex.distance_from_normal(1) == pytest.approx(expected, abs=1e-5)


def test_distance_at_d_k_2_is_that_of_a_laplace_law():
    x = np.linspace(0, 4, 40_001)
    expected = np.abs(1 - np.exp(-math.sqrt(2) * x) / 2 - ex.normal_cdf(x)).max()
    assert ex.distance_from_normal(2) == pytest.approx(expected, abs=1e-5)


def test_distance_falls_as_one_over_d_k():
    distances = np.array([ex.distance_from_normal(d) for d in (1, 2, 4, 16, 64, 256, 1024)])
    assert np.all(np.diff(distances) < 0)
    assert distances[-2] / distances[-1] == pytest.approx(4, rel=0.05)


def test_empirical_distance_counts_both_sides_of_a_step():
    assert ex.empirical_distance_from_normal(np.array([0.0])) == pytest.approx(0.5)
    assert ex.empirical_distance_from_normal(np.array([5.0, 6.0])) == pytest.approx(1, abs=1e-6)
    assert ex.empirical_distance_from_normal(np.array([-5.0, -6.0])) == pytest.approx(1, abs=1e-6)
    assert ex.empirical_distance_from_normal(normal(100_000)) < 1.36 / math.sqrt(100_000)


def test_excess_kurtosis_of_known_samples():
    assert ex.excess_kurtosis(np.array([1.0, -1.0])) == -2
    assert ex.excess_kurtosis(np.array([0.0, 0, 0, 4])) == pytest.approx(7 / 3 - 3)
    x = normal(500)
    assert ex.excess_kurtosis(7 + 3 * x) == pytest.approx(ex.excess_kurtosis(x))


def test_normality_table_finds_six_over_d_k_and_the_exact_distance():
    table = ex.normality_table(pairs=200_000, seed=1)
    assert table.predicted.tolist() == [6 / d for d in table.d_k]
    assert np.abs(table.z).max() < 3.5
    assert np.all(np.abs(table.distance - table.exact) < table.noise)
    # Small d_k differ visibly from a normal curve, a large one does not.
    assert table.distance[0] > 20 * table.noise[0]
    assert table.distance[-1] < table.noise[-1]


def test_kurtosis_z_scores_have_unit_spread_over_seeds():
    z = np.array([ex.normality_table((4, 64), 20_000, seed).z for seed in range(60)])
    assert z.std(axis=0) == pytest.approx(1, abs=0.3)
    assert np.abs(z.mean(axis=0)).max() < 0.4


# --- Broken assumptions ------------------------------------------------------------------------


def enumerate_spread(case, values, probabilities):
    """Exact mean, pooled and within-row variance, by adding up every possible q and k."""
    slots = list(itertools.product(range(len(values)), repeat=case.d_k + 1))
    drawn = np.asarray(values)[np.array(slots)]
    chance = np.asarray(probabilities)[np.array(slots)].prod(axis=1)
    r, rho, f = case.entry_correlation, case.correlation, case.fraction_correlated
    u = math.sqrt(r) * drawn[:, :1] + math.sqrt(1 - r) * drawn[:, 1:]
    q = case.mean + case.std * u
    independent = q @ (case.mean + case.std * u).T  # [query, noise of the key]
    keys = case.mean + case.std * (rho * u[:, None] + math.sqrt(1 - rho**2) * u[None])
    resembling = np.einsum("id,ijd->ij", q, keys)
    both = np.concatenate([independent, resembling], axis=1)
    key_chance = np.concatenate([(1 - f) * chance, f * chance])
    row_mean = both @ key_chance
    row_variance = ((both - row_mean[:, None]) ** 2) @ key_chance
    mean = chance @ row_mean
    return mean, chance @ (both - mean) ** 2 @ key_chance, chance @ row_variance


cases = st.builds(
    ex.DotProductSettings,
    d_k=st.integers(1, 3),
    mean=st.floats(-2, 2),
    std=st.floats(0, 2),
    correlation=st.floats(-1, 1),
    fraction_correlated=st.floats(0, 1),
    entry_correlation=st.floats(0, 1),
)


@briefly
@given(cases, st.sampled_from([1.0, 1.5, 6.0]))
def test_predicted_spread_is_exact(case, kurtosis):
    # Entries −√κ, 0, √κ with probabilities 1/(2κ), 1 − 1/κ, 1/(2κ) have variance 1, kurtosis κ.
    ends = 1 / (2 * kurtosis)
    expected = enumerate_spread(
        case, [-math.sqrt(kurtosis), 0, math.sqrt(kurtosis)], [ends, 1 - 2 * ends, ends]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ex.DISTRIBUTIONS, "three", ex.EntryDistribution(kurtosis, None))
        got = ex.predicted_spread(dataclasses.replace(case, distribution="three"))
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_predictions_of_the_design():
    spread = ex.predicted_spread
    make = ex.DotProductSettings
    assert spread(make(64)) == (0, 64, 64)
    assert spread(make(64, std=3)) == (0, 81 * 64, 81 * 64)  # σ⁴, not σ²
    shifted = spread(make(10, mean=2, std=3))
    assert shifted.variance == pytest.approx(81 * 10 + 2 * 9 * 4 * 10)
    assert shifted.within_row_variance == pytest.approx(81 * 10 + 9 * 4 * 10)
    alike = spread(make(64, correlation=0.5))
    assert alike.mean == 32
    assert alike.within_row_variance == pytest.approx(0.75 * 64)
    assert alike.variance == pytest.approx(1.25 * 64)
    assert spread(make(64, distribution="student_t5")).variance == 64  # only the 2nd moment counts


def test_only_correlations_that_differ_between_keys_grow_as_d_k():
    d_ks = [256, 1024, 4096]

    def within(**options):
        case = ex.DotProductSettings(correlation=0.5, **options)
        return [ex.predicted_spread(dataclasses.replace(case, d_k=d)).within_row_std for d in d_ks]

    assert ex.loglog_slope(d_ks, within(fraction_correlated=1.0)).slope == pytest.approx(0.5)
    assert ex.loglog_slope(d_ks, within(fraction_correlated=0.1)).slope > 0.95


HARD_CASES = {
    "plain": ex.DotProductSettings(16),
    "all at once": ex.DotProductSettings(12, "laplace", 0.5, 1.5, -0.6, 0.3, 0.2),
    "uniform, every key": ex.DotProductSettings(8, "uniform", 1.0, 0.7, 0.8),
    "signs, some keys": ex.DotProductSettings(8, "rademacher", 0.0, 1.0, 0.7, 0.5),
    "entries alike": ex.DotProductSettings(8, "normal", -1.0, 1.0, 0.0, 1.0, 0.5),
}


def test_drawn_scores_have_the_predicted_spread():
    for table in (
        ex.spread_table(HARD_CASES, rows=6_000, keys=16, seed=1),
        ex.spread_table(seed=2),
    ):
        for z in (table.mean_z, table.variance_z, table.within_row_z):
            assert np.abs(z).max() < 3.5


def test_measured_spread_of_a_known_array():
    scores = np.array([[0.0, 2.0], [10.0, 14.0]])
    spread, error = ex.measured_spread(scores)
    assert spread.mean == 6.5
    assert spread.variance == pytest.approx(np.var(scores))
    assert spread.within_row_variance == pytest.approx((2 + 8) / 2)
    assert spread.std == pytest.approx(np.std(scores))
    assert spread.within_row_std == pytest.approx(math.sqrt(5))
    assert error.mean == pytest.approx(11 / 2)  # rows 1 and 12: s/√2
    assert error.within_row_variance == pytest.approx(3)


def test_standard_errors_count_rows_not_scores():
    # What a row shares makes its scores dependent: over seeds, z must still have unit spread.
    cases = {"μ": ex.DotProductSettings(4, mean=2.0)}
    tables = [ex.spread_table(cases, rows=200, keys=8, seed=seed) for seed in range(200)]
    for name in ("mean_z", "variance_z", "within_row_z"):
        z = np.array([getattr(table, name)[0] for table in tables])
        assert z.std() == pytest.approx(1, abs=0.2)


def test_draw_scores_tells_which_keys_resemble_their_query():
    case = ex.DotProductSettings(256, correlation=0.8, fraction_correlated=0.25)
    scores, correlated = ex.draw_scores(case, 100, 40, 1, return_correlated=True)
    assert scores.shape == correlated.shape == (100, 40)
    assert correlated.mean() == pytest.approx(0.25, abs=0.03)
    assert scores[correlated].mean() == pytest.approx(0.8 * 256, rel=0.05)
    assert abs(scores[~correlated].mean()) < 3
    assert not ex.draw_scores(ex.DotProductSettings(4), 3, 5, 0, True)[1].any()
    np.testing.assert_array_equal(scores, ex.draw_scores(case, 100, 40, 1))


def test_keys_of_one_row_share_their_query_and_no_more():
    scores = ex.draw_scores(ex.DotProductSettings(2), 20_000, 2, 3)
    assert abs(np.corrcoef(scores.T)[0, 1]) < 0.03
    # Both are scaled by ‖q‖: Cov(s₁², s₂²) = Var ‖q‖² = 2d, Var s² = 3(d² + 2d) − d² = 2d² + 6d.
    assert np.corrcoef(scores.T**2)[0, 1] == pytest.approx(4 / 20, abs=0.05)


# --- Divisors ----------------------------------------------------------------------------------


def test_divisors_leave_the_predicted_spread():
    table = ex.divisor_table((4, 64, 1024), T=32, seed=1)
    power = {"1": 0.5, "√d_k": 0.0, "d_k": -0.5}
    for row in table.rows():
        expected = row["d_k"] ** power[row["divisor"]]
        assert abs(row["score_std"] - expected) < 4 * row["score_std_error"]
        assert row["score_std_error"] < 0.1 * expected


def test_divisors_side_by_side():
    rows = {(row["d_k"], row["divisor"]): row for row in ex.divisor_table().rows()}
    assert rows[1024, "1"]["largest_weight"] > 0.9
    assert rows[1024, "1"]["entropy"] < 0.05
    assert rows[1024, "d_k"]["entropy"] > 0.999
    assert rows[1024, "d_k"]["largest_weight"] < 0.02
    healthy = [rows[d, "√d_k"]["entropy"] for d in (4, 16, 64, 256, 1024)]
    assert max(healthy) - min(healthy) < 0.03
    for d in (4, 16, 64, 256, 1024):
        entropies = [rows[d, name]["entropy"] for name in ("1", "√d_k", "d_k")]
        assert entropies == sorted(entropies)


def test_root_d_model_makes_scores_root_heads_too_small():
    right, wrong = ex.divisor_mistake(768, 12).rows()
    assert (right["value"], wrong["value"]) == (8, math.sqrt(768))
    assert wrong["predicted_std"] == pytest.approx(1 / math.sqrt(12))
    for row in (right, wrong):
        assert abs(row["score_std"] - row["predicted_std"]) < 4 * row["score_std_error"]
    assert right["score_std"] / wrong["score_std"] == pytest.approx(math.sqrt(12))
    assert right["entropy"] < 0.9 < 0.98 < wrong["entropy"]


# --- Initialisation ----------------------------------------------------------------------------


def test_initial_score_std_is_the_formula():
    assert ex.initial_score_std(64, 768, 0.02) == pytest.approx(8 * 768 * 0.0004)
    assert ex.initial_score_std(128, 128, 1 / math.sqrt(128)) == pytest.approx(math.sqrt(128))
    assert ex.initial_score_std(64, 512, 0) == 0


def torch_weights(init, d):
    if init == "nn.Linear default":
        return torch.nn.Linear(d, d).weight
    if init == "nn.MultiheadAttention":
        return torch.nn.MultiheadAttention(d, 4).in_proj_weight
    return torch.nn.init.xavier_uniform_(torch.empty(d, d))


@pytest.mark.parametrize("init", ["nn.Linear default", "Xavier uniform", "nn.MultiheadAttention"])
def test_inits_have_torchs_spread(init):
    torch.manual_seed(0)
    weights = torch_weights(init, 256).detach()
    std = ex.init_weight_std(init, 256)
    assert weights.std().item() == pytest.approx(std, rel=0.01)
    assert weights.abs().max().item() == pytest.approx(math.sqrt(3) * std, rel=0.01)


def test_table_of_inits_agrees_with_measurement():
    table = ex.init_table((64, 256), heads=40, seed=1)
    assert np.abs(table.z).max() < 3.5
    assert np.all(table.error < 0.02 * table.predicted)
    scaled = {(row["init"], row["d_model"]): row["scaled"] for row in table.rows()}
    assert scaled["nn.Linear default", 64] == pytest.approx(1 / 3)
    assert scaled["nn.MultiheadAttention", 256] == pytest.approx(1 / 2)
    assert scaled["Xavier uniform", 256] == pytest.approx(1)
    assert scaled["unit", 64] == pytest.approx(1)
    # A fixed σ_W grows with the width, the others do not depend on it.
    assert scaled["N(0, 0.02)", 256] == pytest.approx(4 * scaled["N(0, 0.02)", 64])
    assert set(table.init) == set(ex.INITS)


@pytest.mark.parametrize("similarity", [0.5, 0.9])
def test_inputs_that_resemble_each_other_leave_less_within_a_row(similarity):
    got = ex.measured_initial_score_std(32, 256, "unit", 32, 1, similarity, heads=400)
    assert got.input_cosine == pytest.approx(similarity, abs=0.06)
    assert abs(got.pooled - got.predicted) < 4 * got.pooled_error
    assert got.predicted == pytest.approx(math.sqrt(32))
    assert abs(got.within_row - got.predicted_within_row) < 4 * got.within_row_error
    assert got.predicted_within_row == pytest.approx(math.sqrt(32 * (1 - got.input_cosine)))
    assert got.within_row_error < 0.03 * got.within_row


def test_few_inputs_do_not_bias_the_spread_within_a_row():
    got = ex.measured_initial_score_std(16, 64, "unit", 3, 1, 0.3, heads=4_000)
    assert got.within_row_error < 0.015 * got.within_row
    assert abs(got.within_row - got.predicted_within_row) < 4 * got.within_row_error


def test_resembling_inputs_of_the_design():
    got = ex.measured_initial_score_std(128, 1024, "unit", input_similarity=0.9)
    assert got.predicted == pytest.approx(11.31, abs=0.01)
    assert got.within_row == pytest.approx(11.31 * math.sqrt(0.1), rel=0.06)


def test_heads_in_several_chunks_are_independent_draws():
    got = ex.measured_initial_score_std(64, 4096, "nn.Linear default", 8, 1, heads=20)
    assert got.pooled_error > 0
    assert abs(got.pooled - 8 / 3) < 4 * got.pooled_error


# --- Saturation --------------------------------------------------------------------------------


def test_sqrt_two_log_T():
    assert ex.sqrt_two_log_T(1) == 0
    assert ex.sqrt_two_log_T(64) == pytest.approx(2.884, abs=1e-3)
    # The largest of T normals lies a little below it.
    largest = normal(200, 4096).max(axis=1).mean() / ex.sqrt_two_log_T(4096)
    assert 0.85 < largest < 1


def test_saturation_grows_with_the_gain():
    table = ex.saturation_table((0, 0.5, 1, 2, 4, 8, 16), (8, 64), draws=300)
    for T in (8, 64):
        part = table.T == T
        assert np.all(np.diff(table.entropy[part]) < 0)
        assert np.all(np.diff(table.largest_weight[part]) > 0)
        assert table.entropy[part][0] == pytest.approx(1)
        assert table.largest_weight[part][0] == pytest.approx(1 / T)
        assert table.relative_gain[part] == pytest.approx(
            table.gain[part] / math.sqrt(2 * math.log(T))
        )


def test_saturation_agrees_with_unscaled_attention():
    # Unscaled scores of Gaussian q and k have deviation √d_k; ‖q‖ varies little at d_k = 1024.
    saturation = ex.saturation_table([32.0], [64], draws=1_000, seed=1).rows()[0]
    attention = ex.divisor_table([1024], T=64, seed=2, draws=1_000).rows()[0]
    for name in ("entropy", "largest_weight"):
        error = math.hypot(saturation[f"{name}_error"], attention[f"{name}_error"])
        assert abs(saturation[name] - attention[name]) < 4 * error


def test_entropy_approaches_the_limit_of_many_keys():
    table = ex.saturation_table([1.0, 2.0], (16, 256, 4096), draws=100)
    for gain in (1.0, 2.0):
        part = table.gain == gain
        gap = np.abs(table.entropy - table.limit_entropy)[part]
        assert np.all(np.diff(gap) < 0)
        assert gap[-1] < 0.02


# --- Gradients ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 0.3, -0.5])
def test_row_gradients_are_autograds(scale):
    n, T, d, d_v = 5, 7, 4, 3
    q, k, v = normal(n, d), normal(n, T, d, seed=1), normal(n, T, d_v, seed=2)
    grad_output = normal(n, d_v, seed=3)
    got = ex.row_gradients(q, k, v, grad_output, scale)

    query = torch.tensor(q, requires_grad=True)
    scores = torch.einsum("nd,ntd->nt", query, torch.tensor(k))
    scaled = scores * scale
    scores.retain_grad()
    scaled.retain_grad()
    weights = torch.softmax(scaled, dim=-1)
    output = torch.einsum("nt,ntd->nd", weights, torch.tensor(v))
    output.backward(torch.tensor(grad_output))
    for ours, theirs in zip(got, (weights, scaled.grad, scores.grad, query.grad), strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.fixture(scope="module")
def gradients():
    return ex.gradient_table()


def gradient_rows(table):
    return {(row["scale"], row["gradient"]): row for row in table.rows()}


def test_gradient_table_reproduces_the_prototype(gradients):
    rows = gradient_rows(gradients)
    # Scale, mean and median of ‖∂L/∂scaled‖, of ‖∂L/∂q‖, largest weight, entropy: one run of 400.
    prototype = {
        "1": (1.64, 0.56, 18.7, 6.28, 0.85, 0.09),
        "1/sqrt(d)": (2.02, 1.88, 2.00, 1.88, 0.11, 0.88),
        "1/d": (1.40, 1.38, 0.12, 0.12, 0.02, 1.00),
    }
    for scale, (mean, median, q_mean, q_median, largest, entropy) in prototype.items():
        scaled, q = rows[scale, "scaled"], rows[scale, "q"]
        for row, values in ((scaled, (mean, median)), (q, (q_mean, q_median))):
            for name, value in zip(("mean", "median"), values, strict=True):
                # One run differs from five: allow three times a seed's scatter, and its rounding.
                allowed = 3 * row[f"{name}_spread"] + 0.02 * value
                assert abs(row[name] - value) < allowed, (scale, row["gradient"], name)
        assert scaled["largest_weight"] == pytest.approx(largest, abs=0.02)
        assert scaled["entropy"] == pytest.approx(entropy, abs=0.01)


def test_the_gradient_vanishes_is_half_true(gradients):
    rows = gradient_rows(gradients)
    # At softmax's input many rows have almost no gradient without scale, none with it.
    assert 0.3 < rows["1", "scaled"]["almost_none"] < 0.5
    assert rows["1/sqrt(d)", "scaled"]["almost_none"] == 0
    # What reaches q is larger and heavy-tailed, not zero.
    assert rows["1", "q"]["median"] > 2 * rows["1/sqrt(d)", "q"]["median"]
    assert rows["1", "q"]["mean"] > 2.5 * rows["1", "q"]["median"]
    assert rows["1", "q"]["tenfold"] > 0.2
    assert rows["1", "q"]["q05"] < 0.01


def test_gradient_table_summarises_its_samples(gradients):
    rows = gradient_rows(gradients)
    usual = {name: np.median(gradients.samples["1/sqrt(d)"][name]) for name in ("scaled", "q")}
    for scale in ("1", "1/sqrt(d)", "1/d"):
        for name in ("scaled", "q"):
            norms, row = gradients.samples[scale][name], rows[scale, name]
            assert norms.shape == (5, 400)
            assert row["mean"] == pytest.approx(norms.mean())
            assert row["mean_spread"] == pytest.approx(np.std(norms.mean(axis=1), ddof=1))
            assert row["median_spread"] == pytest.approx(np.std(np.median(norms, axis=1), ddof=1))
            assert row["q05"] == pytest.approx(np.quantile(norms, 0.05))
            assert row["q95"] == pytest.approx(np.quantile(norms, 0.95))
            assert row["almost_none"] == pytest.approx(np.mean(norms < usual[name] / 10))
            assert row["tenfold"] == pytest.approx(np.mean(norms > usual[name] * 10))


def test_the_raw_scores_gradient_is_the_scale_times_the_other(gradients):
    for scale, value in (("1", 1), ("1/sqrt(d)", 128**-0.5), ("1/d", 1 / 128)):
        part = gradients.samples[scale]
        np.testing.assert_allclose(part["scores"], value * part["scaled"], rtol=1e-12)


def test_a_nearly_uniform_row_has_the_gradient_theory_gives():
    # p = 1/T: ‖∂L/∂z‖ = √(Σ(g − ḡ)²)/T for g of deviation ‖∂L/∂output‖ ≈ √d.
    table = ex.gradient_table(["1/d"], T=64, d=512, draws=200, seeds=[1])
    expected = math.sqrt(512 * 63) / 64
    assert table.mean[0] == pytest.approx(expected, rel=0.02)


def test_scales_are_measured_on_the_same_draws_alone_or_together():
    options = {"T": 8, "d": 16, "draws": 300, "seeds": (3, 4)}
    alone = gradient_rows(ex.gradient_table(["1"], **options))
    together = gradient_rows(ex.gradient_table(("1/d", "1"), **options))
    for name in ("scaled", "scores", "q"):
        assert alone["1", name] == together["1", name]


def test_one_seed_has_no_spread_over_seeds():
    table = ex.gradient_table(["1"], T=4, d=4, draws=10, seeds=[0])
    assert np.isnan(table.mean_spread).all()
    assert np.isnan(table.median_spread).all()
    assert np.isfinite(table.mean).all()


# --- The Jacobian ------------------------------------------------------------------------------


def test_largest_eigenvalue_at_known_weights():
    half = ex.largest_jacobian_eigenvalue
    assert half([0.5, 0.5, 0, 0]) == pytest.approx(0.5)
    assert half([0.25] * 4) == pytest.approx(0.25)
    assert half([1.0, 0, 0]) == pytest.approx(0, abs=1e-12)
    assert half([0.9, 0.1]) == pytest.approx(2 * 0.9 * 0.1)
    assert half(np.full((2, 3, 5), 0.2)).shape == (2, 3)


@briefly
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8), st.floats(0, 20))
def test_largest_eigenvalue_is_at_most_a_half(scores, gain):
    p = softmax(gain * np.array(scores))
    largest = float(ex.largest_jacobian_eigenvalue(p))
    assert -1e-12 <= largest <= 0.5 + 1e-12
    assert largest <= 2 * np.max(p * (1 - p)) + 1e-12  # Gershgorin
    assert largest >= np.max(p * (1 - p)) - 1e-12  # its diagonal: a Rayleigh quotient


def test_largest_eigenvalue_is_the_steepest_direction_of_softmax():
    z = normal(5)
    jacobian = np.array(
        [(softmax(z + step) - softmax(z - step)) / 2e-6 for step in 1e-6 * np.eye(5)]
    )
    expected = np.linalg.norm(jacobian, 2)
    assert ex.largest_jacobian_eigenvalue(softmax(z)) == pytest.approx(expected, abs=1e-7)


def test_eigenvalues_along_a_gain_rise_and_fall_but_never_pass_a_half():
    table = ex.jacobian_eigenvalue_sweep()
    assert table.gain[0] == 0
    assert table.mean[0] == pytest.approx(1 / 8)
    assert table.trace[0] == pytest.approx(7 / 8)
    peak = int(np.argmax(table.mean))
    assert 0 < peak < len(table) - 1
    assert np.all(table.largest <= 0.5)
    assert table.largest.max() > 0.499
    assert table.mean[-1] < 0.1
    assert np.all(np.diff(table.largest_weight) > 0)
    assert np.all(table.mean <= table.trace + 1e-12)


# --- All of them -------------------------------------------------------------------------------

MEASUREMENTS = {
    "dot_product_table": lambda seed: ex.dot_product_table([2, 3], 50, seed),
    "sample_size_table": lambda seed: ex.sample_size_table(2, [4, 8], 20, seed),
    "normality_table": lambda seed: ex.normality_table([1, 2], 50, seed),
    "spread_table": lambda seed: ex.spread_table(rows=4, keys=3, seed=seed),
    "divisor_table": lambda seed: ex.divisor_table([2, 3], 4, seed, 5),
    "divisor_mistake": lambda seed: ex.divisor_mistake(8, 2, 4, 5, seed),
    "init_table": lambda seed: ex.init_table([4], 2, T=3, heads=4, seed=seed),
    "saturation_table": lambda seed: ex.saturation_table([1], [4], 5, seed),
    "gradient_table": lambda seed: ex.gradient_table(T=4, d=3, draws=5, seeds=[seed, 99]),
    "jacobian_eigenvalue_sweep": lambda seed: ex.jacobian_eigenvalue_sweep([1], 4, 5, seed),
}


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_measurements_follow_their_seed(name):
    measure = MEASUREMENTS[name]
    assert_same_table(measure(1), measure(1))
    assert measure(1).rows() != measure(2).rows()
    rng = np.random.default_rng(1)
    first = measure(rng)
    assert_same_table(first, measure(1))  # an integer seeds a generator of its own
    assert first.rows() != measure(rng).rows()  # a generator is advanced


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_measurements_leave_numpys_global_generator_alone(name):
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    MEASUREMENTS[name](1)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_measurements_print_every_row_and_column(name):
    table = MEASUREMENTS[name](1)
    lines = str(table).splitlines()
    assert len(lines) == len(table) + 1
    assert table._repr_html_().count("<tr>") == len(table) + 1
    assert "nan" not in str(table)
    assert all(
        isinstance(value, str | int | float) for row in table.rows() for value in row.values()
    )


MISTAKES = [
    (lambda: ex.dot_product_table([0]), "d_ks is 0, below the limit 1; pass an integer"),
    (lambda: ex.dot_product_table([]), "d_ks is empty; pass at least 1"),
    (lambda: ex.dot_product_table([4], pairs=1), "pairs is 1, below the limit 2"),
    (lambda: ex.dot_product_table([4], distribution="cauchy"), "'cauchy'; choose one of: 'normal'"),
    (lambda: ex.draw_gaussian_dot_products(0, 3), "d_k is 0, below the limit 1"),
    (lambda: ex.sample_size_table(4, [1]), "pairs is 1, below the limit 2"),
    (lambda: ex.loglog_slope([1, 2], [1, 2]), r"shape \(2,\).* at least 3"),
    (lambda: ex.loglog_slope([1, 2, 3], [1, 0, 2]), "smallest y 0; a logarithm needs"),
    (lambda: ex.loglog_slope([2, 2, 2], [1, 3, 2]), "every x is 2; a slope needs at least 2"),
    (lambda: ex.excess_kurtosis(np.ones(3)), "all 3 values are equal"),
    (lambda: ex.DotProductSettings(correlation=1.5), "correlation is 1.5; .* from -1 to 1"),
    (lambda: ex.DotProductSettings(std=-1), "std is -1; .*number of at least 0"),
    (lambda: ex.DotProductSettings(mean=math.nan), "mean is nan; pass a finite number"),
    (lambda: ex.DotProductSettings(distribution=3), "distribution is 3; choose one of"),
    (lambda: ex.measured_spread(np.ones(4)), r"shape \(4,\); pass \(rows, keys\)"),
    (lambda: ex.spread_table({}), "0 rows; a table needs at least 1"),
    (lambda: ex.divisor_table([4], T=1), "T is 1, below the limit 2"),
    (lambda: ex.divisor_mistake(100, 12), "d_model 100 is not a multiple of heads 12; pass"),
    (lambda: ex.init_weight_std("He", 4), "init is 'He'; choose one of: "),
    (lambda: ex.initial_score_std(4, 4, -1), "weight_std is -1; .*at least 0"),
    (lambda: ex.measured_initial_score_std(4, 4, "unit", heads=1), "heads is 1, below the limit 2"),
    (
        lambda: ex.measured_initial_score_std(4, 4, "unit", input_similarity=2),
        "input_similarity is 2; .* from 0 to 1",
    ),
    (lambda: ex.saturation_table([-1], [4]), "gains is -1; .*at least 0"),
    (lambda: ex.saturation_table([], [4]), "gains is empty"),
    (lambda: ex.saturation_table([1], [1]), "Ts is 1, below the limit 2"),
    (lambda: ex.gradient_table(["1/sqrt(T)"]), r"scale is '1/sqrt\(T\)'; choose one of: '1'"),
    (lambda: ex.gradient_table(seeds=[]), "0 seeds; pass at least 1"),
    (lambda: ex.gradient_table([]), "got 0 scales"),
    (lambda: ex.largest_jacobian_eigenvalue([2.0, 1.0]), r"not weights; .*softmax\(scores\)"),
    (lambda: ex.largest_jacobian_eigenvalue([1.5, -0.5]), "not weights"),
    (lambda: ex.largest_jacobian_eigenvalue(1.0), "not weights"),
]


@pytest.mark.parametrize(("call", "message"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_bad_values_are_named_with_their_limit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ex.dot_product_table([4.0]), "d_ks is 4.0, not a whole number"),
        (lambda: ex.dot_product_table([True]), "d_ks is True, not a whole number"),
        (lambda: ex.draw_scores(ex.DotProductSettings(), rows="2"), "rows is '2', not a whole"),
        (lambda: ex.DotProductSettings(std="1"), "std is '1', not a number"),
        (lambda: ex.saturation_table([None], [4]), "gains is None, not a number"),
    ],
)
def test_values_of_the_wrong_kind_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_a_single_number_stands_for_a_list_of_one():
    assert_same_table(ex.dot_product_table(4, 10), ex.dot_product_table([4], 10))
    assert_same_table(ex.saturation_table(2, 8, 5), ex.saturation_table([2.0], [8], 5))
    assert_same_table(ex.dot_product_table(np.array([4]), 10), ex.dot_product_table([4], 10))
