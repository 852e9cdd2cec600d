"""What is said about each function of `helpers.interview.broken`: symptom, diagnoses, cure.

The symptoms are measured: tests/test_interview_debug.py sees each of them. A diagnosis that is
wrong is answered from the code or from the symptom, by what speaks against it.
"""

from __future__ import annotations

from helpers.interview import broken
from helpers.interview.bank import LEVELS
from helpers.interview.debug import Broken
from helpers.practice.questions import Option

_ALL: list[Broken] = []


def _case(function, *, right="", because="", wrong, **rest) -> None:
    """right, because : the true diagnosis and its reply; wrong : diagnosis → reply."""
    options = [Option(text, reply) for text, reply in wrong.items()]
    if right:
        options.append(Option(right, because, right=True))
    _ALL.append(Broken(function=function, diagnoses=tuple(options), **rest))


# --- The scale ---

_case(
    broken.scores_left_large,
    id="one-key-takes-nearly-all",
    title="One key takes nearly all",
    disease="no-scale",
    level="screen",
    minutes=2,
    symptom="Before any training, with 64 keys, d_k = 128 and entries of variance 1, the largest "
    "weight of a row is about 0.85 on average. PyTorch's attention gives 0.11.",
    right="The scores are never divided by √d_k.",
    because="The product goes straight into the exponential. A score then has a standard deviation "
    "of √128 ≈ 11.3 instead of 1, and softmax all but picks a winner.",
    wrong={
        "Subtracting the maximum sharpens the rows.": "What a whole row shares changes no weight: "
        "numerator and sum are multiplied by the same e^(−m).",
        "The softmax runs over the queries.": "Maximum and sum take `axis=-1`, and the last "
        "axis of `q @ k.mT` is the keys.",
    },
    nothing="Rows sum to 1, so it is some attention. But 0.85 for one of 64 keys, chosen by "
    "chance, is what a missing scale looks like.",
    change=(("scores = q @ k.mT\n", "scores = q @ k.mT / np.sqrt(q.shape[-1])\n"),),
    lesson="1",
    section="3. Scale: divide by √dₖ",
    topic="divisors",
)
_case(
    broken.width_of_all_heads,
    id="right-with-one-head",
    title="Right with one head",
    disease="scale-by-d_model",
    conventions={"layout": "BTHD"},
    level="onsite",
    minutes=3,
    symptom="With one head it agrees with PyTorch. With 12 heads of 64, entries of variance 1, the "
    "largest of 64 weights is 0.03 on average, where PyTorch's is 0.11.",
    right="It divides by √d_model, the width of all heads together.",
    because="A score sums over D products, those of one head, so its standard deviation is √D. "
    "`H * D` is d_model, and its root is √12 ≈ 3.5 times too large a divisor. Nothing crashes; "
    "attention starts almost uniform.",
    wrong={
        "It divides by the product H·D instead of its root.": "`** -0.5` is one over the root. "
        "What stands under the root is the question.",
        "The `einsum` lets heads attend to each other.": "`b` and `h` stand on both sides of the "
        "arrow and only `d` is summed: every head meets its own keys.",
    },
    nothing="With one head H·D is D, which is why that test passed. Test more than one head.",
    change=(("    H, D = q.shape[-2:]\n", "    D = q.shape[-1]\n"), ("(H * D) ** -0.5", "D**-0.5")),
    lesson="2",
    section="Which d?",
    topic="divisors",
)
_case(
    broken.scaled_here_and_there,
    id="everybody-is-average",
    title="Everybody is average",
    disease="divided-by-d_k|scale-twice",
    level="screen",
    minutes=2,
    symptom="Before any training the weights over 64 keys are nearly all alike: for d_k = 64 their "
    "entropy is 0.998 of the largest possible one. PyTorch's attention gives 0.89.",
    right="The scale is applied twice, so the scores are divided by d_k.",
    because="`q` is divided by √D, and the scores are again: 1/√D · 1/√D = 1/D. Their standard "
    "deviation is then 1/√64, an eighth of what it should be.",
    wrong={
        "`np.matmul` multiplies across heads and sequences.": "It multiplies the last two "
        "axes; all axes before them are a stack of independent matrices.",
        "`k` is transposed along the wrong axes.": "`swapaxes(-1, -2)` exchanges the last two, "
        "which is what QKᵀ needs. Another exchange would not even fit, except where sizes happen "
        "to agree.",
    },
    nothing="Each of the two lines with a root is right alone. Together they are not.",
    change=(("np.matmul(q, k) / np.sqrt(D)", "np.matmul(q, k)"),),
    lesson="2",
    section="4. Three divisors side by side",
    topic="divisors",
)
_case(
    broken.for_mup,
    id="not-what-the-paper-says",
    title="Not what the paper says",
    disease="sound",
    conventions={"scale": "1/d_k"},
    level="onsite",
    minutes=2,
    symptom="A reviewer writes: “The paper says √d_k. This has no root, and the weights are "
    "divided by their sum too late, after they have met V.”",
    wrong={
        "It divides by d_k instead of √d_k.": "That is what this model was trained with. Under muP "
        "the scale is 1/d_k, and with the root every score would be √d_k times too large for the "
        "trained weights.",
        "The division by the sum comes too late.": "The sum is one number for each query, the same "
        "for every key, so it may come before or after the product with V. FlashAttention divides "
        "at the very end too.",
        "The maximum must be subtracted before dividing by D.": "Either order works: what matters "
        "is that no exponent is above 0 when `exp` is reached.",
    },
    nothing="1/d_k is this model's scale, and the late division gives the same rows. Which divisor "
    "is right depends on what a model was trained with.",
    lesson="2",
    section="5. When d_k is the right divisor",
    topic="divisors",
)

