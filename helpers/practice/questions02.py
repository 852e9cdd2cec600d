"""Lesson 2's questions. Each wrong option answers the misconception that leads to it."""

from __future__ import annotations

from helpers.practice.questions import Option, Question, collection

PREDICTIONS = collection(
    Question(
        "2.1",
        "q and k have d_k entries each, all independent, with mean 0 and variance 1. d_k grows "
        "from 16 to 64. What happens to the standard deviation of q · k?",
        (
            Option(
                "It stays the same.",
                "The mean does: it is 0 for every d_k. But each product qᵢkᵢ brings a variance of "
                "1 of its own, and there are now 64 of them instead of 16.",
            ),
            Option(
                "It halves, from 1/4 to 1/8.",
                "That is the average of the products, q · k divided by d_k: averages settle down "
                "as they get longer. The score is their sum, and sums spread out.",
            ),
            Option(
                "It doubles, from 4 to 8.",
                "The variances of independent terms add up: 16 · 1 becomes 64 · 1. The standard "
                "deviation is the root of that. Four times the terms, twice the spread.",
                right=True,
            ),
            Option(
                "It grows fourfold, from 16 to 64.",
                "That is the variance. The terms have either sign and partly cancel, so the "
                "typical size of the sum, the standard deviation, grows only like the root.",
            ),
            Option(
                "It grows eightfold, to 8.",
                "8 = √64 is where it ends, but it does not start at 1: with 16 entries it was "
                "√16 = 4 already.",
            ),
        ),
    ),
    Question(
        "2.2",
        "For d_k = 1 a score is the product of two independent standard normal numbers. "
        "(√1 = 1, so dividing changes nothing.) What does its histogram look like?",
        (
            Option(
                "A normal curve: mean 0, standard deviation 1.",
                "The mean is 0 and the standard deviation 1, but the shape is another one: sums of "
                "independent normal numbers are normal, products are not.",
            ),
            Option(
                "A sharp peak at 0, and heavier tails than a normal curve.",
                "One small factor makes the product small, and two large ones make it very large. "
                "The mean is 0 and the variance 1, as promised, but the excess kurtosis is 6 "
                "(normal: 0), and |q · k| > 3 happens in 2 % of cases instead of 0.3 %. Only sums "
                "of many such products come close to a normal curve.",
                right=True,
            ),
            Option(
                "Two humps, near −1 and +1, the typical sizes of both factors.",
                "1 is the root of the mean square of a factor, not a size that most have. As soon "
                "as one of the two is small, so is the product: 40 % of them lie within ±0.25.",
            ),
            Option(
                "Lopsided: most of it is above 0.",
                "That is the square of one normal number. Here the two factors are independent, so "
                "their signs differ half of the time.",
            ),
        ),
    ),
    Question(
        "2.3",
        "The entries of both q and k are independent, with mean 0 and standard deviation σ = 2. "
        "d_k = 64. What is the variance of q · k?",
        (
            Option(
                "64",
                "That is d_k, the variance for σ = 1. Larger entries make larger products.",
            ),
            Option(
                "256",
                "This is σ² · d_k, which many texts state. It counts σ once: it would be right if "
                "only one of the two vectors had σ = 2. Each product has a factor from q and a "
                "factor from k.",
            ),
            Option(
                "512",
                "(σ² + σ²) · d_k adds the variances of q and k. That is the rule for a sum qᵢ + "
                "kᵢ; for a product of independent numbers with mean 0 they multiply.",
            ),
            Option(
                "1024",
                "One product has the variance E[qᵢ²] · E[kᵢ²] = σ² · σ² = 16, and 64 of them add "
                "up: σ⁴ · d_k. Doubling the entries of both multiplies every score by 4 and every "
                "variance by 16.",
                right=True,
            ),
            Option(
                "32",
                "That is the standard deviation, σ² · √d_k: 32² = 1024 is the variance.",
            ),
        ),
    ),
    Question(
        "2.4",
        "Every entry of q and k keeps the variance 1 but now has the mean μ = 1. d_k = 64. Over "
        "many queries and keys the variance of q · k rises from 64 to 192. Softmax compares the "
        "keys of one row, that is of one query. What is the variance within a row, on average?",
        (
            Option(
                "192: every row is a sample of the same scores.",
                "It is not: the scores of a row share their query. What the query alone decides, "
                "μ · (q₁ + … + q₆₄), is the same for all keys of the row, and softmax ignores it.",
            ),
            Option(
                "128",
                "With q fixed, only the keys vary: the variance is q₁² + … + q₆₄², and E[qᵢ²] = "
                "1 + μ² = 2. The other 64 is the variance between rows: μ · (q₁ + … + q₆₄) moves "
                "whole rows up and down.",
                right=True,
            ),
            Option(
                "96: half of it lies within rows, half between them.",
                "Only what the mean adds is split in half: 128 = 64 + 64. The 64 that was there "
                "before lies wholly within the rows.",
            ),
            Option(
                "64: a mean only shifts the row.",
                "The mean of the keys does that: it adds the same μ · (q₁ + … + q₆₄) to the whole "
                "row. The mean of the query does not: it multiplies k₁ + … + k₆₄, which differs "
                "from key to key.",
            ),
        ),
    ),
    Question(
        "2.5",
        "Now the mean is 0 again, but every key resembles its query: k = ρq + √(1 − ρ²) · noise "
        "with ρ = 0.5, for all keys alike. d_k = 64. The average score rises from 0 to "
        "ρ · d_k = 32. Does the softmax become sharper?",
        (
            Option(
                "Yes: e³² is an enormous number.",
                "It is, but every key has it. Softmax sees differences within a row, and a shift "
                "that all keys share cancels.",
            ),
            Option(
                "Yes: the variance over all scores rises too, from 64 to 80.",
                "It does, but the rise lies between rows: ρ · ‖q‖² differs from query to query, "
                "and softmax never compares two queries.",
            ),
            Option(
                "No, it stays as it is: a shift has no effect.",
                "The shift has none. But the keys' own part is now only √(1 − ρ²) of what it was, "
                "and that part is what makes the keys of a row differ.",
            ),
            Option(
                "No, it becomes a little flatter.",
                "ρ · ‖q‖² is shared by the whole row and cancels. What remains has the variance "
                "(1 − ρ²) · d_k = 48 instead of 64. It takes correlations that differ between "
                "keys to make attention sharper.",
                right=True,
            ),
        ),
    ),
    Question(
        "2.6",
        "d_k = 256, and a query meets 64 random keys (independent entries, mean 0, variance 1). "
        "The scores are divided by d_k instead of √d_k. What do the weights look like?",
        (
            Option(
                "Nearly uniform: all close to 1/64.",
                "The scores now have the standard deviation √256/256 = 1/16. The largest of the "
                "64 weights is about 0.018 where 1/64 is 0.016, and the entropy is 99.95 % of its "
                "maximum: the query hardly chooses.",
                right=True,
            ),
            Option(
                "One key takes nearly everything.",
                "That is what happens without any divisor: scores with a standard deviation of 16. "
                "Dividing by 256 leaves 1/16.",
            ),
            Option(
                "Much as with √d_k: either one brings the scores down to size.",
                "√256 = 16 leaves a standard deviation of 1, 256 leaves 1/16. The ratio of two "
                "weights is the exponential of a difference, so a factor of 16 matters greatly.",
            ),
            Option(
                "Exactly uniform, whatever q and k are.",
                "No finite divisor does that. The scores still differ, by 1/16 or so, and their "
                "order is what it was. Larger q and k would bring the differences back.",
            ),
        ),
    ),
    Question(
        "2.7",
        "A layer has d_model = 768 and 12 heads. By what are the scores of each head divided?",
        (
            Option(
                "√768 ≈ 27.7",
                "A head's dot product sums 768/12 = 64 terms. √768 is too large by √12 ≈ 3.46, "
                "which leaves scores with a standard deviation of 0.29 instead of 1: every head is "
                "too flat.",
            ),
            Option(
                "64",
                "64 is the variance of the dot product of 64 terms. Dividing by it leaves a "
                "standard deviation of 1/8; the root is needed.",
            ),
            Option(
                "√64 = 8",
                "d_k is the number of terms in the sum, here d_head = 768/12 = 64. How wide the "
                "whole layer is does not matter.",
                right=True,
            ),
            Option(
                "√12 ≈ 3.46",
                "12 is the number of heads, and each has scores of its own: nothing sums over the "
                "heads.",
            ),
        ),
    ),
    Question(
        "2.8",
        "Spot the error. Given: q and k have d entries each; all 2d entries are independent, with "
        "mean μ and variance σ². Claim: q · k has the variance σ⁴ · d. Exactly one line of this "
        "proof does not follow from what is given and the lines before it. Which one?",
        (
            Option(
                "Line 1",
                "This is what a dot product is, whatever the entries are.",
            ),
            Option(
                "Line 2",
                "This holds: the expectation of a product of independent numbers is the product of "
                "their expectations. Neither of those has to be 0.",
            ),
            Option(
                "Line 3",
                "Independence multiplies expectations, not variances. Var(qᵢkᵢ) = E[qᵢ²] · E[kᵢ²] "
                "− μ⁴ = (σ² + μ²)² − μ⁴ = σ⁴ + 2σ²μ². The claim is right where μ = 0, and that is "
                "not given.",
                right=True,
            ),
            Option(
                "Line 4",
                "This holds: the terms share no entry, and functions of separate independent "
                "numbers are independent. A mean other than 0 does not tie them together.",
            ),
            Option(
                "Line 5",
                "This rule is right, and line 4 gives what it needs. The number that is put into "
                "it comes from an earlier line.",
            ),
        ),
        lines=(
            "q · k = q₁k₁ + q₂k₂ + … + q_d k_d, a sum of d terms.",
            "qᵢ and kᵢ are independent, so E[qᵢkᵢ] = E[qᵢ] · E[kᵢ] = μ².",
            "qᵢ and kᵢ are independent, so Var(qᵢkᵢ) = Var(qᵢ) · Var(kᵢ) = σ⁴.",
            "Two different terms share no entry, so they are independent.",
            "The variance of a sum of independent terms is the sum of their variances. There are "
            "d terms with the variance of line 3, so Var(q · k) = σ⁴ · d. ∎",
        ),
    ),
)


