"""Lesson 6's questions: predictions about mistakes that a whiteboard hides, and the quiz, in which
an interviewer asks and four candidates answer.

Numbers follow from the sizes that a question gives, or were measured in the lesson it names.
Sources: Ainslie et al. 2023, arXiv:2305.13245 (grouped queries); Raffel et al. 2020,
arXiv:1910.10683 (T5); Yang et al. 2022, arXiv:2203.03466 (muP); Henry et al. 2020,
arXiv:2010.04245 (QK-norm); Dao et al. 2022, arXiv:2205.14135 (FlashAttention); Llama team 2024,
arXiv:2407.21783 (sizes of Llama 3.1).
"""

from __future__ import annotations

from helpers.practice.questions import Option, Question, collection

PREDICTIONS = collection(
    Question(
        "6.1",
        "A kernel divides the scores by the constant 8, since all heads had 64 features. A new "
        "model has heads of 128. Entries of q and k are independent, with mean 0 and variance 1. "
        "What is the standard deviation of its scaled scores?",
        (
            Option(
                "1, as before: the scores are divided.",
                "8 is √64. The sum now has 128 products, so its standard deviation is √128, and "
                "√128 / 8 is not 1.",
            ),
            Option(
                "About 1.4.",
                "√128 / 8 = √2. Small enough that nothing looks broken, which is why a test at "
                "d_k = 64 alone, where the constant is right, is no test of the scale.",
                right=True,
            ),
            Option(
                "2: twice the features, twice the spread.",
                "Twice the variance. The standard deviation grows by the root of that.",
            ),
            Option(
                "About 11.3.",
                "That is √128, the scores before the division by 8.",
            ),
        ),
    ),
    Question(
        "6.2",
        "32 query heads share 8 KV heads, four neighbours each. Somebody repeats the KV heads with "
        "`np.tile` where `np.repeat` is right. How many of the 32 query heads meet a wrong KV "
        "head?",
        (
            Option(
                "None: each KV head is still used four times.",
                "Used as often, but by others: query head 1 needs KV head 0 and gets KV head 1.",
            ),
            Option(
                "16: every second one.",
                "Tiled, query head h gets KV head h mod 8, and it needs ⌊h/4⌋. These two agree "
                "less often than every second time.",
            ),
            Option(
                "All 32.",
                "Nearly. Head 0 needs KV head 0 and gets it, and there are three more such heads.",
            ),
            Option(
                "28.",
                "⌊h/4⌋ and h mod 8 agree for h = 0, 10, 21 and 31 alone. With as many KV heads as "
                "query heads, or with one, the two orders are the same: neither is a test.",
                right=True,
            ),
        ),
    ),
    Question(
        "6.3",
        "You have written attention on the whiteboard and try it with one query and one key. Which "
        "of these mistakes does that show?",
        (
            Option(
                "The keys stand where the values should, `weights @ k`.",
                "The one weight is 1, whatever its score, so the output is the one row that is "
                "mixed: a row of k where v was asked for.",
                right=True,
            ),
            Option(
                "The scale is missing.",
                "The softmax of a single score is 1 at any scale.",
            ),
            Option(
                "The softmax runs over the queries.",
                "There is one query too, so that sum has one term as well, and the weight is 1.",
            ),
            Option(
                "The scores are divided by d_k.",
                "Then the one score is smaller, and its softmax is still 1. It takes a second key.",
            ),
        ),
    ),
)

