"""The experiments of the paper, with its figures beside ours.

    python -m benchmarks.paper [1 2 3 4 appendix] [--only adult,...] [--networks N] [--quick]

Without numbers all are run; each writes one CSV file, in which columns that end in `_paper` are the published figures
(`published.json`).
"""