QUIZ = collection(
    Question(
        "why-variance",
        "Why does it matter to the softmax how widely the scores of a row spread?",
        (
            Option(
                "Because exp overflows when scores are large.",
                "Subtracting the row's maximum first prevents that, at any spread. The weights "
                "would be just as sharp.",
            ),
            Option(
                "Because softmax needs normally distributed inputs.",
                "It takes any numbers. Nothing in it asks for a distribution.",
            ),
            Option(
                "Because the weights no longer sum to 1 when the spread is large.",
                "They always do: each exponential is divided by the sum of all of them.",
            ),
            Option(
                "Because the ratio of two weights is exp of the difference of their scores.",
                "A difference of 1 is a ratio of 2.7, a difference of 8 a ratio of nearly 3000. So "
                "the spread decides whether a row compares its keys or picks one of them.",
                right=True,
            ),
        ),
    ),
    Question(
        "why-not-d_k",
        "An interviewer asks: “Why the root? Why not divide by d_k itself?” What is the best "
        "answer, for q and k with independent entries of mean 0 and variance 1?",
        (
            Option(
                "Because d_k is the mean of the scores, and it is the spread that counts.",
                "The mean of the scores is 0. d_k is their variance.",
            ),
            Option(
                "Because the standard deviation grows like √d_k: dividing by d_k leaves 1/√d_k.",
                "The spread of the scores would shrink as heads get wider, and the weights would "
                "approach uniform ones. With √d_k it is 1 at every width.",
                right=True,
            ),
            Option(
                "Because dividing by d_k would change which key wins.",
                "Any positive divisor keeps the order of the keys.",
            ),
            Option(
                "Because the gradient cannot flow through a division by d_k.",
                "It flows through a division by any constant, multiplied by 1/d_k on the way.",
            ),
        ),
    ),
    Question(
        "which-d",
        "Grouped queries: d_model = 4096, 32 query heads of 128 features, 8 key heads of 128 "
        "features, each shared by 4 query heads. By what are the scores divided?",
        (
            Option(
                "√128 ≈ 11.3",
                "A score is one query of 128 features times one key of 128 features. How many "
                "heads share that key changes nothing about the sum.",
                right=True,
            ),
            Option(
                "√1024 = 32, because all keys together have 8 · 128 features",
                "A query meets the key of one head, 128 features. No sum runs over the key heads.",
            ),
            Option(
                "√512 ≈ 22.6, because a key meets 4 queries of 128 features",
                "It meets them one by one and makes 4 separate scores, each a sum of 128 products.",
            ),
            Option(
                "√4096 = 64",
                "That is d_model. The projections cut it down to 128 features a head before any "
                "dot product is taken, so 64 is too large by √32.",
            ),
        ),
    ),
    Question(
        "sample-size",
        "A post takes 2 random queries and 2 random keys with d_k = 4 standard normal entries, "
        "finds that the 4 scores have the variance 1.6, and concludes: “The theory says 4, so it "
        "does not hold in practice.” What is wrong?",
        (
            Option(
                "Nothing: the theory holds for large d_k only, and 4 is small.",
                "The variance is exactly d_k at every d_k, even at 1. What needs a large d_k is "
                "the shape: only then are the scores nearly normal.",
            ),
            Option(
                "It should have divided by n − 1 = 3 instead of n = 4.",
                "That would turn 1.6 into 2.1 at best. It makes the estimate right on average over "
                "many such posts, and leaves this one about as far off.",
            ),
            Option(
                "Four scores say next to nothing about a variance.",
                "Repeat the experiment: more than a third of the results are 1.6 or less, a few "
                "exceed 12, and their average (with n − 1) is 4. With 10,000 independent pairs the "
                "variance comes out between 3.8 and 4.2 nearly always.",
                right=True,
            ),
            Option(
                "It forgot to divide the scores by √d_k = 2.",
                "Then theory would say 1 and the measurement 0.4: both shrink alike, and they "
                "disagree as much as before.",
            ),
        ),
    ),
    Question(
        "no-scale",
        "T5 does not divide its scores by anything, and it trains. How does it get away with that?",
        (
            Option(
                "Its W_Q starts smaller by the factor √d_k, so the scores start with spread 1.",
                "The division is folded into the initialisation: q starts with the variance 1/d_k, "
                "k with 1, and a sum of d_k products with 1. Training is free to leave that point.",
                right=True,
            ),
            Option(
                "It scales q and k to length 1 before it multiplies them.",
                "Other models do (query-key normalisation), T5 does not.",
            ),
            Option(
                "The position bias that it adds to the scores cancels their growth.",
                "The bias depends on the distance of two tokens only. It cannot undo a spread that "
                "comes from their q and k.",
            ),
            Option(
                "Its heads are so narrow that √d_k is about 1.",
                "The heads of T5-base have 64 features, so √d_k is 8.",
            ),
        ),
    ),
    Question(
        "mup",
        "The parametrisation muP divides by d_k. Does it contradict this lesson?",
        (
            Option(
                "Yes. One of the two must be wrong.",
                "They answer different questions: √d_k fits q and k that are independent, as at "
                "the start. muP asks how scores grow with width once training has related them.",
            ),
            Option(
                "No. In muP the entries of q and k are so large that the variance of a score is "
                "d_k².",
                "The entries keep a size of about 1 at every width. It is their relation to each "
                "other that changes.",
            ),
            Option(
                "No. muP wants nearly uniform weights, at the start and later.",
                "The weights are nearly uniform at the start in wide heads, but as a side effect. "
                "The aim is that the scores of a trained model keep their size as the width grows.",
            ),
            Option(
                "No. In training some keys come to correlate with a query, and their scores get a "
                "mean of ρ · d_k.",
                "The terms of such a sum no longer cancel: they add up like d_k, not like √d_k. "
                "Since only some keys do this, it is no shared shift, and the softmax sees it.",
                right=True,
            ),
        ),
    ),
    Question(
        "fold",
        "Somebody removes the division and multiplies W_Q by 1/√d_k at the start instead. "
        "d_k = 64, and the learning rate stays the same. What changes?",
        (
            Option(
                "Nothing: it is the same function, so it trains the same way.",
                "It is the same function at the start. But W_Q is now 8 times smaller and its "
                "gradient 8 times larger, so the same learning rate moves it much further in "
                "proportion.",
            ),
            Option(
                "The output, at once: softmax is not linear.",
                "The scores that enter the softmax are the same numbers: (xW_Q/8) · k is "
                "(xW_Q · k)/8.",
            ),
            Option(
                "The output stays the same at the start; the training does not.",
                "A step on the small W_Q counts 8 times in terms of the old one. Plain SGD also "
                "sees a gradient 8 times as large: its step counts 64 times. Adam ignores the size "
                "of the gradient: 8 times.",
                right=True,
            ),
            Option(
                "It works only if W_K is multiplied by 1/√d_k too.",
                "Then the scores would be divided by d_k. One of the two is enough, or both by "
                "the fourth root of 1/d_k.",
            ),
        ),
    ),
    Question(
        "init",
        "GPT-2 small: d_model = 768, heads of 64 features, inputs from a LayerNorm (root mean "
        "square 1), weights drawn from N(0, 0.02²). What is the standard deviation of the scores "
        "at the start, after the division by √64?",
        (
            Option(
                "1",
                "That needs q and k with variance 1. An entry of q is a sum of 768 terms, each "
                "with the variance 0.02²: 0.31 in all.",
            ),
            Option(
                "About 0.31",
                "Entries of q and k have the variance 768 · 0.02² = 0.31. The score, a sum of 64 "
                "products, has the standard deviation √64 · 0.31 = 2.46, and the division by 8 "
                "leaves 0.31: attention starts nearly uniform, well away from saturation.",
                right=True,
            ),
            Option(
                "About 2.46",
                "√64 · 768 · 0.02² = 2.46 is the standard deviation before the division.",
            ),
            Option(
                "About 0.55",
                "√768 · 0.02 = 0.55 is the standard deviation of one entry of q. A score has a "
                "factor from q and one from k: 0.55².",
            ),
        ),
    ),
)