# --- Axes and heads ---

_case(
    broken.keys_first,
    id="company-matters",
    title="Company matters",
    disease="softmax-over-queries",
    level="onsite",
    minutes=3,
    symptom="The same query gets another output when other queries come along with it. With one "
    "query alone the output is the plain sum of all values.",
    right="The softmax runs over the queries.",
    because="The scores are laid out (b, h, k, q), keys before queries, so `axis=-1` is the "
    "queries. One query alone competes with nobody: each of its weights is 1.",
    wrong={
        "The second `einsum` sums over the wrong letter.": "`k` stands in both inputs and not in "
        "the result, so it sums over the keys, as it must.",
        "With keys first, the scale must use the width of k.": "q and k have the same width, or "
        "they could not be multiplied.",
    },
    nothing="A query's output may depend on keys and values, never on the other queries: each row "
    "of weights is a softmax of its own.",
    change=(("softmax(scores, axis=-1)", "softmax(scores, axis=-2)"),),
    lesson="1",
    section="4. Softmax: turn a row of scores into shares",
    topic="shapes_and_masks",
)
_case(
    broken.heads_last,
    id="values-of-one",
    title="Values of 1",
    disease="softmax-over-heads",
    conventions={"layout": "BTHD"},
    level="onsite",
    minutes=3,
    symptom="A test sets all values to 1, so that every output must be 1. With 8 heads and 64 keys "
    "the outputs are 8 on average, with 16 keys 2.",
    right="The softmax runs over the heads.",
    because="The scores are (b, q, k, h), so `axis=-1` is the heads. Each key's weights sum to 1 "
    "over the 8 heads: 64 keys / 8 heads = 8. The sum over keys is what values of 1 show.",
    wrong={
        "The scale lacks the number of heads.": "A scale changes how weights are shared out, never "
        "what they sum to.",
        "`einsum` sums the scores over the heads.": "`h` stands to the right of the arrow, so the "
        "heads are kept; only `d` is summed.",
    },
    nothing="With values of 1 every output is the sum of a row of weights, and that is 1 in any "
    "attention.",
    change=(("softmax(scores, axis=-1)", "softmax(scores, axis=2)"),),
    lesson="1",
    section="4. Softmax: turn a row of scores into shares",
    topic="shapes_and_masks",
)
_case(
    broken.reshaped_to_heads,
    id="the-right-shapes",
    title="The right shapes",
    disease="heads-mixed-in-the-inputs",
    conventions={"layout": "BTHD"},
    level="onsite",
    minutes=3,
    symptom="All shapes are right, and with one head it agrees with PyTorch. With 8 heads and 16 "
    "tokens, changing the last token changes nothing in the output of head 0.",
    right="`reshape` does not exchange tokens and heads: it cuts the same numbers into other rows.",
    because="(B, T, H, D) read on as (B, H, T, D) gives “head 0” the first T of T·H rows, which "
    "are all heads of tokens 0 and 1 here. Exchanging axes takes `transpose`.",
    wrong={
        "It hides the future, which nobody asked for.": "There is no mask. And under causality the "
        "last token would still change its own row.",
        "The final `transpose` undoes the wrong axes.": "(0, 2, 1, 3) exchanges axes 1 and 2, "
        "which leads from (B, H, T, D) back to (B, T, H, D).",
    },
    nothing="Every token of a head should see the last one, since nothing is masked here.",
    change=(
        ("x.reshape(B, H, T, D)", "x.transpose(0, 2, 1, 3)"),
        ("        B, T, H, D = x.shape\n", ""),
    ),
    lesson="1",
    section="8. Where Q, K and V come from, heads, and batches",
    topic="heads",
)
_case(
    broken.tiled_heads,
    id="eight-heads-and-two",
    title="Eight heads and two",
    disease="gqa-heads-tiled",
    level="onsite",
    minutes=3,
    symptom="It agrees with PyTorch for 8 heads of keys, and for 1. For 2, under 8 heads of "
    "queries, heads 0, 2, 5 and 7 agree and the other four do not.",
    right="The heads of keys and values are repeated in the wrong order.",
    because="`np.tile` gives 0 1 0 1 0 1 0 1. Neighbours share a head: 0 0 0 0 1 1 1 1, which is "
    "`np.repeat`, in torch `repeat_interleave`. With one head of keys both are the same.",
    wrong={
        "Only the keys may be repeated, not the values.": "Query head h uses head h // group of "
        "both: weights from those keys belong to those values.",
        "`group` is upside down.": "8 // 2 = 4 is how many heads of queries share one of keys. "
        "Upside down it would be 0, and the product would fail.",
    },
    nothing="It works, and a model trained with it would too. But weights trained with the usual "
    "order meet the wrong keys.",
    change=(
        ("np.tile(k, (1, group, 1, 1))", "np.repeat(k, group, axis=1)"),
        ("np.tile(v, (1, group, 1, 1))", "np.repeat(v, group, axis=1)"),
    ),
    lesson="5",
    section="4. The kernel",
    topic="heads",
)

