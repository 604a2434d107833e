"""Calls of `mcce explain` on the loans."""

from mcce.cli import main


def explain(folder, *more, train="train.csv", new="new.csv"):
    arguments = ["explain", "--train", str(folder / train), "--explain", str(folder / new)]
    return main([*arguments, "--n-samples", "300", *map(str, more)])


def trained(folder, *more, **files):
    return explain(folder, "--response", "default", "--decision", "False", *more, **files)
