"""Lesson 3's questions. Each wrong option answers the misconception that leads to it.

Numbers about gradients are those of `experiments.gradient_table()` (d = 128, T = 64, 5 seeds of
400 draws), those about a gain those of `experiments.saturation_table`.
"""

from __future__ import annotations

from helpers.practice.questions import Option, Question, collection

PREDICTIONS = collection(
    Question(
        "3.1",
        "softmax([2, 1, 0.5]) = [0.63, 0.23, 0.14]. Now every score is multiplied by 11.3, which "
        "is about √128. What are the weights, to one decimal?",
        (
            Option(
                "[0.6, 0.2, 0.1], as before",
                "A common factor does not cancel, a common summand would. The ratio of the first "
                "two weights was e^(2 − 1) ≈ 2.7; it becomes about 82,000, e to the √128.",
            ),
            Option(
                "[0.9, 0.1, 0.0]",
                "A factor of 2.2 does that: e^2.2 ≈ 9. With 11.3 the ratio of the first two "
                "weights is about 82,000, e to the √128.",
            ),
            Option(
                "[1.0, 0.0, 0.0]",
                "The first weight is 0.99999, the second 0.00001: the softmax has become a choice "
                "of the largest score. Leaving out the 1/√d_k of d_k = 128 multiplies every score "
                "by just this factor.",
                right=True,
            ),
            Option(
                "[7.1, 2.6, 1.6]",
                "Those are the old weights times 11.3. Weights sum to 1, whatever the scores are.",
            ),
        ),
    ),
    Question(
        "3.2",
        "The scores are 2, 1 and 0.5. In one copy we add 5 to each of them, in another we multiply "
        "each by 5. Which copy has other weights than the original?",
        (
            Option(
                "Both.",
                "Only one of them. Adding gives exp(s + 5) = e⁵ · exp(s): the factor e⁵ is in the "
                "numerator and in every term of the sum below, and cancels.",
            ),
            Option(
                "Only the one with 5 added.",
                "7, 6 and 5.5 differ from each other as 2, 1 and 0.5 do, and the softmax sees "
                "nothing but differences.",
            ),
            Option(
                "Only the one multiplied by 5.",
                "Its differences are five times as large, so each ratio of two weights is taken to "
                "the fifth power: [0.63, 0.23, 0.14] becomes [0.993, 0.007, 0.001]. Multiplying "
                "by 5 is a temperature of 1/5.",
                right=True,
            ),
            Option(
                "Neither.",
                "That is true of adding. Multiplying by 5 turns the difference of 1 between the "
                "first two scores into 5, and the ratio of their weights from e ≈ 2.7 into "
                "e⁵ ≈ 148.",
            ),
        ),
    ),
    Question(
        "3.3",
        "Softmax's Jacobian, diag(p) − p pᵀ, says how the weights p move when the scores move a "
        "little. Its largest eigenvalue is the strongest answer that a small change can get. For "
        "which of these weights over 8 keys is it largest?",
        (
            Option(
                "[1, 0, 0, …]: one key has it all",
                "There it is 0: the whole matrix is. A small change of the scores moves no weight.",
            ),
            Option(
                "[½, ½, 0, …]: two keys share",
                "It is ½ there, and for no weights is it larger. Raise one of the two scores, "
                "lower the other, and weight flows across: a softmax is most sensitive where it "
                "hesitates between two keys.",
                right=True,
            ),
            Option(
                "[⅛, ⅛, ⅛, …]: all share alike",
                "There it is only ⅛; over n keys it is 1/n. Each weight is small, so it has little "
                "to give or to take.",
            ),
            Option(
                "[0.9, 0.1, 0, …]: one key leads clearly",
                "There it is 2 · 0.9 · 0.1 = 0.18. Of two keys the weaker one limits how much can "
                "flow between them.",
            ),
        ),
    ),
    Question(
        "3.4",
        "Random q, k and v, d_k = 128, 64 keys, a random gradient from above. Without a scale the "
        "softmax is nearly one-hot: the largest weight of a row is 0.86 on average. What becomes "
        "of ‖∂L/∂q‖, the gradient that reaches the query, compared with the scale 1/√d_k?",
        (
            Option(
                "It vanishes, since a saturated softmax passes nothing back.",
                "In about 23 % of the rows it is less than a tenth of what is usual with the "
                "scale. In about 29 % it is more than ten times that, and the mean rises from 2.0 "
                "to 16. Not every row is saturated, and nothing divides by √d_k on the way back "
                "any more.",
            ),
            Option(
                "It stays about the same: what softmax takes away, the missing 1/√d_k gives back.",
                "Both act, but they do not balance: the mean rises from 2.0 to 16, the median from "
                "1.9 to 5.0, and single rows lie far apart.",
            ),
            Option(
                "It becomes larger on average, and very uneven.",
                "The mean rises from 2.0 to 16, the median from 1.9 to 5.0. About 23 % of the rows "
                "fall below a tenth of the usual size, about 29 % rise above ten times it; with "
                "the scale no row does either.",
                right=True,
            ),
            Option(
                "It becomes √128 ≈ 11.3 times as large in every row, since the chain rule lacks "
                "the factor 1/√d_k.",
                "The factor is missing, but the weights have changed too, and at its input the "
                "softmax passes less back. The mean becomes about 8 times as large, and in about "
                "39 % of the rows the gradient is smaller than with the scale.",
            ),
        ),
    ),
    Question(
        "3.5",
        "Scores are stored in float16, whose largest number is 65504. One dot product q · k is "
        "70,000. Then the code divides by √128 and takes a softmax that subtracts the row's "
        "maximum. Does this row come out right?",
        (
            Option(
                "Yes: with the maximum subtracted, exp cannot overflow.",
                "Exp is not what overflows here. The product was stored as inf, the row's maximum "
                "is then inf, and inf − inf is nan.",
            ),
            Option(
                "Yes: divided by √128 it is about 6187, which fits.",
                "It would, if the division came first. But inf is stored before, and inf/√128 is "
                "inf. Dividing q by √128 before the product would save it.",
            ),
            Option(
                "Nearly: it is stored as 65504, the largest number there is.",
                "float16 does not stop at its largest number: everything from 65520 on is rounded "
                "to inf.",
            ),
            Option(
                "No: the score is inf already.",
                "It minus the row's maximum is inf − inf = nan, and through the sum every weight "
                "of the row becomes nan. It helps to divide q before the product, or to keep "
                "scores in bfloat16 or float32.",
                right=True,
            ),
        ),
    ),
    Question(
        "3.6",
        "Every key of a row is masked: all its scores are −∞. The softmax is written as "
        "exp(x − max) over its sum. What comes out?",
        (
            Option(
                "Zeros, since exp(−∞) is 0.",
                "exp(−∞) is 0, but what exp gets here is −∞ − (−∞), which is nan. Zeros come out "
                "only if such a row is treated by itself, as `helpers.attention.softmax` does.",
            ),
            Option(
                "Equal weights, since all scores are equal.",
                "That happens with −1e9 in place of −∞: the differences are then 0. The difference "
                "of −∞ and −∞ is not 0 but nan.",
            ),
            Option(
                "nan in every entry.",
                "The maximum is −∞, and −∞ − (−∞) is nan. `torch.softmax` gives nan too, while "
                "PyTorch's `scaled_dot_product_attention` returns zeros for such a query "
                "(version 2.13, used here; older ones gave nan).",
                right=True,
            ),
            Option(
                "An error: a division by 0.",
                "Floating-point arithmetic goes on where it has no answer. NumPy warns, PyTorch "
                "does not even do that, and the nan travels on into the loss.",
            ),
        ),
    ),
    Question(
        "3.7",
        "A causal mask can act before the softmax (the scores of later keys become −∞) or after it "
        "(the weights of later keys become 0). What is the difference?",
        (
            Option(
                "None: a masked key has the weight 0 either way.",
                "The masked keys have, but the others differ. If masked afterwards, they were "
                "divided by a sum in which the later keys stood too.",
            ),
            Option(
                "Afterwards, all rows but the last sum to less than 1, and the future still shows "
                "in how much is left.",
                "The exponentials of the later keys stay in the denominator of every weight: a "
                "later token with a high score makes the earlier weights small. Its value is "
                "hidden, its score is not.",
                right=True,
            ),
            Option(
                "Before, rows sum to less than 1, since exp(−∞) = 0 takes part in the sum.",
                "A term of 0 adds nothing to the sum, so the allowed keys share out the whole 1. "
                "It is masking afterwards that takes something away.",
            ),
            Option(
                "Only the order of two steps, which matters for speed but not for numbers.",
                "The numbers differ: of two equal scores, one masked, the other gets the weight 1 "
                "if masked before, and ½ if masked after.",
            ),
        ),
    ),
)


