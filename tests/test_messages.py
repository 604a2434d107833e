"""What bad input raises: one table of calls and the exact texts of their errors.

Each text says what is wrong, where, what was found and how to fix it. Tables have their own (`table/test_messages.py`).
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import mcce
from mcce import samplers
from mcce.exceptions import MCCEError

RNG = np.random.default_rng(8)
X = pd.DataFrame(
    {
        "age": RNG.integers(20, 60, 60),
        "salary": np.round(RNG.gamma(5.0, 8.0, 60), 1),
        "job": RNG.choice(["clerk", "manager", "nurse"], 60),
        "school": pd.Categorical(RNG.choice(["low", "mid", "high"], 60), ["low", "mid", "high"], ordered=True),
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, 60), unit="D"),
        "rent": pd.Series(np.round(RNG.gamma(4.0, 3.0, 60), 1)).mask(RNG.random(60) < 0.2),
    }
)
NUMBERS = X[["age", "salary"]]


def score(rows):
    return 1.0 / (1.0 + np.exp(-(rows["salary"].to_numpy(dtype=float) - 45.0) / 10.0))


REFUSED = X[score(X) < 0.5].head(3)
FITTED = mcce.MCCE(score, fixed=["age"], random_state=1).fit(X)
CHAIN = mcce.ChainModel(fixed=["age"], random_state=1).fit(X)
CONDITIONED = mcce.ChainModel(fixed=["age"], random_state=1).fit(X, score(X) >= 0.5)
DRAWS = FITTED.generate(REFUSED, 5)
RESULT = FITTED.explain(REFUSED, n_samples=50)


def fit(model=score, rows=X, **parameters):
    return lambda: mcce.MCCE(model, **parameters).fit(rows)


def explain(rows=REFUSED, **options):
    return lambda: FITTED.explain(rows, **{"n_samples": 10, **options})


def constrain(*constraints):
    return explain(constraints=list(constraints))


def chain(rows=X, **parameters):
    return lambda: mcce.ChainModel(**parameters).fit(rows)


def sampler(of, name="salary"):
    return lambda: mcce.ChainModel(sampler={name: of}).fit(X.dropna())


class Bank:
    """A model of scikit-learn's kind whose answers are given."""

    def __init__(self, answer, classes):
        self.answer, self.classes_ = answer, np.array(classes)

    def predict_proba(self, rows):
        return np.tile(np.array(self.answer, dtype=float), (len(rows), 1))

    def predict(self, rows):
        return np.full(len(rows), self.classes_[0])


def broken(rows):
    raise RuntimeError("the server is down")


class Constant:
    """A generator's model whose rows are always the first of the training table."""

    def __repr__(self):
        return f"{type(self).__name__}()"

    def fit(self, rows):
        self.rows = rows
        return self

    def sample(self, n, given=None, random_state=None):
        return pd.concat([self.rows.head(1)] * n)


class Nothing(Constant):
    def sample(self, n, given=None, random_state=None):
        return self.rows.head(0)


class Ones(mcce.ConditionalSampler):
    """A conditional that draws one value too few."""

    def fit(self, given, target):
        return self

    def sample(self, given, rng):
        return np.ones(given.n_rows - 1)