# --- Masks and causality ---

_case(
    broken.filled_where_true,
    id="only-the-padding-counts",
    title="Only the padding counts",
    disease="mask-inverted",
    level="screen",
    minutes=1,
    symptom="In a padded batch, where `mask` is False at the padding, the output changes with the "
    "padding's values and not with those of the real tokens.",
    right="The mask is read the wrong way round.",
    because="True means “may attend” here, and `np.where(mask, -np.inf, …)` hides exactly where it "
    "is True. (nn.MultiheadAttention has the opposite convention, where this line would be right.)",
    wrong={
        "−∞ must be a large negative number such as −1e9.": "exp(−∞) is 0, exactly. −1e9 hides as "
        "well while something is visible, and leaks in rows where nothing is.",
        "The mask must act after the softmax.": "Then the visible weights would no longer sum "
        "to 1. Before it is the right place.",
    },
    nothing="The padding is what a mask has to hide.",
    change=(("np.where(mask, -np.inf, scores)", "np.where(mask, scores, -np.inf)"),),
    lesson="1",
    section="9. A causal mask: no looking ahead",
    topic="shapes_and_masks",
)
_case(
    broken.masked_at_the_end,
    id="the-more-padding-the-smaller",
    title="The more padding, the smaller",
    disease="mask-after-softmax",
    level="screen",
    minutes=2,
    symptom="With values of 1 the output is 1 without padding. With padding it is less, and the "
    "less the more keys are masked.",
    right="The mask acts after the softmax, so the weights left over sum to less than 1.",
    because="Softmax has shared out 1 among all keys, hidden ones too, and what those got is "
    "thrown away. How much is missing even tells something about the hidden keys.",
    wrong={
        "The mask is read the wrong way round.": "`np.where(mask, weights, 0)` keeps what is True, "
        "as promised.",
        "Masked keys still get a little weight.": "They get 0, exactly. It is the others that get "
        "too little.",
    },
    nothing="Hidden keys have weight 0, that is true. But the visible ones must share out 1.",
    change=(
        (
            "    weights = softmax(scores, axis=-1)\n    if mask is not None:\n"
            "        weights = np.where(mask, weights, 0)\n",
            "    if mask is not None:\n        scores = np.where(mask, scores, -np.inf)\n"
            "    weights = softmax(scores, axis=-1)\n",
        ),
    ),
    lesson="3",
    section="Masks",
    topic="shapes_and_masks",
)
_case(
    broken.triangle_kept,
    id="the-first-knows-the-last",
    title="The first knows the last",
    disease="causal-scores-zeroed",
    conventions={"causal": True},
    level="screen",
    minutes=2,
    symptom="Changing the value of the last token changes the output of the first.",
    right="The scores of later keys become 0, not −∞.",
    because="`np.tril` writes zeros above the diagonal, and e⁰ = 1 is no small weight: every later "
    "key takes part with the score 0.",
    wrong={
        "`np.tril` keeps the wrong triangle.": "The lower one is right: row i keeps columns 0 "
        "to i, the past and itself.",
        "`np.tril` drops the diagonal, so no token sees itself.": "It keeps the diagonal unless "
        "`k=-1` is passed.",
    },
    nothing="Causality means that the first token sees only itself.",
    change=(
        (
            "scores = np.tril(scores)",
            "scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)",
        ),
    ),
    lesson="1",
    section="9. A causal mask: no looking ahead",
    topic="shapes_and_masks",
)
_case(
    broken.diagonal_of_two,
    id="token-five",
    title="Token 5 and its neighbours",
    disease="causal-leaks-one",
    conventions={"causal": True},
    level="screen",
    minutes=2,
    symptom="Changing token 5 changes the output of token 4. That of token 3 stays as it was.",
    right="The mask begins one diagonal too far to the right: each query sees one later key.",
    because="`np.triu(…, k=1)` is everything above the diagonal. With `k=2` the first diagonal "
    "above stays visible: the next token, which a language model has to predict.",
    wrong={
        "`np.where` has its arguments the wrong way round.": "Where `future` is True stands "
        "−∞, and that is meant.",
        "`np.triu` should be `np.tril`.": "The upper triangle is right for what is hidden; the "
        "lower one would be what is visible.",
    },
    nothing="Token 4 comes before token 5 and must not know it.",
    change=(("k=2", "k=1"),),
    lesson="1",
    section="9. A causal mask: no looking ahead",
    topic="shapes_and_masks",
)
_case(
    broken.counted_from_the_first,
    id="prompts-are-fine",
    title="Prompts are fine",
    disease="causal-wrong-alignment",
    conventions={"causal": True, "causal_alignment": "lower_right"},
    level="onsite",
    minutes=3,
    symptom="Whole prompts come out right. When the model then writes, one query at a time against "
    "the cache, the output is always the value of the first token.",
    right="The mask is aligned to the first query and the first key, not to the last ones.",
    because="With one query, `rows` is 0 and `columns <= rows` leaves key 0 alone. The newest "
    "query must see T_k keys: `columns <= rows + T_k - T_q`. PyTorch's `is_causal=True` does "
    "the same as this function, silently.",
    wrong={
        "−∞ makes the softmax of the first row NaN.": "Every row keeps at least key 0 here, and "
        "`softmax` is safe in any case.",
        "`<=` must be `<`.": "Then no query would see its own key, and prompts would come out "
        "wrong too.",
    },
    nothing="For T_q = T_k both alignments are the same, which is why prompts are right.",
    change=(("columns <= rows", "columns <= rows + T_k - T_q"),),
    lesson="1",
    section="One new query against a cache",
    topic="kv_cache",
)
_case(
    broken.counted_from_the_last,
    id="no-mask-at-all",
    title="No mask at all",
    disease="sound",
    conventions={"causal": True, "causal_alignment": "lower_right"},
    level="expert",
    minutes=3,
    symptom="For T_q = T_k it agrees with PyTorch's `is_causal=True`. For one query against 1,000 "
    "keys it does not.",
    wrong={
        "A single query sees the future.": "The single query is the newest token. All keys in the "
        "cache are its past or itself, and there is nothing to hide.",
        "The diagonal of `np.tri` must be 0.": "That is the other alignment, which counts from the "
        "first key. The last of T_q queries has to see T_k keys, so the diagonal is T_k − T_q.",
        "More queries than keys give NaN.": "Then the first rows are all −∞, and this `softmax` "
        "gives zeros for them, which is the convention here.",
    },
    nothing="The mask counts from the last query and key, and with one query it would be True "
    "throughout. For T_q = T_k it is the usual triangle.",
    lesson="1",
    section="One new query against a cache",
    topic="kv_cache",
)
_case(
    broken.nothing_to_choose_from,
    id="nan-in-padded-batches",
    title="NaN in padded batches",
    disease="nan-on-fully-masked-row",
    level="onsite",
    minutes=3,
    symptom="NaN, in padded batches only. In the first layer some rows are NaN, and after the "
    "second one every row of those sequences.",
    right="A query that may see no key has only −∞ in its row, and −∞ − (−∞) is NaN.",
    because="Padding queries see nothing, so `largest` is −∞. Hiding their keys in the next layer "
    "does not help: 0 · NaN is NaN in the product with V. Guard the maximum and the sum.",
    wrong={
        "Large scores overflow in `np.exp`.": "The largest score of each row is subtracted, so no "
        "exponent is above 0. And batches without padding would suffer as well.",
        "The mask is read the wrong way round.": "`np.where(mask, scores, -np.inf)` keeps what is "
        "True. Wrong way round there would be wrong numbers rather than NaN, in most rows.",
    },
    nothing="For every row with a visible key it is right. What an empty row gives is a convention "
    "(zeros here), but NaN spreads.",
    change=(
        (
            "    weights = np.exp(scores - largest)\n",
            "    largest = np.where(largest == -np.inf, 0, largest)\n"
            "    weights = np.exp(scores - largest)\n",
        ),
        ("weights / total @ v", "weights / np.where(total == 0, 1, total) @ v"),
    ),
    lesson="3",
    section="Masks",
    topic="numerics",
)
_case(
    broken.bias_inside,
    id="biases-too-weak",
    title="Biases too weak",
    disease="mask-scaled-too",
    level="expert",
    minutes=3,
    symptom="Weights and position biases were trained elsewhere. For d_k = 64 the output is what "
    "PyTorch gives when one hands it an eighth of the bias; without a bias both agree.",
    right="The bias is divided by √d_k together with the scores.",
    because="It is added to QKᵀ before the division. The formula is softmax(QKᵀ/√d_k + bias): the "
    "scale concerns products of d_k terms, and a bias is no such product.",
    wrong={
        "The scores are divided by √d_k once too often.": "There is one division, and without a "
        "bias the result agrees with PyTorch.",
        "The bias must be added after the softmax.": "Then weights would not sum to 1, and a "
        "bias of −∞ would hide nothing.",
    },
    nothing="For a mask of 0 and −∞ it makes no difference, so such a test passes. For biases of "
    "ordinary size it does.",
    change=(
        ("scores = q @ k.mT\n", "scores = q @ k.mT / np.sqrt(q.shape[-1])\n"),
        ("softmax(scores / np.sqrt(q.shape[-1]), axis=-1)", "softmax(scores, axis=-1)"),
    ),
    lesson="4",
    section="7. What else keeps scores in check",
    topic="shapes_and_masks",
)