QUIZ = collection(
    Question(
        "why-scale",
        "“Why are the scores divided by √d_k?” Which answer would you give?",
        (
            Option(
                "“It keeps the numbers small, so that training is stable.”",
                "A division by 100 would keep them small too. Why this number, and what goes "
                "wrong without it, is what was asked.",
            ),
            Option(
                "“It normalises the weights, so that each row sums to 1.”",
                "The softmax does that, with any divisor.",
            ),
            Option(
                "“A score is a sum of d_k products. For independent entries of mean 0 and variance "
                "1 its standard deviation is √d_k. Divided by that it is 1 for every head size, "
                "and the softmax starts neither nearly one-hot nor nearly uniform.”",
                "The sum, its spread, what the softmax makes of it, and under which assumptions. "
                "A follow-up about trained models is then welcome: there the entries are no longer "
                "independent.",
                right=True,
            ),
            Option(
                "“Without it the scores have a standard deviation of √d_k. So the softmax "
                "saturates, its Jacobian is zero in every row, no gradient arrives at W_Q and W_K, "
                "and these two matrices stay where they were at the start, for the whole run.”",
                "The first half is right. But lesson 3 measured at d_k = 128 that the gradient at "
                "q becomes larger on average and very uneven: about a quarter of the rows get "
                "next to none. And in lesson 4's failing run the scores' spread grew from 11 to "
                "over 100: W_Q and W_K did move.",
            ),
        ),
    ),
    Question(
        "ever-different",
        "“Is it always 1/√d_k?” Which answer would you give?",
        (
            Option(
                "“Yes. Anything else breaks the variance argument.”",
                "T5 was trained without a scale, and others use another. The argument is about "
                "independent entries, as at the start of training.",
            ),
            Option(
                "“No. muP divides by d_k, as trained queries and keys correlate; T5 has no scale "
                "and a W_Q that starts smaller; with QK-norm the factor may be learned. A kernel "
                "must get the model's own.”",
                "Three cases with their reasons, and what follows for whoever writes or calls a "
                "kernel.",
                right=True,
            ),
            Option(
                "“No, it is a hyperparameter like others. One tries a few values.”",
                "It can be tuned, but there is a reason for each of the values in use, and those "
                "were asked for.",
            ),
            Option(
                "“It hardly matters. W_Q and W_K can learn any factor, so a model without the "
                "scale, or with the scale folded into W_Q, starts elsewhere at most, and after "
                "some more steps it is where the others are.”",
                "They can represent any factor. Lesson 4 trained a model with the factor folded "
                "into W_Q: the same function at the start, and the run failed under AdamW.",
            ),
        ),
    ),
    Question(
        "flash",
        "“What does FlashAttention change?” Which answer would you give?",
        (
            Option(
                "“It makes attention linear in the sequence length.”",
                "Its memory, yes. Every query still meets every key: time and operations grow with "
                "T².",
            ),
            Option(
                "“It approximates the softmax: each block of keys gets a softmax of its own, and "
                "the blocks' outputs are averaged. That saves the T × T matrix, and the error is "
                "small enough in practice, above all in half precision.”",
                "It is exact up to rounding: when a block brings a larger maximum, what was summed "
                "before is rescaled.",
            ),
            Option(
                "“It is a fused CUDA kernel that uses the GPU better.”",
                "True of many kernels. What is fused, and what no longer has to be done?",
            ),
            Option(
                "“Not the result. Tiles and an online softmax keep the T × T matrix out of main "
                "memory: extra memory grows with T, far fewer bytes move, and the backward pass "
                "computes the scores again.”",
                "What stays, what is saved, by which idea, and at which price.",
                right=True,
            ),
        ),
    ),
    Question(
        "kv-cache",
        "“What does a KV cache save, and what does it cost?” Which answer would you give?",
        (
            Option(
                "“Keys and values of earlier tokens are not computed again. It costs memory, 2 · "
                "layers · KV heads · d_head numbers a token, and each new token still reads all "
                "of it.”",
                "For Llama 3.1 8B, with 2 bytes a number, 2 · 32 · 8 · 128 · 2 = 131,072 bytes a "
                "token. How the reading limits the speed of decoding is the follow-up.",
                right=True,
            ),
            Option(
                "“It stores the attention weights, so that they need not be computed again.”",
                "The new query has weights of its own, over all keys. No old weight is of use.",
            ),
            Option(
                "“It makes the cost of a new token independent of the length of the text.”",
                "The projections of earlier tokens are saved. The new query still meets every key: "
                "that part grows with the length.",
            ),
            Option(
                "“It stores Q, K and V of all earlier tokens, so that nothing about them is "
                "computed again. It costs memory, 3 · layers · heads · d_head numbers a token, and "
                "each new token needs no more than its own projections.”",
                "An earlier token's query has been used once, for that token, and is never needed "
                "again. So it is 2, not 3, KV heads count, and the cache must be read.",
            ),
        ),
    ),
    Question(
        "grouped-queries",
        "“Why grouped-query attention?” Which answer would you give?",
        (
            Option(
                "“There are fewer scores to compute.”",
                "As many as before: each query head has its own T × T table, whoever shares its "
                "keys.",
            ),
            Option(
                "“The model has fewer parameters: W_K and W_V shrink by the factor heads / KV "
                "heads.”",
                "True, and beside the point. In Llama 3.1 8B it saves 0.8 billion numbers, 9 % of "
                "what the model would have. The reason is the cache, which must be kept for every "
                "token and read for every new one.",
            ),
            Option(
                "“Heads in a group attend to the same places anyway.”",
                "They share keys and values, but each has a query of its own, so the weights "
                "differ.",
            ),
            Option(
                "“The cache shrinks by the factor heads / KV heads, and with it what each new "
                "token must read. Query heads keep weights of their own, and quality suffers less "
                "than with a single KV head.”",
                "32 query heads on 8 KV heads: a quarter of the cache. One KV head for all, "
                "multi-query attention, is the far end of the same idea.",
                right=True,
            ),
        ),
    ),
    Question(
        "testing",
        "“How would you test an attention kernel?” Which answer would you give?",
        (
            Option(
                "“I check that the weights of each row sum to 1.”",
                "They do so with a wrong scale, with the wrong mask, and with the keys of another "
                "head.",
            ),
            Option(
                "“I train a small model with it and look at the loss.”",
                "Without the scale, lesson 4's loss fell nearly as fast as with it for the first "
                "fifty steps. A loss is slow to tell, and does not say where.",
            ),
            Option(
                "“Against a reference in higher precision, on random inputs: lengths that are no "
                "multiple of a block, T_q ≠ T_k, a d_k other than 64, causal or not, large scores, "
                "gradients. The tolerance comes from the error of plain attention in the same "
                "dtype.”",
                "Each of the sizes is there because of a mistake that other sizes hide, and the "
                "tolerance follows what the dtype can do.",
                right=True,
            ),
            Option(
                "“I compare with PyTorch's attention by `torch.equal`, on some hundred random "
                "inputs: all lengths and head sizes, causal or not, large and small scores, and "
                "the gradients too. Where a single bit differs, the kernel is wrong, and so I need "
                "no tolerance that somebody would have to choose.”",
                "Good inputs, but two right kernels add in different orders and round differently: "
                "this fails right ones.",
            ),
        ),
    ),
    Question(
        "stalled",
        "“A run's loss falls, then flattens far above that of an older run. A kernel has been "
        "replaced. What do you do first?” Which answer would you give?",
        (
            Option(
                "“A smaller learning rate and a longer warm-up, from the last good checkpoint, a "
                "few values of each. Such plateaus come from steps that were too large early on, "
                "and the new kernel is at most a little less precise than the old one.”",
                "That may hide the fault: at lesson 4's smaller rate a missing scale costs less, "
                "and it is still missing. That the kernel is right was assumed, not tested.",
            ),
            Option(
                "“Compare the two kernels on random inputs, and look at step 0: the spread of each "
                "head's scores and its entropy, against what head size and initialisation predict. "
                "Neither needs training.”",
                "What changed is tested first, in minutes, and the second check finds causes "
                "outside the kernel too. A spread of √d_head where 1 was expected names the fault.",
                right=True,
            ),
            Option(
                "“Gradients vanish, so I would initialise with larger weights.”",
                "A guess, not a measurement, and larger weights make scores spread further.",
            ),
            Option(
                "“Train longer. Plateaus pass.”",
                "Perhaps, and each day of it costs. A comparison with a reference takes a minute.",
            ),
        ),
    ),
)
