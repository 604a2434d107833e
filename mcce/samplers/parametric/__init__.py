"""Parametric conditionals, as in synthpop: linear regressions for numbers, logistic ones for levels.

`norm` and `normrank` (norm.py), `pmm` (pmm.py), `logreg`, `polyreg` and `polr` (logistic.py), and `parametric`, which
chooses among them; `gaussian` (norm.py) is shapr's. `norm` of transformed values and `norm.boot` stand in norm.py;
mice's `midastouch`, `lda`, `lasso.norm`, `lasso.logreg` and `2l.norm` in files of their own. They share the design
matrix and the augmentation (design.py), two maximum likelihood fits (glm.py), the ridge regression (linear.py) and the
treatment of missing targets (regression.py).
"""