# --- Floating point, and conduct ---

_case(
    broken.straight_exponentials,
    id="nan-above-89",
    title="NaN above 89",
    disease="overflows",
    level="screen",
    minutes=1,
    symptom="It agrees with PyTorch in every test. In a long training run, in float32, it gives "
    "NaN as soon as a scaled score exceeds 89.",
    right="The row's maximum is not subtracted before the exponential.",
    because="e⁸⁹ is more than float32 holds (3.4·10³⁸), so a weight is inf / inf. Subtracting the "
    "largest score of each row changes no weight and keeps every exponent at 0 or below.",
    wrong={
        "A row of weights can sum to 0.": "Only where all scores are very negative, below −104 in "
        "float32. Here they are large.",
        "The scale comes too late, after the product.": "In float32 the product itself has room to "
        "10³⁸. It is the exponential that has none.",
    },
    nothing="On paper it is right, and for ordinary scores in floating point too.",
    change=(("np.exp(scores)", "np.exp(scores - scores.max(axis=-1, keepdims=True))"),),
    lesson="3",
    section="5. Numbers that break",
    topic="numerics",
)
_case(
    broken.one_maximum,
    id="bad-company",
    title="Bad company",
    disease="maximum-of-everything",
    level="onsite",
    minutes=3,
    symptom="A sequence gets the right output alone, and NaN when it shares a batch with another "
    "sequence, whose scores are all near 1,000.",
    right="One maximum is subtracted for the whole array, not each row's own.",
    because="The other sequence's 1,000 is subtracted from scores near 0: every exponential of "
    "such a row is 0, and 0/0 is NaN. Each row needs its own, `scores.max(axis=-1, "
    "keepdims=True)`.",
    wrong={
        "A score of 1,000 overflows in `np.exp`.": "The rows with 1,000 come out right: their "
        "exponents are near 0 after the subtraction. The other ones fail.",
        "The sum divides after the product with V, which is too late.": "The sum is one number a "
        "row, so the division may come after the product.",
    },
    nothing="As long as all rows lie near each other it is right: a shift changes nothing. Here "
    "they do not.",
    change=(("scores.max()", "scores.max(axis=-1, keepdims=True)"),),
    lesson="3",
    section="5. Numbers that break",
    topic="numerics",
)
_case(
    broken.half_a_sum,
    id="longer-is-worse",
    title="Longer is worse",
    disease="low-precision-accumulation",
    level="expert",
    minutes=3,
    symptom="All inputs and the output are float32. With values around 1 the largest error is "
    "about 0.005 for 64 keys and about 0.08 for 4,096.",
    right="The output is summed up in float16, where small terms vanish beside a large sum.",
    because="Near 1 neighbouring float16 numbers are 0.001 or 0.0005 apart; a term of 1/4096 is "
    "rounded away or up, and that adds up over the keys. Sum in float32, whatever the inputs are.",
    wrong={
        "`np.exp` overflows in float16.": "The softmax is computed in the dtype of q, float32. An "
        "overflow would give inf or NaN, not a small error.",
        "The cast to the dtype of v at the end loses digits.": "From float16 to float32 nothing is "
        "lost. What was lost before does not come back either.",
    },
    nothing="The dtype of the result is float32. Its accuracy is not even that of float16, and it "
    "falls with the number of keys.",
    change=(
        ("dtype=np.float16)", "dtype=np.float32)"),
        (
            "(weights[..., j, None] * v[..., j, None, :]).astype(np.float16)",
            "weights[..., j, None] * v[..., j, None, :]",
        ),
    ),
    lesson="5",
    section="8. What FlashAttention changes, and what not",
    topic="numerics",
)
_case(
    broken.in_place,
    id="the-second-call",
    title="The second call",
    disease="changes-its-input",
    level="onsite",
    minutes=2,
    symptom="A reviewer writes: “You scale q instead of the scores.” The author: “I called it on "
    "random arrays, and it agrees with PyTorch.” It does, the first time.",
    right="It scales `q` in place, and `q` is the caller's array.",
    because="`q *= …` writes into the array that was passed; each call makes it smaller once more, "
    "and the weights come closer to uniform. "
    "`q = q * …` makes a new one. The other two `-=` and `/=` act on arrays of its own.",
    wrong={
        "`scores -= …` and `weights /= …` spoil something.": "Both arrays were made in this call, "
        "and nobody else has them.",
        "The scale belongs to the scores, not to q.": "(q/√d_k)·k is (q·k)/√d_k: it may be applied "
        "to either. Scaling q is even the safer way in float16.",
    },
    nothing="Each line is right arithmetic, and the first result is right. Compare the inputs "
    "before and after a call.",
    change=(("q *= q.shape[-1] ** -0.5", "q = q * q.shape[-1] ** -0.5"),),
    lesson="1",
    section="11. What is wrong with this attention function?",
    topic="testing",
)
_case(
    broken.powers_of_two,
    id="seven-tenths",
    title="Seven tenths of the scale",
    disease="exp2-without-log2e",
    level="expert",
    minutes=3,
    symptom="Translated from a GPU kernel. For d_k = 64 it agrees with PyTorch when PyTorch is "
    "told scale=0.0866, where 0.125 would be right.",
    right="The exponential has base 2, and the scores were not multiplied by log₂ e.",
    because="2^s = e^(s ln 2), and 0.125 · ln 2 = 0.0866. Kernels use exp2, which is what the "
    "hardware has, and fold log₂ e ≈ 1.44 into the scale; that factor was left behind.",
    wrong={
        "It divides by the root of another width.": "0.125/0.0866 is 1.443, so the width would be "
        "64 · 1.443² ≈ 133. No size here is that; log₂ e is 1.4427.",
        "The sum divides after the product with V.": "That is the same number, and would not look "
        "like another scale.",
    },
    nothing="It is a softmax, with another temperature: 1/ln 2 ≈ 1.44 times as high.",
    change=(("np.exp2(scores)", "np.exp2(scores * np.log2(np.e))"),),
    lesson="5",
    section="4. The kernel",
    topic="flash",
)

