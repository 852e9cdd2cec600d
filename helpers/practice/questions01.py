"""Lesson 1's questions. Each wrong option answers the misconception that leads to it."""

from __future__ import annotations

from helpers.practice.questions import Option, Question, collection

PREDICTIONS = collection(
    Question(
        "1.1",
        "The query of “sat” is [1, 1, 1, 0]. The keys are [1, 0, 1, 0] for “the”, [0, 1, 0, 1] for "
        "“cat” and [1, 1, 0, 0] for “sat”. A score is the dot product of a query and a key. Which "
        "key does “sat” score highest with?",
        (
            Option(
                "the",
                "1·1 + 1·0 + 1·1 + 0·0 = 2 is the highest score, but another key reaches 2 as "
                "well.",
            ),
            Option(
                "cat",
                "1·0 + 1·1 + 1·0 + 0·1 = 1: this query and this key have one feature in common. "
                "The other two keys have two.",
            ),
            Option(
                "sat",
                "1·1 + 1·1 + 1·0 + 0·0 = 2, but a token has no claim to match itself best: its "
                "query and its key are different vectors, and another key reaches 2 as well.",
            ),
            Option(
                "the and sat equally",
                "Both score 2, and “cat” scores 1. Equal scores will become equal weights.",
                right=True,
            ),
        ),
    ),
    Question(
        "1.2",
        "The scores of “sat” are 2, 1 and 2. Before the softmax they are divided by √d_k = √4 = 2. "
        "What does the division do to the ranking of the keys, and to the distances between the "
        "scores?",
        (
            Option(
                "Ranking and distances both stay as they are.",
                "The distances would stay if the same number were subtracted from every score. "
                "Division shrinks them: 2 − 1 = 1 becomes 1 − 0.5 = 0.5.",
            ),
            Option(
                "The ranking stays; the distances halve.",
                "Dividing by a positive number keeps the order, and dividing by 2 halves every "
                "distance. The next step turns distances into weights, so the weights come closer "
                "together.",
                right=True,
            ),
            Option(
                "The ranking stays; the distances grow.",
                "That is what multiplying by a number above 1 does. Dividing by 2 makes them "
                "smaller.",
            ),
            Option(
                "The ranking may change.",
                "All scores are divided by the same positive number, so the larger of two stays "
                "the larger.",
            ),
        ),
    ),
    Question(
        "1.3",
        "We add 10 to every scaled score of a row, then take the softmax. What happens to that "
        "row's weights?",
        (
            Option(
                "They all become larger.",
                "They cannot: a row of weights sums to 1, before and after.",
            ),
            Option(
                "The largest weight grows at the expense of the others.",
                "Multiplying all scores by a number above 1 does that (unless they all tie). "
                "Adding leaves every difference between two scores as it was.",
            ),
            Option(
                "They come closer together.",
                "11 and 10 are closer in proportion than 1 and 0, but the softmax depends on "
                "differences: 11 − 10 = 1 − 0.",
            ),
            Option(
                "Nothing.",
                "exp(s + 10) = e¹⁰ · exp(s). The factor e¹⁰ is in the numerator and in every term "
                "of the sum below, and cancels. This is what allows subtracting the row's "
                "maximum, so that exp cannot overflow.",
                right=True,
            ),
        ),
    ),
    Question(
        "1.4",
        "Each row of the output is a mix of the rows of V. Can an entry of the output be larger "
        "than the largest entry in its column of V?",
        (
            Option(
                "Yes, if a weight is large enough.",
                "No weight is above 1, and a weight of 1 leaves 0 for all the others: the output "
                "is then exactly one row of V.",
            ),
            Option(
                "Yes, because several rows of V are added up.",
                "They are added after each is multiplied by its weight, and the weights sum to 1: "
                "that makes a mean, not a total.",
            ),
            Option(
                "No, because no weight is negative and they sum to 1.",
                "The output is a weighted mean of the rows of V, column by column, so each entry "
                "lies between the smallest and the largest entry of its column.",
                right=True,
            ),
            Option(
                "No, because the scores are divided by √d_k.",
                "It cannot, but not for this reason: whatever the scores are, the softmax turns "
                "them into weights that sum to 1.",
            ),
        ),
    ),
    Question(
        "1.5",
        "Three tokens, “the cat sat”, and a causal mask: no token may attend to a later one. What "
        "are the weights of the first token, “the”, over the keys of the, cat and sat?",
        (
            Option(
                "[1, 0, 0]",
                "It may attend to itself alone, and the weights of a row sum to 1. Whatever its "
                "score with itself, that weight is 1.",
                right=True,
            ),
            Option(
                "[1/3, 1/3, 1/3]",
                "Equal weights come from equal scores. “cat” and “sat” come later, so their "
                "scores are set to −∞ and their weights are 0.",
            ),
            Option(
                "[0, 0, 0]",
                "Only later tokens are masked. “the” still sees itself, and a softmax over what is "
                "left sums to 1.",
            ),
            Option(
                "The same as without a mask, but with the last two set to 0.",
                "Then the row would sum to less than 1. The mask is applied before the softmax, "
                "which shares out the whole 1 among the keys that are left.",
            ),
        ),
    ),
    Question(
        "1.6",
        "A model has 5 keys in its cache, the newest token's among them, and computes 1 query, "
        "for that newest token. PyTorch's "
        "`scaled_dot_product_attention` is called with `is_causal=True`, query length 1 and key "
        "length 5. Which keys does the query see?",
        (
            Option(
                "All 5, because they are not later than the query.",
                "That is what generation needs, but not what this call does: PyTorch does not "
                "know that the query is the newest token. Leave `is_causal` off here, as the one "
                "new query may see every key.",
            ),
            Option(
                "Only the newest key, key 4 (counted from 0).",
                "No causal mask hides earlier keys. Wherever the triangle is placed, a query that "
                "sees key 4 sees keys 0 to 3 as well.",
            ),
            Option(
                "Only key 0, the oldest.",
                "The mask is the lower triangle of a 1 × 5 table, aligned at the upper left: "
                "query 0 sees key 0. Nothing warns; the output is simply wrong for generation.",
                right=True,
            ),
            Option(
                "None: it raises an error because the lengths differ.",
                "The lengths may differ. The mask is then aligned at the upper left, without a "
                "word.",
            ),
        ),
    ),
)


