"""Lesson 5's questions: what the reader is asked before looking, and the quiz at the end.

The predictions stand in the order of the lesson. Each is answered by the cells that follow it; the
feedback gives the reasoning that leads to it.

Numbers follow from the sizes that a question gives, or are measured by `helpers.memory_wall` and
counted by `helpers.flash.memory_traffic`. Sources: Dao et al. 2022, arXiv:2205.14135; Dao 2023,
arXiv:2307.08691.
"""

from __future__ import annotations

from helpers.practice.questions import Option, Question, collection

PREDICTIONS = collection(
    Question(
        "5.1",
        "Llama 3.1 8B: 32 layers with 32 heads each, a context of 131,072 tokens, 2 bytes a number "
        "(so the weights take 16 GB). How much would the score matrices of one layer take, for one "
        "sequence of full length?",
        (
            Option(
                "About 34 GB.",
                "That is one head: 131,072² · 2 bytes. A layer has 32 of them.",
            ),
            Option(
                "About 1.1 GB.",
                "That is Q with all its heads, 131,072 · 32 · 128 · 2 bytes. The scores have T · T "
                "entries a head, not T · d.",
            ),
            Option(
                "About 1.1 TB.",
                "32 · 131,072² · 2 bytes = 2⁵ · 2³⁴ · 2 = 2⁴⁰ bytes. One layer's scores take "
                "nearly 70 times as much as all weights of the model.",
                right=True,
            ),
            Option(
                "About 35 TB.",
                "That is all 32 layers. They run one after the other, so only one layer's scores "
                "have to be there at a time, unless you train.",
            ),
        ),
    ),
    Question(
        "5.2",
        "The sequence becomes twice as long, from T = 2,048 to 4,096. How do peak memory and time "
        "of plain attention grow, and how those of the fused kernel?",
        (
            Option(
                "Memory: plain ×4, fused at most ×2. Time: both about ×4.",
                "The fused kernel holds no T × T matrix, so beyond q, k, v there is the output, "
                "which grows with T. But every query still meets every key: the products grow "
                "with T² in both.",
                right=True,
            ),
            Option(
                "Memory: plain ×4, fused at most ×2. Time: plain ×4, fused ×2.",
                "Half right. The fused kernel saves memory and traffic, not products: 2 · T² · d "
                "of "
                "them are computed, twice as many queries with twice as many keys.",
            ),
            Option(
                "Memory and time ×4, for both.",
                "That is so for the time. The memory of the fused kernel does not hold the scores: "
                "a tile of fixed size is all that there is of them at any time.",
            ),
            Option(
                "Memory and time ×2, for both.",
                "The plain one stores T × T scores for each head. With T twice as large there are "
                "four times as many.",
            ),
        ),
    ),
    Question(
        "5.3",
        "Scores arrive in blocks. So far the largest was m = 1, l = Σ exp(score − 1), and o is the "
        "same sum with the rows of V. The next block brings a score of 3. What must be done to l "
        "and o before the block is added?",
        (
            Option(
                "Nothing: the new block is computed with exp(score − 3), and then added.",
                "Then the old terms refer to 1 and the new ones to 3, and the old ones count e² = "
                "7.4 times too much.",
            ),
            Option(
                "The earlier scores must be read again and their exponentials computed anew.",
                "That would be the second pass which this algorithm saves. All old terms have to "
                "change by one and the same factor, so their sums do.",
            ),
            Option(
                "Only l is multiplied by exp(1 − 3); o is an output and stays.",
                "o is a sum of the same exponentials. If only l shrinks, the old values count 7.4 "
                "times too much.",
            ),
            Option(
                "Both are multiplied by exp(1 − 3) = 0.135.",
                "exp(score − 1) · exp(1 − 3) = exp(score − 3). One factor for all terms, hence for "
                "both sums.",
                right=True,
            ),
        ),
    ),
    Question(
        "5.4",
        "Somebody leaves that factor out. When is the result wrong?",
        (
            Option(
                "Always: an online softmax without rescaling is no softmax.",
                "If the maximum does not grow after the first block, every factor is e⁰ = 1, and "
                "leaving it out changes nothing.",
            ),
            Option(
                "Whenever a later block holds a score larger than all before.",
                "What was summed before that block then counts too much, by exp(m_new − m_old). If "
                "the largest score comes in the first block the result is right, by luck: a test "
                "with few keys, or with the largest first, does not see it.",
                right=True,
            ),
            Option(
                "Only if a score is so large that its exponential overflows.",
                "The exponentials are still of scores minus a maximum and do not overflow. The "
                "result is finite, looks like an output, and is wrong.",
            ),
            Option(
                "Never: l and o are both too large by the same factor, which cancels in o / l.",
                "The factor would cancel if all terms had it. Only the old ones do, not the new "
                "block's.",
            ),
        ),
    ),
    Question(
        "5.5",
        "T = 4,096 and d = 64, one head. The GPU gets twice as much fast memory. What happens to "
        "the bytes that tiled and plain attention move?",
        (
            Option(
                "Tiled: about half. Plain: the same.",
                "Twice the fast memory holds blocks of twice as many queries, so all keys and "
                "values pass by half as often. Plain attention stores whole matrices and gains "
                "nothing.",
                right=True,
            ),
            Option(
                "Both: about half.",
                "Plain attention writes S, reads it, writes P and reads it, 4 T² numbers. No fast "
                "memory that is smaller than a T × T matrix changes that.",
            ),
            Option(
                "Tiled: about a quarter. Plain: the same.",
                "A quarter would need both: half as many passes, and half as much in each. But "
                "all keys and values are read in every pass, however long the blocks are.",
            ),
            Option(
                "Both stay: the same numbers are computed.",
                "The same products, yes. How often K and V are read for them depends on how many "
                "queries share a reading.",
            ),
        ),
    ),
    Question(
        "5.6",
        "The backward pass needs the weights P = softmax(S). The fused forward pass threw them "
        "away. What must it have kept, besides q, k and v?",
        (
            Option(
                "P, in half precision.",
                "That is still T × T numbers a head, the matrix that was to be avoided.",
            ),
            Option(
                "Nothing: q, k and v say everything.",
                "In principle they do. But then the backward would have to go over all keys once "
                "for m and l alone, before it could make the first tile of P.",
            ),
            Option(
                "The output and the lse, one number for each query.",
                "P_ij = exp(S_ij − lse_i), tile by tile, from q and k. The output gives the row "
                "sums of P ∘ dP as dO · O. Both grow with T, not with T².",
                right=True,
            ),
            Option(
                "m of every tile, to undo the rescaling.",
                "The rescaling need not be undone: only the final m and l of a row matter, and of "
                "them m + ln l, the lse.",
            ),
        ),
    ),
    Question(
        "5.7",
        "A language model writes: one new query, T_q = 1, against a cache of 1,000 keys. Somebody "
        "passes is_causal=True to F.scaled_dot_product_attention. What does the query see?",
        (
            Option(
                "All 1,000 keys: it is the last token.",
                "It should. But torch aligns the mask at the upper left: row 0 is taken for the "
                "first position of the sequence. Only an alignment at the lower right would do "
                "that.",
            ),
            Option(
                "Nothing: its output is nan.",
                "Key 0 is never hidden in the upper-left alignment: query i sees the keys 0 … i.",
            ),
            Option(
                "Key 999, its own, alone.",
                "No causal mask hides the past. Neither alignment would leave a query just its own "
                "key, unless that is key 0.",
            ),
            Option(
                "Key 0 alone.",
                "Query i sees the keys 0 … i, and this is query 0. No error, no warning. A single "
                "new query may see the whole cache, so no mask is needed: is_causal=False.",
                right=True,
            ),
        ),
    ),
    Question(
        "5.8",
        "Plain and FlashAttention get the same float16 inputs. How far are their outputs from what "
        "float64 gives?",
        (
            Option(
                "Plain is exact up to rounding; FlashAttention approximates, with a larger error.",
                "Nothing is left out or estimated in FlashAttention: the same exponentials are "
                "summed in another order. The title of the paper says “exact attention”.",
            ),
            Option(
                "They agree with each other to the last bit.",
                "Sums in another order round differently. That is no approximation: float64 with "
                "another order of the keys differs in the last bits too.",
            ),
            Option(
                "Both round. FlashAttention's error is no larger than that of float16 written out.",
                "The mathematics is the same. Attention written out in float16 rounds S to float16 "
                "on its way through memory; the fused kernel keeps the scores and sums of a tile "
                "in float32. A plain one that does so inside is as near.",
                right=True,
            ),
        ),
    ),
)

