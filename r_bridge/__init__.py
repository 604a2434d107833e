"""The bridge to R: what needs rpy2 lives here and nowhere else.

This package imports `mcce`; `mcce` never imports it. It will hold the samplers fitted by R's own
rpart and party, wrappers for models fitted in R, and the parity report against mcceR. Importing it
needs neither R nor rpy2 (`pip install 'mcce[r]'` brings the latter).
"""