QUIZ = collection(
    Question(
        "shapes",
        "q and k have the shape (B, H, T, D) = (2, 8, 10, 64): batch, heads, tokens, features of "
        "one head. What is the shape of the scores, q times k transposed in its last two axes?",
        (
            Option(
                "(2, 8, 10, 64)",
                "That is the shape of q itself. The product sums over the 64 features, so they "
                "are gone.",
            ),
            Option(
                "(2, 8, 64, 64)",
                "That would compare features with features, summed over the tokens. A score "
                "compares a query with a key.",
            ),
            Option(
                "(2, 10, 10)",
                "The heads stay apart: each makes scores of its own, and nothing sums over them.",
            ),
            Option(
                "(2, 8, 10, 10)",
                "For every sequence in the batch and every head, one score for each query and key.",
                right=True,
            ),
        ),
    ),
    Question(
        "sums",
        "The weights form a table with one row for each query and one column for each key. What "
        "sums to 1?",
        (
            Option(
                "Each row.",
                "A query shares out exactly 1 among the keys. That is what “softmax over the "
                "keys” means.",
                right=True,
            ),
            Option(
                "Each column.",
                "A column holds what one key receives from all queries. A popular key can receive "
                "up to 1 from each, an unpopular one almost nothing.",
            ),
            Option(
                "The whole table.",
                "Every row sums to 1, so the whole table sums to the number of queries.",
            ),
            Option(
                "Each row and each column.",
                "The rows do. Nothing makes the columns do so: if every query prefers the same "
                "key, that column sums to more than 1.",
            ),
        ),
    ),
    Question(
        "roles",
        "What are the queries, keys and values of a token for?",
        (
            Option(
                "Query and key decide how much attention flows; the value is what flows.",
                "The query of one token meets the keys of all. The scores set the weights, and the "
                "weights mix the values.",
                right=True,
            ),
            Option(
                "Query and value decide how much attention flows; the key is what flows.",
                "The values have no part in the scores: q · k alone makes the weights.",
            ),
            Option(
                "The key holds a token's position, the value its meaning, and the query looks up "
                "both.",
                "Neither is reserved for anything. All three are learned projections of the "
                "token's vector; what sets them apart is the place where they enter the formula.",
            ),
            Option(
                "They are three copies of the token's vector, so any two could be exchanged.",
                "Each has a learned projection of its own. Exchanging queries and keys transposes "
                "the scores; exchanging keys and values changes the weights as well as what they "
                "mix.",
            ),
        ),
    ),
    Question(
        "scale",
        "d_model is 512, split into 8 heads of 64 features. By what are the scores of a head "
        "divided?",
        (
            Option(
                "√512",
                "d_model is the width of the whole layer. The dot product in a head sums 64 "
                "terms, so the root of 64 is meant.",
            ),
            Option(
                "√64 = 8",
                "d_k is the length of the vectors in the dot product: here the 64 features of one "
                "head.",
                right=True,
            ),
            Option(
                "64",
                "64 is d_k itself. The divisor is its square root; why the root, is lesson 2.",
            ),
            Option(
                "8, because there are 8 heads",
                "The number is right by coincidence, the reason is not: with 4 heads of 128 "
                "features it would be √128, not 4.",
            ),
        ),
    ),
    Question(
        "heads",
        "Why 8 heads of 64 features rather than one head of 512?",
        (
            Option(
                "8 heads have 8 times as many parameters to learn with.",
                "The projections have the same size: 8 matrices from 512 to 64 hold as many "
                "numbers as one from 512 to 512.",
            ),
            Option(
                "The scores of all heads together take an eighth of the multiplications.",
                "They take the same number: T × T × 64 in each of 8 heads, or T × T × 512 in one.",
            ),
            Option(
                "A token can attend to different tokens for different purposes at the same time.",
                "A head has one row of weights for each query, so one head makes one mix of the "
                "values. 8 heads make 8 mixes, each with weights of its own.",
                right=True,
            ),
            Option(
                "Each head reads an eighth of the tokens, so the text can be 8 times as long.",
                "Every head sees all tokens. What is split among the heads is the features.",
            ),
        ),
    ),
    Question(
        "mask",
        "PyTorch's `scaled_dot_product_attention` gets a boolean `attn_mask`. What does True in "
        "row i, column j mean?",
        (
            Option(
                "Query i must not attend to key j.",
                "That is how `nn.MultiheadAttention` reads a boolean mask. This function reads it "
                "the other way round: a mask carried over unchanged shows what it should hide and "
                "hides the rest.",
            ),
            Option(
                "Query i may attend to key j.",
                "True takes part, False is masked. `nn.MultiheadAttention` reads a boolean mask "
                "the opposite way.",
                right=True,
            ),
            Option(
                "Key i may attend to query j.",
                "Rows are queries and columns are keys, as in the table of scores; and it is "
                "queries that attend.",
            ),
            Option(
                "1 is added to the score of query i and key j.",
                "Only a mask of floats is added to the scores. A boolean one chooses: where it is "
                "False the score becomes −∞.",
            ),
        ),
    ),
    Question(
        "order",
        "No mask and no position information: we exchange two rows of K, and the same two rows of "
        "V. What happens to the output?",
        (
            Option(
                "Nothing.",
                "Each query finds the same keys with the same values, in another order, and a sum "
                "does not depend on the order (rounding aside). This is why models add position "
                "information.",
                right=True,
            ),
            Option(
                "The same two rows of the output are exchanged.",
                "The rows of the output belong to the queries, which stay where they are. "
                "Exchanging two queries would do this.",
            ),
            Option(
                "The same two columns of the output are exchanged.",
                "The columns of the output belong to the features of V. It is the columns of the "
                "weights that are exchanged.",
            ),
            Option(
                "Every row of the output changes, because the weights do.",
                "The weights change places, and so do the values they belong to: the two meet "
                "again in the sum.",
            ),
        ),
    ),
)
