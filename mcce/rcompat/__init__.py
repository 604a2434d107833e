"""mcceR's `explain_mcce` without R: its call, its result and, with the same seeds, its numbers to the bit.

1. `fit_autoregressive`: a tree for each mutable feature (`mcce.trees.rpart`, `mcce.trees.ctree`).
2. `generate`: K rows for each factual, feature by feature over the whole table, from R's one stream (`RGenerator`).
3. `process`: measures, ranks and the best rows.

`explain_mcce` runs the three stages. Each can be run alone, to locate a difference between two programs. `mcce.MCCE` is
the method of the paper and shares none of the behaviour listed below.

Differences between mcceR and mcce
----------------------------------
Unexpected behaviour of mcceR (28df11c), how `explain_mcce` handles it, and what `MCCE` does instead. "Same" means that
`explain_mcce` reproduces it, because equal numbers require it.

| mcceR | explain_mcce | MCCE, and why |
| --- | --- | --- |
| Gower adds 1 for each *equal* factor level | same | 1 for each different level |
| Gower's range is that of all factuals' candidates | same | range of the training data, so factuals are independent |
| a column with a single candidate value makes Gower NaN or Inf | same | no change 0, a change 1 |
| Gower is a sum | same | `gower` is the mean, in [0, 1] (paper, equation 3); `gower_sum` the sum |
| logicals and text do not count in Gower | same | they are levels |
| L1 and L2 sum raw units; ranks by validity, L0, L1 | same | ranks by validity, L0, Gower: independent of units |
| a mutable factor breaks L1 and L2, hence the default call | a changed level counts 1 | as in `l1_raw`, `l2_raw` |
| a mutable ordered factor breaks the trees or L0 | works; L1 and L2 count its steps | works |
| text breaks ctree | levels in alphabetical order, as in rpart | as in `explain_mcce` |
| a leaf with the single row r draws from rows 1, ..., r | same | draws row r |
| the best k may be identical rows | same | the k rows differ |
| a factual with the wanted decision is "changed" to itself | same | it is listed in `unexplained`, with the reason |
| a factual without a valid row is dropped | same | it is listed in `unexplained`, with the reason |
| remove_invalid without the measure "validation" fails | invalid rows are removed | only valid rows are returned |
| sort_by_measures_order is ignored | same | always sorted |
| rpart cross-validates every tree and does not use it | only draws its permutation from the stream | no such step |
| one stream: a factual's rows depend on all earlier ones | same | they depend on the seed and the fixed values |
| fit.seed = NULL continues the session's stream | a fresh seed, or an `RGenerator` to continue | one seed |
| with a featuremodel_object, c_int of the call is ignored | same | a fitted explainer has one decision |
| a column `decision` (or `dummy`) is overwritten | an error that names it | no name is reserved |
| a column `i`, or a name with a blank, breaks it | works | works |
| a factor with one level in use breaks rpart | a single leaf | a single leaf |
| missing values cause an error or wrong draws | an error that names the column | missing is treated as a value |
| a row that stops in an inner node of rpart (see `generate`) fails | draws from that node's rows | reaches a leaf |
| ctree: rounding (LAPACK's, the p-value's) decides between equivalent variables | LAPACK's, as in R | same |
| a single candidate in total (K = 1, one factual) fails | works | works |
| fails if no feature is mutable | a clear error | a clear error |

Levels of factors are matched by label. The levels of text are sorted by code point; R sorts them by its locale.
"""

from mcce.rcompat.explain import MCCEResult, explain_mcce
from mcce.rcompat.measures import l1_raw, l2_raw
from mcce.rcompat.random import RGenerator
from mcce.rcompat.stages import FeatureModel, Processed, Simulated, fit_autoregressive, generate, process

__all__ = [
    "FeatureModel",
    "MCCEResult",
    "Processed",
    "RGenerator",
    "Simulated",
    "explain_mcce",
    "fit_autoregressive",
    "generate",
    "l1_raw",
    "l2_raw",
    "process",
]
