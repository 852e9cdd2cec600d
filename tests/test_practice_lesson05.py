"""Lesson 5's solutions agree with `helpers.flash`, which does the same in another way."""

import numpy as np
import pytest

from helpers import flash
from helpers.practice import check, lesson05

BY_ID = {exercise.id: exercise for exercise in lesson05.EXERCISES}


@pytest.mark.parametrize("exercise", lesson05.EXERCISES, ids=lambda exercise: exercise.id)
def test_solutions_warn_of_nothing(exercise):
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        for case in exercise.cases:
            exercise.expected(case)
    assert check(exercise.id, exercise.solution).remarks == ()


def test_the_online_update_is_the_packages():
    draw = np.random.default_rng(0)
    scores, v = draw.standard_normal(20) * 5, draw.standard_normal((20, 3))
    state = [-np.inf, 0.0, np.zeros(3)]
    places = [3, 4, 11]
    for step in flash.online_attention(np.split(scores, places), np.split(v, places)):
        values = v[step.seen - len(step.scores) : step.seen]
        m, total, *o = lesson05.online_update(*state, step.scores, values)
        np.testing.assert_allclose([m, total, *o], [step.m, step.l, *step.acc])
        state = [m, total, np.array(o)]


def test_merge_is_the_packages():
    for case in BY_ID["5.2"].cases:
        out, lse = flash.merge(*case.args)
        np.testing.assert_allclose(BY_ID["5.2"].expected(case), [*out, lse])


def test_bytes_are_those_of_the_model_without_the_log_sum_exp():
    for case in BY_ID["5.3"].cases:
        T, d, block_q = case.args
        plan = flash.TilePlan(T, d, block_q, 7)
        plain = flash.memory_traffic(T, d, 8 * d).plain
        assert lesson05.bytes_moved(T, d, block_q) == (plain, sum(plan.moved(plan.tiles)) - 2 * T)


def test_tiles_are_those_of_the_mask():
    for T in range(1, 12):
        allowed = np.tri(T, dtype=bool)
        for rows in range(1, 14):
            for columns in range(1, 14):
                tiles = [
                    [allowed[i : i + rows, j : j + columns] for j in range(0, T, columns)]
                    for i in range(0, T, rows)
                ]
                expected = [[int(tile.any()) + int(tile.all()) for tile in row] for row in tiles]
                assert np.array_equal(lesson05.causal_tiles(T, rows, columns), expected)
