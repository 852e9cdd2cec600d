"""The inputs that a function is tried on, chosen so that mistakes show.

Lengths lie below, between and above the usual block sizes (16, 32, 64, 128) and are no multiples
of them, but for one control; queries and keys differ in number, d_v from d_k, and d_k is neither
64 nor a square; there are several heads and batches. Scores stay within ±4 except where a case is
about large ones, so that no mistake hides behind an overflow.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from helpers.doctor.conventions import Conventions
from helpers.doctor.interface import Manner
from helpers.doctor.precision import rounded

_LARGEST = 3.9  # magnitude of ordinary scores, scaled; no whole number, for floor
_MANY = 250  # keys
_OVERFLOWING = 1000.0  # exp overflows beyond 11 (float16), 88 (float32), 709 (float64)
_BELOW_FILL = 12_000.0  # scores so negative that a fill value of −10⁴ lies above them
# Queries that come early see few keys, so here both must be many.
_CAUSAL_LONG = ("causal, lengths above 256", (1, 1, 300, 300, 12, 5))
_SCALES = (0.437, 1.437, 0.0)  # given ones, with more digits than somebody would round to
_SCALE = 0.0537  # far from 1/√d_k and its square, from 1, and from what each makes of it
# Groups of cases about one argument; two of these can be given at once.
ARGUMENTS = ("causal", "mask", "bias", "scale", "gqa")


@dataclass(frozen=True, eq=False)
class Case:
    """One input and the conventions that apply to it. B, H, T, D as everywhere.

    group : what is probed. label : what is particular about it. q (B, H, T_q, d_k), k (B, H, T_k,
    d_k), v (B, H, T_k, d_v) : float64 arrays of numbers that the function's dtype holds exactly;
    with asks_gqa, k and v have fewer heads. scale : what the scores are multiplied by. allowed :
    who may attend to whom, mask and causality together, broadcasting to (B, H, T_q, T_k); None
    allows all. causal : the part of that which is causality, (T_q, T_k) or None. bias : what is
    added to the scaled scores. mask : what is handed as a mask, in the meaning True = may attend.
    asks_… : handed to the function. strided : handed as views that are not contiguous.
    shows_weights : v is the unit matrix, so the output is the weights. arguments : of ARGUMENTS,
    the two that are given at once.
    """

    group: str
    label: str
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scale: float
    allowed: np.ndarray | None = None
    causal: np.ndarray | None = None
    bias: np.ndarray | None = None
    mask: np.ndarray | None = None
    asks_causal: bool = False
    asks_scale: bool = False
    asks_gqa: bool = False
    strided: bool = False
    shows_weights: bool = False
    arguments: tuple[str, ...] = ()

    @property
    def T_q(self) -> int:
        return self.q.shape[-2]

    @property
    def T_k(self) -> int:
        return self.k.shape[-2]

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (*self.q.shape[:-1], self.v.shape[-1])

    @property
    def entries(self) -> int:
        return self.q.size + self.k.size + self.v.size

    def empty_rows(self) -> np.ndarray:
        """Queries that may attend to no key: boolean, broadcasting to (B, H, T_q)."""
        empty = np.zeros((1, 1, self.T_q), dtype=bool)
        if self.allowed is not None:
            empty = empty | ~self.allowed.any(axis=-1)
        if self.bias is not None:
            empty = empty | (self.bias == -np.inf).all(axis=-1)
        return empty


class Maker:
    """Draws cases for one examination.

    precision : the dtype that the function is handed. Every case has a generator of its own, so
    that a case does not depend on which others are drawn.
    """

    def __init__(self, conventions: Conventions, manner: Manner, precision: str):
        self.conventions, self.manner, self.precision = conventions, manner, precision

    def _random(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([self.conventions.seed, *key])

    def _case(self, key, group, label, sizes, *, heads_kv=None, v_mean=0.0, weights=False, **more):
        """A case of sizes (B, H, T_q, T_k, d_k, d_v) with normal entries and modest scores.

        Where there are very many keys, small scores come first, so that the running maximum of an
        online softmax grows; later queries weigh the keys ever more evenly, so that sums have many
        terms.
        """
        said = self.conventions
        B, H, T_q, T_k, d_k, d_v = sizes
        B, H = (n if said.has(axis) else 1 for n, axis in ((B, "B"), (H, "H")))
        H_kv = heads_kv or H
        d_k, d_v = said.d_k or d_k, said.d_v or (T_k if weights else d_v)
        T_k = d_v if weights else T_k
        random = self._random(*key)
        q = random.normal(size=(B, H, T_q, d_k)) * random.uniform(0.5, 1.5, size=(B, H, T_q, 1))
        k = random.normal(size=(B, H_kv, T_k, d_k))
        scale = more.pop("scale", said.scale_for(d_k))
        if T_k > _MANY:
            direction = random.normal(size=(B, 1, 1, d_k))
            q = (q + 2 * direction) * np.linspace(1, 0.05, T_q)[:, None]
            order = np.argsort((k @ direction.mT)[..., 0] * np.sign(scale), axis=-1)
            k = np.take_along_axis(k, order[..., None], axis=-2)
        if weights:
            v = np.broadcast_to(np.eye(T_k), (B, H_kv, T_k, T_k)).copy()
        else:
            v = v_mean + random.normal(size=(B, H_kv, T_k, d_v))
        k_all = np.repeat(k, H // H_kv, axis=1)
        largest = np.abs(q @ k_all.mT).max() * abs(scale if scale else 1 / np.sqrt(d_k))
        q *= _LARGEST / largest if largest else 1
        q, k, v = (rounded(x, self.precision) for x in (q, k, v))
        more = self._with_causality(more, T_q, T_k)
        return Case(group, label, q, k, v, scale, shows_weights=weights, **more)

    def _with_causality(self, more, T_q, T_k):
        """`more` with what is allowed: what the mask allows, without the future where that is asked
        for or the function is always causal."""
        if not (self.conventions.causal or more.get("asks_causal")):
            return more
        causal = self.conventions.causal_mask(T_q, T_k)
        allowed = more.get("allowed")
        return {
            **more,
            "causal": causal,
            "allowed": causal if allowed is None else causal & allowed,
        }

    # --- Groups of cases ---

    def first(self) -> Case:
        """The friendliest input: all lengths equal, and d_v = d_k."""
        return self._case((0, 0), "plain", "as many queries as keys", (2, 3, 6, 6, 10, 10))

    def plain(self) -> list[Case]:
        """Queries, keys and values alone."""
        table = [
            ("other numbers of the same shape", (2, 3, 6, 6, 10, 10)),
            ("fewer queries than keys", (2, 3, 5, 11, 12, 7)),
            ("more queries than keys", (2, 3, 9, 4, 12, 7)),
            ("values of 1, so that the result is the weights", (1, 2, 5, 11, 12, 11)),
            ("values of 1, so that the result is the weights", (1, 2, 9, 13, 20, 13)),
            ("one query", (1, 1, 1, 9, 12, 7)),
            ("one key", (2, 3, 4, 1, 12, 7)),
            ("one feature of the values", (2, 3, 5, 6, 3, 1)),
            ("d_k above 64", (1, 2, 37, 45, 72, 70)),
            ("lengths of 128, a multiple of every usual block", (1, 1, 128, 128, 12, 9)),
            ("lengths above 128", (1, 2, 150, 139, 12, 9)),
            ("many keys, values around 3", (1, 1, 3, 1037, 12, 5)),
            ("many queries", (1, 1, 531, 3, 12, 5)),
            ("three sequences, nine heads", (3, 9, 4, 7, 12, 5)),
        ]
        if self.conventions.causal:
            table.append(_CAUSAL_LONG)
        cases = [
            self._case(
                (1, number), "plain", label, sizes,
                weights="weights" in label, v_mean=3.0 * ("around 3" in label),
            )
            for number, (label, sizes) in enumerate(table)
        ]  # fmt: skip
        return [self.first(), *cases, self._ties()]

    def _ties(self) -> Case:
        """Keys that come twice, a query and two keys of zeros: equal scores must get equal
        weights, and zeros are numbers like others."""
        case = self._case((2, 0), "plain", "ties among the scores", (2, 3, 5, 8, 12, 7))
        case.k[:, :, 1::2] = case.k[:, :, ::2][:, :, : case.k[:, :, 1::2].shape[2]]
        case.q[:, :, 1] = 0
        case.k[:, :, -2:] = 0
        return case

    def nudged(self, case: Case) -> Case:
        """A case whose numbers are up to 1 % other."""
        random = self._random(14, 0)

        def near(x):
            return rounded(x * random.uniform(0.99, 1.01, size=x.shape), self.precision)

        return replace(case, q=near(case.q), k=near(case.k), v=near(case.v))

    def large(self) -> list[Case]:
        """Scores around ±1000 after scaling. Rows whose scores are all positive, all zero and all
        negative stand in every head; the largest and the smallest score come several times, so
        that each row's weights are a plain average in every dtype."""
        levels = np.repeat([1.0, 1.25, 1.5], (2, 5, 3))
        case = self._aligned((3, 0), "large", "scores around ±1000", _OVERFLOWING, levels)
        return [] if case is None else [case]

    def _aligned(self, key, group, label, target, levels, **more) -> Case | None:
        """Keys that are multiples of one vector, so that scores are what `levels` says.

        levels (T_k,) : the scaled score of a key with a query of sign +, in units of target.
        None where the scale is too small for such scores.
        """
        said, random = self.conventions, self._random(*key)
        B, H = (n if said.has(axis) else 1 for n, axis in ((2, "B"), (3, "H")))
        d_k, d_v, T_k = said.d_k or 12, said.d_v or 7, len(levels)
        scale = said.scale_for(d_k)
        if target > 60_000 * abs(scale) / max(levels):  # q · k must fit into float16
            target = 60_000 * abs(scale) / max(levels)
            if target < 800:
                return None
        length = np.sqrt(target / (d_k * abs(scale)))  # of each entry of q and k
        direction = random.choice([-1.0, 1.0], size=(B, H, 1, d_k))
        order = np.argsort(random.random((B, H, T_k)), axis=-1)
        size = np.asarray(levels)[order][..., None]
        signs = np.array([1.0, -1.0, 0.0, -1.0, 1.0, 0.0]) * np.sign(scale)
        q = direction * length * signs[:, None]
        k = direction * length * size
        v = random.normal(size=(B, H, T_k, d_v))
        # Few binary digits, so that dot products are exact in whatever order they are summed.
        q, k, v = rounded(q, "bfloat16"), rounded(k, "bfloat16"), rounded(v, self.precision)
        more = self._with_causality(more, len(signs), T_k)
        return Case(group, label, q, k, v, scale, **more)

    def causal(self) -> list[Case]:
        """Causality asked for by an argument."""
        if self.manner.causal is None or self.conventions.causal:
            return []
        table = [
            ("causal, as many queries as keys", (2, 3, 6, 6, 12, 7)),
            ("causal, fewer queries than keys", (2, 3, 5, 11, 12, 7)),
            ("causal, more queries than keys", (1, 2, 11, 5, 12, 7)),
            ("causal, one query", (2, 3, 1, 9, 12, 7)),
            ("causal, lengths between blocks", (1, 2, 37, 45, 20, 9)),
            _CAUSAL_LONG,
        ]
        return [
            self._case((4, number), "causal", label, sizes, asks_causal=True)
            for number, (label, sizes) in enumerate(table)
        ]

    @property
    def _masks(self) -> bool:
        both = self.conventions.causal and self.manner.causal is not None  # torch refuses both
        return self.manner.mask is not None and not both

    def masks(self) -> list[Case]:
        """Boolean masks of every shape that broadcasts, each row with keys to see and to ignore."""
        if not (self._masks and self.manner.boolean_masks):
            return []
        table = [
            ("a mask (T_q, T_k)", (2, 3, 5, 11, 12, 7), "qk"),
            ("a mask of its own for each sequence", (2, 3, 5, 11, 12, 7), "Bqk"),
            ("a mask of its own for each head", (2, 3, 6, 6, 12, 7), "BHqk"),
            ("padding at the end of each sequence", (2, 3, 5, 11, 12, 7), "Bk"),
            ("a mask over more keys than a block", (1, 2, 37, 139, 12, 7), "qk"),
            ("a mask for one query", (2, 3, 1, 11, 12, 7), "qk"),
        ]
        return [
            self._masked((5, number), "mask", label, sizes, shape)
            for number, (label, sizes, shape) in enumerate(table)
            if all(self.conventions.has(axis) for axis in shape if axis in "BH")
        ]

    def _masked(self, key, group, label, sizes, shape) -> Case:
        random = self._random(9, *key)
        B, H, T_q, T_k = sizes[:4]
        B, H = (n if self.conventions.has(axis) else 1 for n, axis in ((B, "B"), (H, "H")))
        if shape == "Bk":
            lengths = 1 + np.arange(B)[:, None, None, None] * (T_k // 2) + T_k // 4
            mask = np.arange(T_k) < lengths
        else:
            full = (B if "B" in shape else 1, H if "H" in shape else 1, T_q, T_k)
            mask = random.random(full) < 0.6
            # Key 0 stays visible, so that causality leaves no row empty; the last key never is.
            mask[..., 0], mask[..., -1] = True, False
            mask = mask[0, 0] if shape == "qk" else mask
        return self._case(key, group, label, sizes, allowed=mask, mask=mask)

    def biases(self) -> list[Case]:
        """Float masks: numbers that are added to the scaled scores, -inf among them."""
        if not (self._masks and self.manner.float_masks):
            return []
        table = [
            ("a float mask (T_q, T_k)", (5, 11)),
            ("a float mask (B, H, T_q, T_k)", (2, 3, 5, 11)),
            ("a float mask for one query", (1, 11)),
        ]
        both = self.conventions.has("B") and self.conventions.has("H")
        cases = []
        for number, (label, shape) in enumerate(table):
            if len(shape) == 2 or both:
                bias = self._bias(self._random(6, number, 1), shape)
                sizes = (2, 3, *shape[-2:], 12, 7)
                cases.append(self._case((6, number), "bias", label, sizes, bias=bias, mask=bias))
        return cases

    def _bias(self, random, shape) -> np.ndarray:
        """What is added to the scores: -inf for a quarter, 0 for a fifth, never -inf for key 0."""
        bias = rounded(random.normal(size=shape) * 2, self.precision)
        kind = random.random(shape)
        bias[kind < 0.25] = -np.inf
        bias[kind > 0.8] = 0  # False, where the mask is taken for a boolean one
        bias[..., 0] = 1.0
        return bias

    def fills(self, about: Container[str] = ("mask", "causal")) -> list[Case]:
        """Hidden keys whose scores lie far above those of the keys that may be seen. about : the
        arguments that may be used."""
        cases = []
        if "mask" in about and self._masks and self.manner.boolean_masks:
            cases.append(self._masked_among_large())
        asks = self.manner.causal is not None and not self.conventions.causal
        if self.conventions.causal or ("causal" in about and asks):
            cases.append(self._causal_among_large(asks))
        return [case for case in cases if case is not None]

    def _masked_among_large(self) -> Case | None:
        levels = np.array([-1.0, -1.0, -1.25, 1.0, 1.0, 1.25, 1.0])
        case = self._aligned((7, 0), "fill", "visible scores of −12000", _BELOW_FILL, levels)
        if case is None:
            return None
        case.q[:, :, :] = case.q[:, :, :1]
        allowed = (case.q @ case.k.mT) * case.scale < 0
        more = self._with_causality({"allowed": allowed}, case.T_q, case.T_k)
        return replace(case, mask=allowed, **more)

    def _causal_among_large(self, asks: bool) -> Case | None:
        levels = np.array([-1.0, -1.25, -1.25, 1.0, 1.25, 1.0])
        label = "causal, visible scores of −12000"
        case = self._aligned((7, 1), "fill", label, _BELOW_FILL, levels, asks_causal=asks)
        if case is None:
            return None
        case.q[:, :, :] = case.q[:, :, :1]
        positive = (case.q[:, :, :1] @ case.k.mT)[:, :, 0] * case.scale > 0
        order = np.argsort(positive, axis=-1, kind="stable")  # the future is positive
        case.k[:] = np.take_along_axis(case.k, order[..., None], axis=-2)
        return case

    def empty(self) -> list[Case]:
        """Queries that may attend to no key at all."""
        if self.conventions.empty_rows == "any":
            return []
        cases, sizes = [], (2, 3, 5, 11, 12, 7)
        base = self._random(8, 0).random((5, 11)) < 0.6
        base[:, 0], base[1], base[3] = True, False, False
        if self._masks and self.manner.boolean_masks:
            label = "two queries whose keys are all masked"
            cases.append(self._case((8, 1), "empty", label, sizes, allowed=base, mask=base))
        elif self._masks and self.manner.float_masks:
            bias = np.where(base, 0.0, -np.inf)
            label = "two queries whose keys are all masked by -inf"
            cases.append(self._case((8, 2), "empty", label, sizes, bias=bias, mask=bias))
        asks = self.manner.causal is not None and not self.conventions.causal
        if self.conventions.causal_alignment == "lower_right" and (asks or self.conventions.causal):
            label, more = "causal, more queries than keys", {"asks_causal": True} if asks else {}
            cases.append(self._case((8, 3), "empty", label, (1, 2, 11, 5, 12, 7), **more))
        return cases

    def scales(self) -> list[Case]:
        """A scale handed as an argument."""
        if self.manner.scale is None or self.manner.needs_scale:
            return []
        return [
            self._case((10, number), "scale", f"scale={scale:g}", (2, 3, 5, 11, 12, 7), scale=scale,
                       asks_scale=True)
            for number, scale in enumerate(_SCALES)
        ]  # fmt: skip

    def gqa(self) -> list[Case]:
        """Fewer heads of keys and values than of queries."""
        if self.manner.gqa is None or not self.conventions.has("H"):
            return []
        return [
            self._case((11, number), "gqa", f"6 heads of queries, {heads} of keys",
                       (2, 6, 5, 11, 12, 7), heads_kv=heads, asks_gqa=True)
            for number, heads in enumerate((2, 3, 1))
        ]  # fmt: skip

    def pairs(self, arguments: Container[str] = ARGUMENTS) -> list[Case]:
        """Two arguments at once. arguments : those that may be used, by the group that is about
        them alone. As many queries as keys, so that causality has one meaning."""
        return [
            self._pair((15, number), both)
            for number, both in enumerate(combinations(ARGUMENTS, 2))
            if set(both) != {"mask", "bias"}
            and all(one in arguments for one in both)
            and ("gqa" not in both or self.conventions.has("H"))
        ]

    def _pair(self, key, both) -> Case:
        names = {
            "causal": self.manner.causal, "mask": self.manner.mask, "bias": self.manner.mask,
            "scale": self.manner.scale, "gqa": self.manner.gqa,
        }  # fmt: skip
        label = " together with ".join(f"`{names[one]}`" for one in both)
        random, more = self._random(16, *key), {"arguments": both}
        shape = (7, 7)
        if "gqa" in both:
            more |= {"asks_gqa": True, "heads_kv": 2}
            shape = (2 if self.conventions.has("B") else 1, 4, 7, 7)
        if "mask" in both:
            mask = random.random(shape) < 0.6
            mask[..., 0], mask[..., -1] = True, False  # as for a mask alone
            more |= {"allowed": mask, "mask": mask}
        if "bias" in both:
            bias = self._bias(random, shape)
            more |= {"bias": bias, "mask": bias}
        if "causal" in both:
            more |= {"asks_causal": True}
        if "scale" in both:
            more |= {"asks_scale": True, "scale": _SCALE}
        return self._case(key, "pair", label, (2, 4, 7, 7, 12, 5), **more)

    def strides(self) -> list[Case]:
        """The same numbers as views that are not contiguous, as a transpose leaves them."""
        return [
            self._case((12, 0), "strides", "views that are not contiguous", (2, 3, 5, 11, 12, 7),
                       strided=True)
        ]  # fmt: skip

    def gradients(self) -> list[Case]:
        """What gradients are compared on: some of each group."""
        own = [
            self._case((13, number), "plain", label, sizes)
            for number, (label, sizes) in enumerate(
                [
                    ("fewer queries than keys", (2, 3, 5, 11, 12, 7)),
                    ("as many queries as keys", (2, 3, 6, 6, 10, 10)),
                    ("lengths above 128", (1, 2, 150, 139, 12, 9)),
                ]
            )
        ]
        masks = [*self.masks()[:1], *self.biases()[:1], *self.empty()[:1]]
        causal = [
            case for case in self.causal() if "fewer" in case.label or "as many" in case.label
        ]
        return [*own, *causal, *masks, *self.scales()[:1], *self.gqa()[:1], *self.large()]
