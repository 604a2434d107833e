"""Calls that together compile all kernels, one function per group of kernels."""

import numpy as np

import mcce
from mcce.trees.ctree.svd_kernels import decompose

X = mcce.datasets.load_loans(200).X


def _of_explaining(X):
    explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, fixed=["age"], random_state=1).fit(X)
    explainer.explain(X.head(20), n_samples=20, sparse=True)
    explainer.explain(X.head(20), n_samples=20)


def _of_ctree(X):
    mcce.ChainModel(sampler="ctree", random_state=1).fit(X)
    decompose(np.eye(3))  # needed by few tables, and the longest to compile


def _of_copula(X):
    mcce.ChainModel(sampler="copula", random_state=1).fit(X).log_density(X.head(20))


def _of_forests(X):
    table = mcce.Schema.from_data(X).encode(X)
    last = len(table.features) - 1
    for sampler in (mcce.ForestSampler(n_trees=2), mcce.CartSampler()):
        fitted = sampler.fit(table.first(last), table.column(last))
        fitted.supports(table.first(last), table.matrix[:, last])
        fitted.log_density(table.first(last), table.matrix[:, last])


def _of_empirical(X):
    mcce.ChainModel(sampler="empirical", random_state=1).fit(X).log_density(X.head(20))


def _of_rpart(X):
    mcce.ChainModel(sampler=mcce.CartSampler(dialect="rpart"), random_state=1).fit(X)


def _of_tables_of_distances(X):
    explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
    explainer.explain(X.head(5), n_samples=20, sparse=True, measures="hvdm")


def _of_weights(X):
    weights = np.linspace(0.5, 2.0, len(X))
    mcce.ChainModel(random_state=1).fit(X, sample_weight=weights).log_density(X.head(20))


def _of_joint_forests(X):
    forest = mcce.generators.AdversarialForest(fixed=["age"], n_trees=3, random_state=1).fit(X)
    forest.sample(given=X[["age"]].head(5), within={"salary": (40_000, None)})
    forest.sample(given=X[["age"]].head(5))
    forest.log_density(X.head(20))


# longest first; the first runs in parallel with groups that do not need its kernels
KERNELS = [_of_explaining, _of_rpart, _of_ctree, _of_weights, _of_copula, _of_joint_forests, _of_empirical, _of_forests]
KERNELS += [_of_tables_of_distances]

if __name__ == "__main__":
    for compiled in KERNELS:
        compiled(X)