QUIZ = collection(
    Question(
        "two-halves",
        "Two machines have attended to one half of the keys each, and divided their outputs by "
        "their own sums. What must they send, besides the outputs, so that these can be merged?",
        (
            Option(
                "All their scores.",
                "That would be T numbers a query. What each half weighs is one number: the sum of "
                "its exponentials.",
            ),
            Option(
                "One number a query, the lse.",
                "exp(lse) is the sum of exp(score) over that half. The merged output is the mean "
                "of the two, weighted by exp(lse_a) and exp(lse_b).",
                right=True,
            ),
            Option(
                "Nothing, if both halves have equally many keys.",
                "A half with larger scores weighs more, however many keys it has.",
            ),
            Option(
                "The largest score of each half.",
                "m alone does not say how many scores are near it. m and l do, and m + ln l is "
                "all of it that matters.",
            ),
        ),
    ),
    Question(
        "ring",
        "Ring attention spreads a sequence over eight GPUs: each keeps its queries, and blocks of "
        "keys and values go round. What is new in its mathematics?",
        (
            Option(
                "Nothing: a block that arrives is merged as a tile is.",
                "Blocks of keys may come in any order and from anywhere. With causal attention a "
                "GPU just skips the blocks that come after its queries.",
                right=True,
            ),
            Option(
                "The softmax is approximated, since no GPU sees a whole row of scores.",
                "FlashAttention never holds a whole row at once either. m, l and o are enough for "
                "an exact "
                "result.",
            ),
            Option(
                "The largest score must be agreed on by all GPUs first.",
                "Each keeps the maximum that it has seen so far and rescales when it grows. There "
                "is no round before the first.",
            ),
            Option(
                "The lse of all GPUs have to be sorted before they are merged.",
                "The merge gives the same in any order, up to rounding.",
            ),
        ),
    ),
    Question(
        "split-keys",
        "Decoding, 32 heads: one new query, one sequence, a cache of 100,000 keys. A kernel that "
        "gives each "
        "block of queries of a head to one processor leaves most of a GPU idle. What helps?",
        (
            Option(
                "Smaller blocks of queries.",
                "There is one query. It cannot be cut further, so a head still has one processor.",
            ),
            Option(
                "A causal mask, which skips half of the tiles.",
                "The newest query sees every key, so there is nothing to skip.",
            ),
            Option(
                "A larger block of queries, filled up with zeros.",
                "That is more work of no use, and still one block of queries a head.",
            ),
            Option(
                "Cutting the keys into parts, and merging the parts with their lse.",
                "Each part gives an output and an lse, on a processor of its own; a second small "
                "step merges them. This is what split-KV decoding does.",
                right=True,
            ),
        ),
    ),
    Question(
        "which-kernel",
        "You want to be sure that F.scaled_dot_product_attention runs its FlashAttention kernel on "
        "your CUDA tensors. What tells you?",
        (
            Option(
                "torch.backends.cuda.flash_sdp_enabled() returns True.",
                "It says that the kernel is permitted. Whether it fits your dtype, mask and sizes "
                "is decided at each call.",
            ),
            Option(
                "The result is right.",
                "All backends compute the same attention, up to rounding.",
            ),
            Option(
                "The call inside a sdpa_kernel(SDPBackend.FLASH_ATTENTION) block raises nothing.",
                "That permits this one alone: where it cannot run, torch raises an error in place "
                "of taking another. A profiler, which lists kernels by name, tells as well.",
                right=True,
            ),
            Option(
                "No warning appears.",
                "Left to itself, torch takes the next backend that fits, down to the plain one "
                "that stores the scores, and says nothing.",
            ),
        ),
    ),
    Question(
        "stopwatch",
        "`start = time.perf_counter(); attention(q, k, v); print(time.perf_counter() - start)`, on "
        "a GPU, prints 0.00003 s for any T. What has been measured?",
        (
            Option(
                "How long it takes to launch the kernel.",
                "The call returns once the work is queued. Warm up, then synchronise before each "
                "reading of the clock (torch.cuda.synchronize), or use CUDA events.",
                right=True,
            ),
            Option(
                "The kernel: it is so fast that T does not matter.",
                "The products grow with T². A time that does not grow at all is not the kernel's.",
            ),
            Option(
                "The first call, with its compilation.",
                "A first call is slower than the others, not faster. It should be left out, but "
                "this is another trap.",
            ),
        ),
    ),
    Question(
        "more-work-less-time",
        "Forward and backward together, FlashAttention computes more than plain attention and "
        "takes less time on a GPU. How can that be?",
        (
            Option(
                "It computes in lower precision.",
                "Both compare in the same dtype, and a kernel holds its sums in float32. The gain "
                "is not bought with precision.",
            ),
            Option(
                "It leaves out weights that are close to 0.",
                "It leaves out nothing but tiles that the causal mask hides. The result is exact, "
                "up to rounding.",
            ),
            Option(
                "It computes less: the softmax needs one pass instead of three.",
                "The rescaling adds work, and the backward computes all scores a second time. "
                "Operations go up.",
            ),
            Option(
                "Plain attention waits for memory: it moves T × T matrices, and arithmetic idles.",
                "The scores are made again where they are needed, in the backward too, which is "
                "cheaper than reading them. What counts is the bytes moved.",
                right=True,
            ),
        ),
    ),
)
