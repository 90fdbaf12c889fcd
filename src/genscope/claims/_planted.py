"""What was broken on purpose to see each claim fail, in words.

Source: tests/claims/faults, which plants them; a test holds the words equal.
Guarantee: exact; the words are shown beside the verdict and never enter it.
"""

PLANTED = {
    "A1": "the constant of the softmax halved",
    "A2": "a bound for one head that grows like log² T",
    "A3": "heads an eighth as sharp as the proof asks for",
    "A4": "least squares in place of a learner that looks for three bits",
    "A5": "shuffled labels",
    "A6": "the attention of an untrained network",
    "A7": "shuffled labels in every batch",
    "A8": "least squares in place of restarts",
    "A9": "least squares in place of restarts, and of single runs",
    "B1": "query-key matrices half as large as the lemma's",
    "B2": "the bound for one head fewer",
    "B3": "gates for tokens of an eighth of the range",
    "B4": "the best in the span taken for twice as bad as predicting 0",
    "B5": "the FFN stops at its first test, whatever its error",
    "B6": "the Transformer stops at its first test, whatever its error",
    "B7": "one encoding for all positions",
    "B8": "the FFN at the larger q stops at its first test, whatever its error",
    "B9": "training without weight decay",
    "B10": "every position asks for its own token, which no state has to keep",
    "B11": "the FFN stops at its first test, whatever its error",
    "C1": "attention half as sharp",
    "C2": "Theorem 14 as printed, without the rows of F that write positions",
    "C3": "degrees upside down: 3 trained as 1, and 1 as 3",
    "C4": "tuned weights in place of the paper's",
    "C5": "noise ten times as wide as the bound's",
    "C6": "the score matrix read one column off",
    "C7": "the chance of a wrong answer taken for the chance of a bad sample",
    "C8": "restrictions to coordinates, in which components merge",
    "C9": "the paper's weights in place of the tuned",
    "C10": "C = 0.1 in place of the fitted",
}