# --- Blocks, and the online softmax ---

_case(
    broken.whole_blocks,
    id="sixty-five",
    title="Right for 64, wrong for 65",
    disease="queries-after-last-whole-block-unwritten",
    level="screen",
    minutes=2,
    symptom="It agrees with PyTorch for T = 64 and not for T = 65.",
    right="The number of blocks is rounded down: queries after the last whole block get no output.",
    because="65 // 16 is 4 blocks, which is 64 rows. The last row stays at the zeros of "
    "`np.zeros`. Round up, `-(-T // block)`; a slice that reaches beyond the end is cut by "
    "itself.",
    wrong={
        "Keys after the last whole block are never read.": "`k` and `v` are taken whole in every "
        "block; the blocks are of queries.",
        "The last block is filled up with zeros, and they take weight.": "Nothing is padded here. "
        "Then all rows would be off; here it is the last one only.",
    },
    nothing="Tests with powers of two pass. Test lengths that are no multiple of a block.",
    change=(("q.shape[-2] // block)", "-(-q.shape[-2] // block))"),),
    lesson="5",
    section="3. Tiles, and the bytes that move",
    topic="flash",
)
_case(
    broken.filled_up,
    id="too-short-for-65",
    title="Outputs too small",
    disease="padding-takes-weight",
    level="onsite",
    minutes=4,
    symptom="It agrees with PyTorch for 64 and 128 keys. For 65, each output row is PyTorch's "
    "times a number below 1.",
    right="The last block is filled up with zeros, and these keys take weight.",
    because="A key of zeros has the score 0, not −∞, and e⁰ = 1. Its value is 0, so the numerator "
    "stays right and the sum is too large: the row shrinks. Mask the scores beyond T_k.",
    wrong={
        "Keys after the last whole block are never read.": "The loop reaches them: `range(0, T_k, "
        "block)` begins a second block at 64. And rows would change direction, not only length.",
        "The running sum is not rescaled with the maximum.": "`total` and `acc` are multiplied "
        "by the same `np.exp(m - m_new)`.",
    },
    nothing="Multiples of the block need no padding, so those tests pass.",
    change=(
        (
            "block, :].mT\n",
            "block, :].mT\n        real = np.arange(start, start + block) < T_k\n"
            "        s = np.where(real, s, -np.inf)\n",
        ),
    ),
    lesson="5",
    section="4. The kernel",
    topic="flash",
)
_case(
    broken.output_left_behind,
    id="order-matters",
    title="The order of the keys matters",
    disease="accumulator-not-rescaled",
    level="onsite",
    minutes=4,
    symptom="Right for up to 64 keys. Beyond, it is right when the key with the largest score of "
    "every query comes first, and wrong when it comes last.",
    right="When a later block has a larger maximum, the accumulated output is not rescaled.",
    because="`acc` was summed with exp(s − m) and the old m. It needs the factor `np.exp(m - "
    "m_new)` that `total` gets. If the largest score comes first the factor is always 1.",
    wrong={
        "The first block gives NaN, because m starts at −∞.": "exp(−∞ − m_new) is 0, and there is "
        "nothing to rescale yet. NaN would come only if m_new were −∞ too.",
        "`total` must not be rescaled.": "It must: it holds exponentials that refer to the old "
        "maximum. So does `acc`.",
    },
    nothing="Softmax does not care about the order of keys, and neither may an online softmax.",
    change=(("acc = acc + p", "acc = acc * np.exp(m - m_new) + p"),),
    lesson="5",
    section="2. Softmax without seeing all scores",
    topic="online_softmax",
)
_case(
    broken.sum_left_behind,
    id="the-right-direction",
    title="The right direction",
    disease="normaliser-not-rescaled",
    level="expert",
    minutes=4,
    symptom="Right for up to 32 keys. Beyond, each output row is PyTorch's times a number of at "
    "most 1, and exactly 1 in some rows.",
    right="When a later block has a larger maximum, the running sum is not rescaled.",
    because="`acc` gets the factor and `total` does not, so old exponentials count too much in the "
    "sum alone: the direction is right and the row too short. Rows whose first block holds the "
    "largest score are right.",
    wrong={
        "The last block is filled up with zeros, and they take weight.": "Nothing is padded: a "
        "slice is cut at the end. And 64 keys, two whole blocks, would then be right.",
        "The maximum is that of the block, not the running one.": "`np.maximum(m, …)` takes the "
        "old maximum in, so it is the running one.",
    },
    nothing="With values of 1 every output has to be 1. Try it with 64 keys.",
    change=(
        (
            "total += p.sum(axis=-1, keepdims=True)",
            "total = total * np.exp(m - m_new) + p.sum(axis=-1, keepdims=True)",
        ),
    ),
    lesson="5",
    section="2. Softmax without seeing all scores",
    topic="online_softmax",
)
_case(
    broken.parts_alike,
    id="the-newest-token-gets-half",
    title="Half for one key",
    disease="blocks-averaged",
    level="expert",
    minutes=4,
    symptom="Keys are split into parts of 64, as in split-KV decoding. Up to 64 keys it is right. "
    "With 65, the last key has a weight of one half in every row.",
    right="The parts are averaged, where each should weigh e^lse, the sum of its exponentials.",
    because="Alone in its part, the last key gets the weight 1 there, and the plain mean of two "
    "parts gives it a half. A part's output has lost how much it stands for; that is its "
    "lse.",
    wrong={
        "Parts must have equal lengths.": "Of equal parts the plain mean is wrong as well: one may "
        "hold all the large scores.",
        "The scale must use the length of a part.": "The scale is about d_k, the terms of one dot "
        "product. The number of keys is not in it.",
    },
    nothing="A softmax over all keys gives the last one a half only if its score is larger than "
    "that of 64 others together.",
    change=(
        ("    parts = []\n", "    parts, lses = [], []\n"),
        (
            "softmax(scores, axis=-1) @ values)\n",
            "softmax(scores, axis=-1) @ values)\n"
            "        lses.append(np.logaddexp.reduce(scores, axis=-1, keepdims=True))\n",
        ),
        (
            "np.mean(parts, axis=0)",
            "(softmax(np.array(lses), axis=0) * np.array(parts)).sum(axis=0)",
        ),
    ),
    lesson="5",
    section="7. The same merge elsewhere",
    topic="split_and_ring",
)
_case(
    broken.with_exp2,
    id="backwards-in-base-two",
    title="Backwards, in base 2",
    disease="sound",
    level="expert",
    minutes=4,
    symptom="A reviewer writes: “The exponential has the wrong base, the blocks are walked from "
    "the last to the first, and m starts at −∞, which gives NaN.”",
    wrong={
        "The base of the exponential is 2 instead of e.": "The queries carry log₂ e besides the "
        "scale, and 2^(s · log₂ e) = e^s.",
        "The blocks come in the wrong order.": "The sums m, total and acc do not depend on the "
        "order in which keys arrive.",
        "The first block gives NaN, since m starts at −∞.": "exp2(−∞ − m_new) is 0: what was "
        "summed so far counts nothing, and it is 0 anyway.",
    },
    nothing="Base 2 with log₂ e folded into the scale is how kernels do it, any order of blocks is "
    "right, and −∞ is the right start.",
    lesson="5",
    section="4. The kernel",
    topic="online_softmax",
)

CASES: tuple[Broken, ...] = tuple(sorted(_ALL, key=lambda each: LEVELS.index(each.level)))
