"""Lesson 4's questions. Each wrong option answers the misconception that leads to it.

Numbers are those of the record `helpers/training/sweep.jsonl`: the story's model, three seeds.
"""

from __future__ import annotations

from helpers.practice.questions import Option, Question, collection

PREDICTIONS = collection(
    Question(
        "4.1",
        "Two runs, the same weights at the start, the same batches. One kernel divides the scores "
        "by √128, the team's does not. Where is the team's validation loss after 600 steps?",
        (
            Option(
                "It has become nan: scores of that size overflow.",
                "Softmax subtracts the largest score first, and an output is a weighted mean of "
                "values, never larger than the largest of them. Nothing overflows. That is what "
                "makes this bug hard to notice.",
            ),
            Option(
                "Near the unigram table: it learns how frequent bytes are, and nothing more.",
                "It passes that table within the first hundred steps. A model without any "
                "attention "
                "does so too: the byte that was just read reaches the output through the residual "
                "path.",
            ),
            Option(
                "Near the bigram table.",
                "It falls nearly as fast as the healthy run for the first fifty steps, and then "
                "flattens near 2.4 nats, about what a table that looks at one byte reaches.",
                right=True,
            ),
            Option(
                "Where the healthy run is: the weights adapt to the factor.",
                "They could in principle: W_Q could shrink by 11.3, and the two would be the same "
                "function. In 600 steps it does not. The scores grow instead.",
            ),
        ),
    ),
    Question(
        "4.2",
        "At some time in the team's run every head has nearly all its weight on one key in most "
        "rows. When is that so for the first time?",
        (
            Option(
                "Before the first step.",
                "At step 0 the normalised entropy of the heads is about 0.1 (0.87 with the scale). "
                "It can be computed before any training: std of scores √128 ≈ 11.3.",
                right=True,
            ),
            Option(
                "Within the first hundred steps, as W_Q and W_K grow.",
                "They do grow, and the entropy falls further. But they start with entries of q and "
                "k of variance 1, and so with scores of standard deviation √128 ≈ 11.3.",
            ),
            Option(
                "When the loss flattens.",
                "The two look like cause and effect at one moment, and are not: the heads were "
                "one-hot long before. The first fall of the loss needs no attention: a model that "
                "has none falls as well.",
            ),
            Option(
                "Never: single rows become one-hot, whole heads do not.",
                "The mean over all rows of a head is about 0.1 of what it could be, in every head.",
            ),
        ),
    ),
    Question(
        "4.3",
        "Log A starts with an entropy of 1.00 and scores that spread by 0.09. Its entropy falls "
        "later. What is A?",
        (
            Option(
                "The healthy run.",
                "With 1/√d_k the scores of this model start with a standard deviation of 1, since "
                "q and k have entries of variance 1.",
            ),
            Option(
                "The run without a scale.",
                "Its scores start eleven times too wide, at √128 ≈ 11.3, not eleven times too "
                "narrow.",
            ),
            Option(
                "The run divided by d_k.",
                "√128 / 128 = 1/√128 ≈ 0.09. Every head starts undecided, 1.00. Training then has "
                "to make W_Q and W_K larger before attention can choose anything. It learns, more "
                "slowly.",
                right=True,
            ),
        ),
    ),
    Question(
        "4.4",
        "The gradient of the loss at W_Q and W_K, averaged over the run: how large is it in the "
        "team's run, compared with the healthy one?",
        (
            Option(
                "Far smaller: softmax is saturated, so nothing comes back.",
                "That is the sentence everyone repeats. In layer 1 the opposite is measured: about "
                "four times as large. In layer 2 it is of the same size to twice as large.",
            ),
            Option(
                "Several times larger in layer 1, not smaller in layer 2.",
                "As on random vectors in lesson 3: many rows pass nothing, a few pass very much. "
                "That it is smaller is the sentence everyone repeats; it was not what we measured.",
                right=True,
            ),
            Option(
                "Exactly 0 in most entries.",
                "A gradient at a weight is a sum over all rows of all windows of a batch. It is 0 "
                "only if every one of them passes nothing.",
            ),
        ),
    ),
    Question(
        "4.5",
        "W_Q and W_K stay random for the whole run, in a model without the scale. How does it do, "
        "compared with the team's model, in which they are trained?",
        (
            Option(
                "Much worse: with random W_Q and W_K attention looks anywhere.",
                "They are random, and the trained ones are not. But training them without the "
                "scale "
                "gains nothing.",
            ),
            Option(
                "The same or a little better.",
                "In each of three seeds the frozen one is a little better, by 0.03 to 0.07 nats. "
                "Following the gradient at W_Q and W_K gains nothing there.",
                right=True,
            ),
            Option(
                "As well as the healthy model.",
                "No: random one-hot attention stays random one-hot attention. The healthy model is "
                "about 0.42 nats better.",
            ),
        ),
    ),
    Question(
        "4.6",
        "The failed model as it is after 600 steps. The scale is put in, nothing else is changed, "
        "training goes on for 300 steps. What happens to the loss?",
        (
            Option(
                "Nothing: W_Q and W_K have grown so large that the heads stay one-hot.",
                "In layer 2 that is so: what is left after the division by 11.3 still saturates "
                "softmax. In layer 1 it does not, and the loss falls.",
            ),
            Option(
                "It jumps up, and the run has to be started again.",
                "The function changes in one step, but 20 steps later the loss is no higher than "
                "before, in each recorded run.",
            ),
            Option(
                "It leaves the plateau and falls.",
                "Within the first tens of steps. It does not undo everything, though: in layer 2 "
                "the heads stay nearly one-hot, unless W_Q and W_K are drawn anew.",
                right=True,
            ),
        ),
    ),
    Question(
        "4.7",
        "Which of these runs loses least by a missing scale?",
        (
            Option(
                "d_head 128, N(0, 0.02), learning rate 0.001: it starts with a spread near 1.",
                "It starts like a healthy run and saturates while it trains: the learning rate "
                "moves W_Q and W_K just as far as with the scale, and each step moves the scores "
                "11.3 times as far. The start is not the whole story.",
            ),
            Option(
                "d_head 16, unit init, learning rate 0.0003: small heads.",
                "√16 = 4 is less than 11.3, but it is still a spread of 4 at the start. It costs "
                "0.06 to 0.08 nats, in three seeds.",
            ),
            Option(
                "d_head 16, N(0, 0.02), learning rate 0.0003: all three are small.",
                "Small heads, small weights, small steps: the spread starts at 0.3 and grows to "
                "1.8, which softmax can use. The missing scale even helps, by 0.08 to 0.1 nats: "
                "with it the scores start at 0.08, and have to grow for longer.",
                right=True,
            ),
            Option(
                "d_head 128, nn.Linear's default init, learning rate 0.001.",
                "Its unscaled scores start with a spread of 3.6 and end above 60. It costs 0.38 to "
                "0.4 nats.",
            ),
        ),
    ),
    Question(
        "4.8",
        "One of these does not save the run. Which?",
        (
            Option(
                "QK-norm.",
                "It makes every q and k as long as √d_k, whatever W_Q and W_K do, so that after "
                "division by √d_k no score is beyond √d_k ≈ 11.3 until its learned factors grow.",
            ),
            Option(
                "Dividing by d_k.",
                "It is slower than 1/√d_k here: all heads start undecided, and a step moves the "
                "scores less. But it learns, and ends 0.34 nats below the run without a scale.",
            ),
            Option(
                "A learned scale, started at 1/√d_k.",
                "It is as good as the fixed one.",
            ),
            Option(
                "No scale, but W_Q starts smaller by √d_k: the same function at step 0.",
                "The same function, not the same training. AdamW moves an entry of W_Q by up to "
                "the learning rate, however small the entry is: relative to its size, 11.3 times "
                "as far as in the healthy run. It saturates within the run.",
                right=True,
            ),
        ),
    ),
)