QUIZ = collection(
    Question(
        "one-hot",
        "The weights of a row are [0, 1, 0]. What is softmax's Jacobian there, diag(p) − p pᵀ?",
        (
            Option(
                "All zeros.",
                "diag(p) and p pᵀ both have a single 1, in the same place. A small change of the "
                "scores then moves no weight.",
                right=True,
            ),
            Option(
                "1 in the middle, zeros elsewhere.",
                "That is diag(p). p pᵀ has the same 1 in the middle and takes it away.",
            ),
            Option(
                "The identity matrix.",
                "Then each weight would follow its own score, and a row of weights could not keep "
                "its sum of 1. Each row of the Jacobian sums to 0.",
            ),
            Option(
                "0 on the diagonal, −1 beside it.",
                "Beside the diagonal stands −p_i · p_j, and at least one of the two factors is 0.",
            ),
        ),
    ),
    Question(
        "same-weights",
        "Two rows of finite scores have exactly the same weights. What must be true of the scores?",
        (
            Option(
                "They are the same.",
                "They need not be: [2, 1] and [102, 101] have the same weights.",
            ),
            Option(
                "One row is a multiple of the other.",
                "A factor is what the softmax does notice: it acts as a temperature. [2, 1] has "
                "the weights [0.73, 0.27], [4, 2] has [0.88, 0.12].",
            ),
            Option(
                "They put the keys in the same order.",
                "They do, but that is not enough: [2, 1] and [3, 1] have the same order and the "
                "first weights 0.73 and 0.88.",
            ),
            Option(
                "They differ by the same number in every entry.",
                "The logarithm of a weight is its score minus one number for the whole row, the "
                "log-sum-exp. Equal weights leave nothing but that number to differ.",
                right=True,
            ),
        ),
    ),
    Question(
        "temperature",
        "A language model samples its next token at temperature 0.5. Inside, its attention divides "
        "scores by √d_k. How do the two compare?",
        (
            Option(
                "Both divide what a softmax gets: by 0.5 here, by √d_k there.",
                "Attention is a softmax over the keys at temperature √d_k, in every layer, and the "
                "model is trained with it. The sampling temperature is chosen afterwards, for "
                "the softmax over the vocabulary.",
                right=True,
            ),
            Option(
                "Both make their softmax more even.",
                "√d_k does (for d_k above 1). A temperature below 1 makes differences larger: at "
                "0.5 each ratio of two probabilities is squared.",
            ),
            Option(
                "If 1/√d_k were missing, a sampling temperature of √d_k would make up for it.",
                "That evens out the probabilities of the next token, at the very end. The "
                "attention in every layer before stays as sharp as it was.",
            ),
            Option(
                "They have nothing in common: a temperature acts on probabilities, √d_k on scores.",
                "A temperature acts on the logits, before the softmax, as √d_k does. Probabilities "
                "divided by 0.5 would sum to 2.",
            ),
        ),
    ),
    Question(
        "range",
        "In which of these formats is exp(89) ≈ 4.5 · 10³⁸ still a finite number?",
        (
            Option(
                "float16",
                "Its largest number is 65504, so exp overflows above 11.09 already.",
            ),
            Option(
                "bfloat16",
                "It has as many exponent bits as float32 and thus almost its range, with fewer "
                "digits: its largest number is 3.39 · 10³⁸, and exp overflows above about 88.7.",
            ),
            Option(
                "float32",
                "Its largest number is 3.40 · 10³⁸, so exp overflows above 88.72.",
            ),
            Option(
                "float64",
                "Its largest number is 1.8 · 10³⁰⁸: exp overflows only above 709.78. The other "
                "three end before 89.",
                right=True,
            ),
        ),
    ),
    Question(
        "log-sum-exp",
        "What is ln(e¹⁰⁰⁰ + e¹⁰⁰⁰), the log-sum-exp of the scores 1000 and 1000?",
        (
            Option(
                "About 1000.69",
                "With the maximum taken out it is 1000 + ln(e⁰ + e⁰) = 1000 + ln 2, and no large "
                "exponential is ever formed. Each weight is then exp(score − log-sum-exp).",
                right=True,
            ),
            Option(
                "inf",
                "That is what float64 gives if the formula is computed as it stands, because e¹⁰⁰⁰ "
                "overflows. The number itself is an ordinary one.",
            ),
            Option(
                "2000",
                "Exponents add up when exponentials are multiplied: e¹⁰⁰⁰ · e¹⁰⁰⁰ = e²⁰⁰⁰. Here "
                "they are added, which gives 2 · e¹⁰⁰⁰.",
            ),
            Option(
                "1000",
                "That is the maximum, and log-sum-exp lies above it unless there is one score "
                "only: two equal ones add ln 2.",
            ),
        ),
    ),
    Question(
        "heuristic",
        "Standard-normal scores for T = 64 keys are multiplied by a gain. √(2 ln 64) is about 2.9. "
        "What does this number say about the gain?",
        (
            Option(
                "Below it, all weights are about equal.",
                "At a gain of 2 the largest weight is 0.3 on average, where equal weights would be "
                "1/64 ≈ 0.016.",
            ),
            Option(
                "Around it, the weight gathers on few keys, gradually.",
                "The largest weight is 0.1 on average at gain 1, just under 0.5 at 2.9 and 0.8 at "
                "8. A sharp border exists only in the limit of endlessly many independent normal "
                "scores: a mark on the axis, and a heuristic.",
                right=True,
            ),
            Option(
                "Above it, the softmax is one-hot.",
                "At a gain of 4 the largest weight is 0.6 on average: far from even, but not "
                "one-hot.",
            ),
            Option(
                "Above it, training fails.",
                "It is a statement about random scores. What training does with them depends on "
                "the learning rate and on how the scores move, and was not looked at here.",
            ),
        ),
    ),
    Question(
        "half-true",
        "“Without 1/√d_k the softmax saturates, and its gradient vanishes.” What did you measure?",
        (
            Option(
                "At softmax's input the typical gradient is smaller; at the query it is larger.",
                "The median at softmax's input falls from 1.9 to 0.44. At the query it rises from "
                "1.9 to 5.0, because nothing divides by √d_k there any more, and the mean from 2.0 "
                "to 16.",
                right=True,
            ),
            Option(
                "At the query the typical gradient is smaller; at softmax's input it is larger.",
                "It is the other way round. What softmax passes back is still to be multiplied by "
                "the scale, 1/√128 or 1, before it reaches the query.",
            ),
            Option(
                "In every row next to no gradient is left.",
                "At the query that holds for about 23 % of the rows, if next to none means less "
                "than a tenth of the usual. About 29 % have more than ten times the usual.",
            ),
            Option(
                "Nothing vanishes: in most rows the gradient is larger everywhere.",
                "At softmax's input it is smaller in about 73 % of the rows. So far the sentence "
                "is true.",
            ),
        ),
    ),
    Question(
        "open",
        "A model without 1/√d_k often learns worse. What do this lesson's measurements say about "
        "the reason?",
        (
            Option(
                "Its queries and keys get no gradient.",
                "The gradient that reached the queries was larger on average, 16 instead of 2.0, "
                "and nearly absent in about 23 % of the rows only.",
            ),
            Option(
                "Its gradients are so large that numbers overflow.",
                "A mean of 16 instead of 2.0 overflows nothing, and an optimiser such as Adam "
                "divides a common factor out again.",
            ),
            Option(
                "Nearly one-hot weights cannot mix several values.",
                "True of such weights, but training could make the scores smaller again. Whether "
                "and why it fails to was not measured here.",
            ),
            Option(
                "They leave it open.",
                "They show how large the gradient is for random numbers, not whether it points "
                "anywhere useful. That it is mostly noise, so that one batch undoes what another "
                "did, is a hypothesis: lesson 4 measures it in training.",
                right=True,
            ),
        ),
    ),
)