CALLS = [
    # constructing and fitting an explainer
    (fit(None), "model is None; give a model, or a function of a table as the decision, which needs none."),
    (
        fit(3),
        "the model (a int) cannot be queried: it has no predict_proba or decision_function or predict and is not "
        "callable. Give a function of a table that returns one score or label for each row.",
    ),
    (
        fit(broken),
        "the model broken, queried with 60 rows (the training rows), raised RuntimeError: the server is down. "
        "Check that it is fitted and takes a DataFrame of shape (60, 6).",
    ),
    (
        fit(lambda rows: None),
        "the model <lambda>, queried with 60 rows (the training rows), returned a single NoneType, expected 60 "
        "values, one per row.",
    ),
    (
        fit(lambda rows: np.full(len(rows), np.nan)),
        "the model <lambda>, queried with 60 rows (the training rows), returned missing values (NaN or None) for "
        "60 of 60 rows, at positions 0, 1, 2, 3, 4, ...; the first has age = 48, salary = 24.3, job = 'manager', "
        "school = 'mid', since = Timestamp('2021-02-24 00:00:00'), rent = 16.5. Drop or impute such rows, or give "
        "a model that can answer for them.",
    ),
    (
        fit(lambda rows: np.zeros(len(rows) + 1)),
        "the model <lambda>, queried with 60 rows (the training rows), returned 61 values, expected 60, one per row.",
    ),
    (
        fit(lambda rows: np.zeros((len(rows), 2))),
        "the model <lambda>, queried with 60 rows (the training rows), returned 2 columns (0, 1). Say which one, "
        "as in mcce.Interval(0.5, 1, of=1).",
    ),
    (
        fit(lambda rows: ["yes"] * len(rows)),
        "the model <lambda>, queried with 60 rows (the training rows), returned 'yes', which is not a number that "
        "an interval could contain. For a model that returns class labels give the wanted label as the decision.",
    ),
    (
        fit(lambda rows: [{"yes": 1}] * len(rows), decision="yes"),
        "the model <lambda>, queried with 60 rows (the training rows), returned {'yes': 1}, which is not a class "
        "label; return a number or a text per row.",
    ),
    (fit(rows=X.head(0)), "X has 0 rows and 6 columns; give at least one of each."),
    (fit(LinearRegression), "model is the class LinearRegression; give a fitted LinearRegression object."),
    (
        fit(Bank([0.3, 0.7], ["bad", "good"])),
        "the decision, a score from 0.5 to 1, does not say of which class the score is (classes: 'bad', 'good'). "
        "Say it, as in mcce.Interval(0.5, 1, of='good'), or give the wanted class itself, as in decision='good'.",
    ),
    (
        fit(Bank([0.3, 0.7], ["bad", "good"]), decision=mcce.Interval(0.5, 1, of="godo")),
        "of is 'godo', which is not a class of the model; did you mean 'good'?",
    ),
    (
        fit(Bank([0.3, 0.7], ["bad", "good"]), decision="great"),
        "decision is 'great', which is not a class of the model; known: 'bad', 'good'",
    ),
    (
        fit(Bank([0.3, 0.7], ["bad", "good"]), decision=["bad", "good"]),
        "decision names every class of the model ('bad', 'good'), so every row has it; name fewer. An interval of "
        "scores is a tuple: (low, high).",
    ),
    (
        fit(Bank([0.3, 0.3, 0.4], ["bad", "good"]), decision=mcce.Interval(0.5, 1, of="good")),
        "predict_proba of the Bank, queried with 60 rows (the training rows), returned 3 columns for 2 classes "
        "('bad', 'good'); which is whose is unknown. Give a function that returns the score you mean as the model, "
        "or a function of a table as the decision.",
    ),
    (
        fit(Bank([3.0, 7.0], ["bad", "good"]), decision=mcce.Interval(0.5, 1, of="good")),
        "predict_proba of the Bank, queried with 60 rows (the training rows), returned 2 columns that sum to 10, "
        "not 1, so not of classes that exclude each other (is it a multi-label model?). Give a function that "
        "returns the score you mean as the model, or a function of a table as the decision.",
    ),
    (
        fit(decision=(0.5, 1, 2)),
        "decision is (0.5, 1, 2), which is not a pair of numbers. Give (low, high), inf for no bound; a class "
        "label; a list of labels; or a function of a table that returns one boolean a row.",
    ),
    (fit(decision=[]), "decision is an empty list; name at least one class label."),
    (
        fit(decision=None),
        "decision is None (a NoneType); give (low, high), a mcce.Interval, a class label, a list of labels, or a "
        "function of a table that returns one boolean a row.",
    ),
    (
        fit(decision=True),
        "the model score, queried with 60 rows (the training rows), returned 0.11204703855699032, which is not a "
        "class label like True. For a model that returns scores give an interval, (low, high), else one of its "
        "labels.",
    ),
    (
        fit(None, decision=lambda rows: rows["salary"]),
        "the decision function <lambda>, queried with 60 rows (the training rows), returned 24.3, not booleans. "
        "Compare within it, as in `scores >= 0.5`.",
    ),
    (
        fit(decision=(2, 3)),
        "no training row has the wanted decision, score from 2 to 3 (the scores go from 0.02634 to 0.9938): there "
        "is nothing to learn it from. Check the decision, or set condition_on_decision=False.",
    ),
    (
        fit(lambda rows: np.where(rows["age"] > 30, "yes", "no"), decision="maybe"),
        "no training row has the wanted decision, predicted class 'maybe' (the answers are 'no', 'yes'): there is "
        "nothing to learn it from. Check the decision, or set condition_on_decision=False.",
    ),
    (fit(fixed="age"), "fixed is 'age'; give a list of column names, for example fixed=['age', 'sex']."),
    (fit(fixed=["agee"]), "fixed names 'agee', which is not a column of X; did you mean 'age'?"),
    (fit(fixed=list(X)), "all 6 columns of X are fixed; leave at least one mutable."),
    (fit(condition_on_decision="no"), "condition_on_decision is 'no'; it must be True or False."),
    (
        fit(random_state=1.5),
        "random_state is 1.5; give an integer of at most a thousand digits (one seed, one answer), or None for a "
        "fresh one.",
    ),
    (fit(n_jobs=0), "n_jobs is 0; it must be a whole number other than 0 (-1 for all cores), or None for 1."),
    (
        fit(generator=samplers.CartSampler()),
        "generator is CartSampler(); give an unfitted mcce Generator, such as ChainModel().",
    ),
    (
        fit(generator=mcce.ChainModel(), sampler="norm", kinds={"age": "numeric"}),
        "'sampler', 'kinds' have no effect beside generator; give it to the generator itself.",
    ),
    (
        fit(generator=mcce.ChainModel(fixed=["job"])),
        "the generator has fixed=['job'], and fixed is []; give both the same features.",
    ),
    (
        fit(derived=["rent"]),
        "derived is ['rent']; give formulas by column, as in derived={'dti': 'rent / income'}.",
    ),
    (fit(derived={"rents": "salary / 3"}), "derived column 'rents' is not a column of X; did you mean 'rent'?"),
    (
        fit(derived={"rent": "salary / 3"}),
        "the formula of 'rent' disagrees with 50 of 50 training rows: in row 0 (counted from 0) it gives 8.1 from "
        "salary = 24.3, but the column has 16.5; correct the formula.",
    ),
    (fit(derived={"rent": "rent + 1"}), "the formula of 'rent' reads itself; compute it from other columns."),
    (
        fit(derived={"rent": 3}),
        "the formula of 'rent' is 3; give a text such as '(rent + instalment) / income', or a function of a frame.",
    ),
    (
        fit(derived={"rent": lambda rows: rows["rents"]}),
        "the function of the derived column 'rent' raised KeyError: 'rents'; it gets a frame with 'age', 'salary', "
        "'job', 'school', 'since'.",
    ),
    (
        fit(rows=X.assign(pay=2 * X["salary"]), derived={"pay": "2 * salary", "salary": "pay / 2"}),
        "derived columns depend on each other: 'pay' -> 'salary' -> 'pay'; leave one of these formulas out.",
    ),
    (
        fit(derived={"age": "salary + 1"}, fixed=["age"]),
        "'age' is fixed and derived; leave it out of fixed, and fix what it is computed from.",
    ),
    (fit(constraints=[3]), "constraints[0] is 3; give allow(...), no_copies() or the text of a rule."),
    (
        lambda: mcce.MCCE(score).fit(X, sample_weight=[1, 2]),
        "sample_weight has shape (2,), and X has 60 rows; give one weight for each.",
    ),
    (
        lambda: mcce.MCCE(score).fit(X, sample_weight=np.full(60, -1.0)),
        "sample_weight holds -1.0 in row 0 (counted from 0); weights are finite numbers of at least 0, and 0 "
        "leaves a row out.",
    ),
    (
        lambda: mcce.MCCE(score).fit(X, sample_weight=np.zeros(60)),
        "sample_weight is zero for all 60 rows, which leaves no rows; leave it out.",
    ),
    (lambda: mcce.MCCE(score).explain(X), "this MCCE is not fitted; call fit(X) first."),
    # explaining
    (
        explain(REFUSED.drop(columns="rent")),
        "X lacks the column(s) 'rent' of the fitted table; it has 'age', 'salary', 'job', 'school', 'since'.",
    ),
    (
        explain(REFUSED.assign(job="pilot")),
        "no row of X can be explained: column 'job' holds the unknown level 'pilot' (row 0). Refit with its "
        "levels, or drop such rows.",
    ),
    (explain(REFUSED.set_axis([1, 1, 2])), "the index of X holds 1 more than once; use X.reset_index(drop=True)."),
    (
        explain(REFUSED.set_index(["age", "job"], drop=False)),
        "the index of X has 2 levels; use X.reset_index(drop=True).",
    ),
    (
        explain("rows"),
        "X is a str, which is not a table; give a pandas DataFrame or a two-dimensional numpy array.",
    ),
    (explain(n_samples=0), "n_samples is 0; it must be a whole number of at least 1 and at most 10000000."),
    (explain(n_counterfactuals=2.0), "n_counterfactuals is 2.0; it must be a whole number of at least 1."),
    (explain(sparse=1), "sparse is 1; it must be True or False."),
    (explain(floor=0.1), "floor is 0.1, which has no effect without sparse=True; set it, or leave floor out."),
    (explain(floor=1, sparse=True), "floor is 1; it must be a number of at least 0 and below 1."),
    (
        explain(diverse=True, sparse=True),
        "diverse=True has no effect without sparse=True and n_counterfactuals of at least 2; set them.",
    ),
    (explain(max_changes=0), "max_changes is 0; it must be a whole number of at least 1."),
    (
        explain(max_gower=10**400),
        f"max_gower is 1{'0' * 75} ...; it must be a number of at least 0.",
    ),
    (explain(max_gower=-0.1), "max_gower is -0.1; it must be a number of at least 0."),
    (explain(measures="gowr"), "measures names 'gowr', which is unknown; did you mean 'gower'?"),
    (explain(measures=["L0", "L0"]), "measures names 'L0' twice; name each measure once."),
    (
        explain(measures=lambda candidates, factual: "near"),
        "the measure '<lambda>' returned <U4 of shape () for 10 candidates; it must return one number, not "
        "missing, for each.",
    ),
    (
        explain(relations="rent", sparse=True),
        "relation 'rent', at character 1: 'rent' (numbers) is neither true nor false; compare it with something.",
    ),
    (
        explain(relations=["rent <= incme"], sparse=True),
        "relation 'rent <= incme', at character 9: 'incme' is not a column; did you mean 'since'?",
    ),
    (
        explain(relations=["rent -> jobb"], sparse=True),
        "relation 'rent -> jobb': 'jobb' is not a column; did you mean 'job'?",
    ),
    (explain(progress="bar"), "progress is 'bar'; it must be True or False."),
    # constraints
    (
        lambda: mcce.allow("age"),
        "allow('age') sets no limit; give low, high, levels, direction, max_step or missing.",
    ),
    (lambda: mcce.allow("age", low=[1]), "allow('age'): low is [1]; give a number, a date or an ordered level."),
    (
        lambda: mcce.allow("age", direction="up"),
        "allow('age'): direction is 'up'; known: 'increase', 'decrease', 'none'",
    ),
    (
        lambda: mcce.allow("job", levels="clerk"),
        "allow('job'): levels is 'clerk'; give a list, for example ['clerk'].",
    ),
    (
        lambda: mcce.allow("job", levels=[]),
        "allow('job'): levels is empty, so no level is allowed; name at least one.",
    ),
    (lambda: mcce.allow("rent", missing="yes"), "allow('rent'): missing is 'yes'; give True or False."),
    (
        constrain(mcce.allow("salry", low=3)),
        "constrained feature 'salry' is not a column of X; did you mean 'salary'?",
    ),
    (
        constrain(mcce.allow("age", low=3)),
        "allow('age', low=3) constrains a fixed feature, which never changes; leave it out, or do not fix it.",
    ),
    (
        constrain(mcce.allow("salary", low=50, high=40)),
        "allow('salary', low=50, high=40): the lower bound is above the upper one; no value is allowed.",
    ),
    (
        constrain(mcce.allow("salary", low=1e6)),
        "allow('salary', low=1000000.0): no value of the training data (8.9 to 95.8) is allowed; widen the bounds.",
    ),
    (
        constrain(mcce.allow("salary", low="high")),
        "allow('salary'), low: 'high' is not a number, and 'salary' holds numbers.",
    ),
    (
        constrain(mcce.allow("salary", levels=[3])),
        "allow('salary'): levels is [3], but it holds numbers; use low and high.",
    ),
    (
        constrain(mcce.allow("job", levels=["clark"])),
        "allow('job'), levels: 'clark' is not a level of 'job'; did you mean 'clerk'?",
    ),
    (
        constrain(mcce.allow("job", low="clerk")),
        "allow('job'): low is 'clerk', but its levels have no order; name levels, or make it an ordered category.",
    ),
    (
        constrain(mcce.allow("school", low="high", high="low")),
        "allow('school', low='high', high='low'): the lower bound is above the upper one; no value is allowed.",
    ),
    (
        constrain(mcce.allow("school", max_step=0.5)),
        "allow('school'), max_step: 0.5 is not a whole number of levels.",
    ),
    (
        constrain(mcce.allow("since", max_step=3)),
        "allow('since'), max_step: 3 is not a duration (it is neither text nor a Timedelta); write it as in '30 days'.",
    ),
    (
        explain(constraints={"age": 3}),
        "constraints is {'age': 3}; give a list of allow(...), no_copies() and texts of rules.",
    ),
    (lambda: mcce.rule(3), "rule is 3; give a text such as 'savings >= 3 * rent'."),
    (lambda: mcce.rule("salary => 3"), "rule 'salary => 3', at character 8: '=>' is not an operator; write '>='."),
    (
        lambda: mcce.rule("if salary > 3 then rent > 3"),
        "rule 'if salary > 3 then rent > 3', at character 15: 'then' is not an operator; write 'B if A else True' "
        "for 'if A then B'.",
    ),
    (
        lambda: mcce.rule("open('x')"),
        "rule \"open('x')\", at character 1: there is no function 'open'; known: 'abs', 'ceil', 'exp', "
        "'floor', 'log', 'missing', 'sqrt', 'max', 'min', 'round', ... (11 in all)",
    ),
    (
        lambda: mcce.rule("[x for x in salary]"),
        "rule '[x for x in salary]', at character 1: '[x for x in salary]' is not part of the language of rules.",
    ),
    (
        lambda: mcce.rule("abs(salary, rent) > 3"),
        "rule 'abs(salary, rent) > 3', at character 1: abs() takes 1 value, got 2.",
    ),
    (
        lambda: mcce.rule("was(salary + 1) > 3"),
        "rule 'was(salary + 1) > 3', at character 1: was() takes a column, as in was(age).",
    ),
    (
        constrain("salary > rnt"),
        "rule 'salary > rnt', at character 10: 'rnt' is not a column; did you mean 'rent'?",
    ),
    (
        constrain("salary + 1"),
        "rule 'salary + 1', at character 1: 'salary + 1' (numbers) is neither true nor false; compare it with "
        "something.",
    ),
    (
        constrain("job > 3"),
        "rule 'job > 3', at character 1: the levels of 'job' have no order here; compare them by == or in [...], "
        "or make it an ordered category.",
    ),
    (
        constrain("job == 1 + 1"),
        "rule 'job == 1 + 1', at character 8: 2 is not a level of 'job'; known: 'clerk', 'manager', 'nurse'",
    ),
    (
        constrain("job == 'clark'"),
        "rule \"job == 'clark'\", at character 8: 'clark' is not a level of 'job'; did you mean 'clerk'?",
    ),
    (
        constrain("age > 30"),
        "rule('age > 30') reads only fixed features ('age'), so no change can satisfy it; leave it out.",
    ),
    (
        constrain("3 > 2"),
        "rule('3 > 2') reads no column of the counterfactual, so no change can satisfy it; leave it out.",
    ),
    # results, draws and candidates
    (lambda: RESULT.sentence(-1), "no row has the id -1; known: 0, 1, 2"),
    (
        lambda: RESULT.sentence(REFUSED.index[0], 2),
        "row 0 has 1 counterfactual(s), and none of rank 2; give a rank up to 1, or explain with a larger "
        "n_counterfactuals.",
    ),
    (
        lambda: RESULT.sentence(REFUSED.index[0], formats={"salary": "{:d}"}),
        "formats['salary'] is '{:d}', which cannot write 24.3 (Unknown format code 'd' for object of type "
        "'float'); give a Python format such as '{:,.0f} EUR', '{:.1%}' or '{:%d.%m.%Y}'.",
    ),
    (
        lambda: RESULT.sentence(REFUSED.index[0], labels={"salry": "pay"}),
        "labels names 'salry', which is no feature; did you mean 'salary'?",
    ),
    (
        lambda: FITTED.generate(REFUSED.assign(job="pilot")),
        "column 'job' of X holds the level 'pilot' (row 0), unknown to the fitted table (known: 'clerk', 'manager', "
        "'nurse'). Refit with it, or drop the row.",
    ),
    (
        lambda: FITTED.select(DRAWS.to_numpy(), REFUSED),
        "candidates is a ndarray; give a DataFrame as `generate` returns it.",
    ),
    (
        lambda: FITTED.select(DRAWS, REFUSED.head(1)),
        "candidates has rows for 1, which is not in the index of X; take them out.",
    ),
    (
        lambda: FITTED.select(DRAWS.assign(age=3), REFUSED),
        "candidates changes the fixed feature 'age' of 0; fixed features stay as in X.",
    ),
    # chains and generators
    (chain(sampler="carrt"), "there is no sampler 'carrt'; did you mean 'cart'?"),
    (
        chain(sampler={"salry": "norm"}),
        "sampler names 'salry', which is not a column of X; did you mean 'salary'?",
    ),
    (
        chain(sampler={"age": "norm"}, fixed=["age"]),
        "sampler names 'age', which is fixed and has no sampler; known: 'salary', 'job', 'school', 'since', 'rent'",
    ),
    (
        chain(visit_sequence="random"),
        "visit_sequence is 'random'; allowed: 'data', 'correlation', 'reversed', or a list of the mutable features.",
    ),
    (
        chain(visit_sequence=["age"]),
        "visit_sequence leaves out 'salary', 'job', 'school', 'since', 'rent'; name each mutable feature once.",
    ),
    (
        chain(visit_sequence=["age", "age"]),
        "visit_sequence names 'age' more than once; name each mutable feature once.",
    ),
    (chain(predictors=["age"]), "predictors is ['age']; give a dict of lists, for example {'salary': ['age']}."),
    (chain(predictors={"salary": "age"}), "predictors['salary'] is 'age'; give a list of columns."),
    (
        chain(predictors={"salary": ["rent"]}),
        "predictors['salary'] names 'rent', which is not drawn before it; change visit_sequence, or leave it out.",
    ),
    (
        lambda: mcce.ChainModel().fit(X, decision=[True]),
        "decision has shape (1,) and dtype bool for 60 rows of X; give one boolean for each row.",
    ),
    (lambda: mcce.ChainModel().sample(3), "this ChainModel is not fitted; call fit(X) first."),
    (lambda: CHAIN.sample(0), "n is 0; it must be a whole number of at least 1 and at most 1000000000."),
    (lambda: CHAIN.sample(1, decision=True), "this generator was fitted without a decision; leave decision out."),
    (lambda: CONDITIONED.sample(1, decision="yes"), "decision is 'yes'; it must be True, False or None."),
    (
        lambda: CHAIN.sample(1, given=REFUSED),
        "given has the column(s) 'salary', 'job', 'school', 'since', 'rent', which are not fixed; leave them out.",
    ),
    (
        lambda: CHAIN.conditional("agee"),
        "'agee' has no conditional; known: 'salary', 'job', 'school', 'since', 'rent'",
    ),
    (
        lambda: mcce.SampleGenerator(LinearRegression()).fit(X),
        "model is LinearRegression(), which has no method 'sample'; give an unfitted object with fit(X) and "
        "sample(n, given).",
    ),
    (
        lambda: mcce.SampleGenerator(Constant()).fit(X),
        "the model Constant() draws the same rows with different seeds; give its sample() a parameter random_state.",
    ),
    (
        lambda: mcce.SampleGenerator(Nothing()).fit(X),
        "the model Nothing() drew no rows given {}; sample() must return at least one.",
    ),
    # conditionals
    (
        sampler("norm", "job"),
        "NormSampler does not model categorical targets such as column 'job' (it models numeric); choose another "
        "sampler for this column.",
    ),
    (
        sampler("logreg", "salary"),
        "LogregSampler does not model numeric targets such as column 'salary' (it models categorical and ordered); "
        "choose another sampler for this column.",
    ),
    (
        sampler("poisson", "salary"),
        "Poisson of statsmodels for column 'salary' models whole numbers from 0, and the column holds 24.3 (46 "
        "such of 50 rows); use another sampler, or twopart if many rows share the least value.",
    ),
    (sampler(samplers.CartSampler(min_leaf=0)), "min_leaf is 0; it must be a whole number of at least 1."),
    (sampler(samplers.CartSampler(dialect="sas")), "dialect is 'sas'; known: 'mcce', 'rpart'"),
    (
        sampler(samplers.CtreeSampler(p_values="exact")),
        "p_values is 'exact'; known: 'bonferroni', 'univariate', 'none'",
    ),
    (
        sampler(samplers.ForestSampler(max_features="all")),
        "max_features is 'all'; give 'third', 'sqrt', a share above 0 and at most 1, a number of columns, or None "
        "for all.",
    ),
    (
        sampler(samplers.NormSampler(transform="exp")),
        "transform of NormSampler is 'exp'; allowed: 'log', 'sqrt', 'cuberoot', None.",
    ),
    (
        sampler(samplers.TwoPartSampler(value=-5.0)),
        "value of TwoPartSampler is -5.0, and no training row of column 'salary' has it.",
    ),
    (
        sampler(samplers.EstimatorSampler(3)),
        "estimator is 3; give a regressor, or a classifier with predict_proba "
        "(sklearn.calibration.CalibratedClassifierCV adds it).",
    ),
    (
        sampler(samplers.StatsmodelsSampler("GLMM")),
        "model of StatsmodelsSampler is 'GLMM'; give a class of statsmodels, as sm.GLM, or its name: did you mean "
        "'GLM'?",
    ),
    (
        lambda: mcce.ChainModel(sampler={"salary": Ones()}).fit(NUMBERS).sample(5),
        "Ones drew an array of shape (4,) for 'salary' and 5 rows; sample() must return one value for each row.",
    ),
    (lambda: mcce.register_sampler(3), "register_sampler got the name 3; give a text."),
    (
        lambda: mcce.register_sampler("cart")(Ones),
        "the sampler name 'cart' is taken by CartSampler; choose another name.",
    ),
    (
        lambda: mcce.register_sampler("ones")(dict),
        "dict is not a subclass of ConditionalSampler, so it cannot be registered.",
    ),
    # decisions, distances, judging, data
    (lambda: mcce.Interval(1, 0), "the interval from 1 to 0 has low > high; swap the ends."),
    (lambda: mcce.Interval(0, "one"), "high of the interval is 'one'; it must be a number, or inf for no bound."),
    (
        lambda: mcce.Interval(0, 1, closed="open"),
        "closed is 'open'; it must be one of 'both', 'left', 'right', 'neither'.",
    ),
    (
        lambda: mcce.Interval(1, 1, closed="left"),
        "the interval [1, 1) is empty; a single score needs closed='both'.",
    ),
    (
        lambda: mcce.distances.gower_distance(X, X.head(2), training=X),
        "X has 60 rows and Y 2; give as many, or one row as Y.",
    ),
    (
        lambda: mcce.distances.gower_distance(X, NUMBERS, training=X),
        "Y lacks the column(s) 'job', 'school', 'since', 'rent' of the fitted table; it has 'age', 'salary'.",
    ),
    (
        lambda: mcce.find_relations([1, 2]),
        "X is a list, which is not a table; give a pandas DataFrame or a two-dimensional numpy array.",
    ),
    (lambda: mcce.compare_conditionals(X.head(5)), "X has 5 rows for n_folds=5; give at least 10 rows."),
    (
        lambda: mcce.compare_conditionals(X, "cart"),
        "samplers is 'cart'; give a list of samplers or names, or a dict by label.",
    ),
    (lambda: mcce.compare_conditionals(X, ["cart", "crt"]), "there is no sampler 'crt'; did you mean 'cart'?"),
    (
        lambda: mcce.compare_conditionals(X, ["cart"], fixed=list(X)),
        "fixed names all columns of X; leave one to be modelled.",
    ),
    (
        lambda: mcce.compare_conditionals(X, ["cart"], n_folds=1),
        "n_folds is 1; it must be a whole number of at least 2.",
    ),
    (
        lambda: mcce.criticise(FITTED, X),
        "chain is a MCCE; give a fitted ChainModel, whose conditionals are tested.",
    ),
    (lambda: mcce.criticise(CHAIN, X, level=2), "level is 2; it must be a number above 0 and below 1."),
    (lambda: mcce.datasets.load_loans(0), "n is 0; it must be a whole number of at least 1."),
    (
        lambda: mcce.datasets.load_loans(10, missing=1),
        "missing is 1; it must be a number of at least 0 and below 1.",
    ),
    (
        lambda: mcce.datasets.load_adult("nowhere"),
        "'nowhere' has neither adult.csv.gz nor adult.csv; give the folder that has it.",
    ),
    (
        lambda: mcce.diagnostics.discriminator(X, X.drop(columns="job")),
        "generated lacks the column(s) 'job' of real; compare tables with the same columns.",
    ),
    # files
    (lambda: mcce.MCCE(score).save("e.mcce"), "this MCCE is not fitted; call fit(X) first."),
    (lambda: FITTED.save("."), "'.' is a folder; give the name of a file."),
]


@pytest.mark.parametrize(("call", "text"), CALLS, ids=[text[:50] for _, text in CALLS])
def test_message(call, text):
    with pytest.raises(MCCEError) as error:
        call()
    assert str(error.value) == text


def test_files(tmp_path):
    path = tmp_path / "none" / "e.mcce"
    with pytest.raises(MCCEError) as error:
        FITTED.save(path)
    folder = str(path.parent)
    assert str(error.value) == f"{str(path)!r} lies in a folder that does not exist; create {folder!r} first."
    with pytest.raises(FileNotFoundError, match="nowhere"):
        mcce.load(tmp_path / "nowhere.mcce")