QUIZ = collection(
    Question(
        "step-0",
        "A colleague sends a log: d_head 64, q and k with entries of variance 1, score std 8.1 and "
        "normalised entropy 0.2 at step 0. Your first guess?",
        (
            Option("The learning rate is too high.", "At step 0 there has been no step."),
            Option(
                "The scores are divided by d_k.",
                "Then they would spread by √64 / 64 = 1/8, and the entropy would be near 1.",
            ),
            Option(
                "The scale is missing.",
                "√64 = 8 is what unscaled scores of such a head spread by.",
                right=True,
            ),
            Option("Nothing is wrong: heads sharpen.", "They do, in training. This is step 0."),
        ),
    ),
    Question(
        "one-sharp-head",
        "The entropy of a head is 0.05 after 10,000 steps. Does that show that a scale is missing?",
        (
            Option(
                "Yes: a healthy head has a high entropy.",
                "Some of the most useful heads are nearly one-hot, such as one that looks at the "
                "previous token.",
            ),
            Option(
                "No. Look at step 0, at the score std, and at the other heads.",
                "With q and k of variance 1 and large heads, a missing scale shows in all heads, "
                "from the start, at places that look random. One sharp head is not that picture.",
                right=True,
            ),
            Option(
                "No: entropy has nothing to do with the scale.",
                "It has: scores that spread more give weights of lower entropy.",
            ),
        ),
    ),
    Question(
        "frozen",
        "What does the control with frozen W_Q and W_K show?",
        (
            Option(
                "That without the scale, training W_Q and W_K gained nothing in this model.",
                "Just that. Why the gradient is of no use is a further question. Successive "
                "batches hardly agree about it; whether that is the reason was not settled.",
                right=True,
            ),
            Option(
                "That the gradient at W_Q and W_K is zero.",
                "It does not look at the gradient. That was measured apart, and it is not zero.",
            ),
            Option(
                "That attention is not needed for this task.",
                "The frozen models attend, at random places. Without any attention this model ends "
                "0.52 nats above the healthy one (section 1).",
            ),
        ),
    ),
    Question(
        "blind-test",
        "A test compares a kernel with F.scaled_dot_product_attention on random tensors of shape "
        "(2, 4, 50, 64). Which of these kernels does it let pass?",
        (
            Option("One without the scale.", "The outputs differ: √64 = 8 is a large factor."),
            Option("One that divides by d_k.", "1/64 is not 1/8, and the outputs differ."),
            Option(
                "One that leaves out the last keys where the length is no multiple of 16.",
                "50 is no multiple of 16: this one is seen. A length of 64 would miss it.",
            ),
            Option(
                "One whose scale is the constant 1/8.",
                "For d_k = 64 that is right. Test a d_k that is nobody's favourite, such as 24.",
                right=True,
            ),
        ),
    ),
    Question(
        "t5",
        "T5 has no scale in its attention, and trains well. How does that fit this lesson?",
        (
            Option(
                "It does not: T5's success shows that the scale does not matter.",
                "It shows that it can be put elsewhere. T5's W_Q starts smaller by √d_k.",
            ),
            Option(
                "Its heads are so small that no scale is needed.",
                "They have 64 features, or 128 in the two largest models.",
            ),
            Option(
                "Its init of W_Q makes up for the scale, and its optimiser, Adafactor, takes steps "
                "in proportion to the size of a weight matrix.",
                "Both matter: with AdamW, whose steps are not in proportion, the init alone did "
                "not save our model. That Adafactor is why T5 gets away with it was not measured "
                "here.",
                right=True,
            ),
        ),
    ),
    Question(
        "mirrored",
        "A model was trained without a scale, with QK-norm and a learned factor g. You move it to "
        "a faster kernel and leave that kernel's default scale as it is. What have you done?",
        (
            Option(
                "The bug of this lesson, mirrored.",
                "All scores are divided by √d_k once more than in training: heads become less "
                "decided. Pass scale=1.0 (or g), and compare the outputs before and after.",
                right=True,
            ),
            Option("Nothing: more scale is safer.", "It changes the function that was trained."),
            Option(
                "Nothing that matters, as softmax ignores a common factor.",
                "It ignores a common summand. A factor is a temperature.",
            ),
        ),
    ),
)
