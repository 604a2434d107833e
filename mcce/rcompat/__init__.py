"""mcceR's `explain_mcce` without R: its call, its result and, with the same seeds, its numbers to the bit.

1. `fit_autoregressive`: a tree for each mutable feature (`mcce.trees.rpart`, `mcce.trees.ctree.tree`).
2. `generate`: K rows for each factual, feature by feature over the whole table, from R's one stream (`RGenerator`).
3. `process`: measures, ranks and the best rows.

`explain_mcce` runs the three; each can be run alone, to see where two programs part. `mcce.MCCE` is the method as the
paper has it, and takes none of what follows.

What mcceR does and what mcce does
----------------------------------
Behaviour of mcceR (28df11c) that one would not expect, what `explain_mcce` makes of it, and what `MCCE` does instead.
"Same": it is needed for the same numbers.

| mcceR | explain_mcce | MCCE, and why |
| --- | --- | --- |
| Gower adds 1 for each *equal* factor level | same | 1 for each different one: what is equal is not far |
| Gower's range is that of all candidates of all factuals | same | the training data's: no factual depends on others |
| a column with a single candidate value makes Gower NaN or Inf | same | no change 0, a change 1 |
| Gower is a sum | same | `gower` is the mean, in [0, 1] (paper, equation 3); `gower_sum` the sum |
| logicals and text do not count in Gower | same | they are levels |
| L1 and L2 add up raw units; ranked by validity, L0, L1 | same | ranked by validity, L0, Gower: no unit decides |
| a mutable factor breaks L1, L2, and so the default call | a changed level counts 1 | `l1_raw`, `l2_raw` do so too |
| a mutable ordered factor breaks the trees or L0 | works; in L1 and L2 its steps count | works |
| text breaks ctree | levels in alphabetical order, as in rpart | as there |
| a leaf with the single row r draws from rows 1, ..., r | same | draws that row: its donors are the leaf's |
| identical rows fill the best k | same | the k rows differ |
| a factual that has the wanted decision is "changed" to itself | same | it is named as such, with its reason |
| a factual without a valid row vanishes | same | it is listed in `unexplained`, with its reason |
| remove_invalid without the measure "validation" fails | invalid rows are removed | only valid rows are returned |
| sort_by_measures_order is ignored | same | always sorted |
| rpart cross-validates every tree, for nothing | takes its permutation off the stream, no more | no such step |
| one stream: a factual's rows depend on all before it | same | they depend on the seed and its own fixed values |
| fit.seed = NULL goes on with the session's stream | a fresh seed, or an `RGenerator` to go on with | one seed |
| with a featuremodel_object the call's own c_int is ignored | same | a fitted explainer has one decision |
| a column `decision` (or `dummy`) is overwritten | an error that names it | no name is reserved |
| a column `i`, or a name with a blank, breaks it | works | works |
| a factor with one level in use breaks rpart | a single leaf | a single leaf |
| missing values break it, or draw wrong rows | an error that names the column | missing is a value like another |
| a row left in an inner node of rpart (see `generate`) fails | draws from all rows of that node | goes on to a leaf |
| ctree: rounding (LAPACK's, the p-value's) chooses between variables that say the same | LAPACK's, as in R | same |
| a single candidate in all (K = 1, one factual) fails | works | works |
| no feature left that may change: fails | an error that says so | an error that says so |

Levels of factors are matched by label. The levels of text are sorted by code point; R sorts them by its locale.
"""

from mcce.rcompat.explain import MCCEResult, explain_mcce
from mcce.rcompat.stages import FeatureModel, Processed, Simulated, fit_autoregressive, generate, process

__all__ = [
    "FeatureModel",
    "MCCEResult",
    "Processed",
    "Simulated",
    "explain_mcce",
    "fit_autoregressive",
    "generate",
    "process",
]
