"""Names and levels that are R code are treated as data at every entry point to R."""

import contextlib
import functools

import numpy as np
import pandas as pd
import pytest

from mcce import InputError
from mcce.cli import DONE, main
from mcce.rng import RowStreams
from mcce.table import Schema
from r_bridge import (
    MiceSampler,
    PartyCtreeSampler,
    RBridgeError,
    RModel,
    RpartSampler,
    RSampler,
    SynthpopSampler,
    check_parity,
    compare_samplers,
    explain_mcce,
    from_r,
    to_r,
)
from r_bridge.parity_report import NOT_COMPARED
from r_bridge.session import Session
from tests.marks import nightly_but, nightly_rows, slow_but

PLAIN = ("height", "weight", "job")
HOSTILE = {
    "backtick": "pi` + system('touch marker') + `pi",
    "call": "system('touch marker')",
    "formula": "pi ~ system('touch marker') + pi",
    "double quote": 'x"); system("touch marker"); ("',
    "single quote": "x'); system('touch marker'); ('",
    "newline": "x\nsystem('touch marker')\n",
    "comment": "x #\n+ system('touch marker')",
    "backslash": "x\\",
    "escaped backtick": "x\\` + system('touch marker') + \\`x",
    "braces": "x}}; {system('touch marker')",
    "format": "%s %d %n",
    "dot": ".",
    "keyword": "if",
    "special": "Inf",
    "unicode": "straße ☃",
}


@pytest.fixture(autouse=True)
def no_marker(r, tmp_path, monkeypatch):
    """Fail if executed code has created the marker file."""
    monkeypatch.chdir(tmp_path)
    r.call("evaluate", f"setwd({str(tmp_path)!r})", None)
    yield
    r.call("evaluate", "setwd('/')", None)
    assert not (tmp_path / "marker").exists()


def hostile_names(kind):
    return [f"{HOSTILE[kind]}{suffix}" for suffix in ("", " 2", " 3")]


def make_frame(names=PLAIN, level="clerk", n=150):
    """Return a table of two numbers and two levels."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(n, 2))
    codes = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            names[0]: numbers[:, 0],
            names[1]: numbers[:, 0] + numbers[:, 1],
            names[2]: pd.Categorical.from_codes(codes, [level, f"not {level}"]),
        }
    )


def make_number(frame):
    return frame.iloc[:, 0] + frame.iloc[:, 2].cat.codes + np.random.default_rng(1).normal(size=len(frame))


def make_levels(frame, level, n_levels):
    codes = np.digitize(make_number(frame), [0.5, 1.5][: n_levels - 1])
    return pd.Series(pd.Categorical.from_codes(codes, [level, f"not {level}", f"{level} again"][:n_levels]))


def encode(frame):
    return Schema.from_data(frame).encode(frame)


@pytest.mark.parametrize("kind", HOSTILE)
def test_tables_round_trip(kind):
    frame = make_frame(hostile_names(kind), HOSTILE[kind]).assign(text=hostile_names(kind) * 50)
    pd.testing.assert_frame_equal(from_r(to_r(frame), like=frame), frame)
    assert list(from_r(to_r(frame)).columns) == list(frame.columns)


LM = "function(x, y) lm(y ~ ., cbind(x, y = y))"
NUMBERS = {
    "RpartSampler": RpartSampler(),
    "PartyCtreeSampler": PartyCtreeSampler(),
    "RSampler": RSampler(LM, draw="function(object, newdata, u) predict(object, newdata) + qnorm(u)"),
    **{f"mice {name}": MiceSampler(name) for name in ("norm", "pmm", "cart", "rf")},
    **{f"synthpop {name}": SynthpopSampler(name) for name in ("norm", "cart")},
}
LEVELS = {
    "RpartSampler": RpartSampler(),
    "PartyCtreeSampler": PartyCtreeSampler(),
    "RSampler": RSampler(
        "function(x, y) nnet::multinom(y ~ ., cbind(x, y = y), trace = FALSE)",
        probs="function(object, newdata) predict(object, newdata, type = 'probs')",
    ),
    **{f"mice {name}": MiceSampler(name) for name in ("logreg", "polyreg", "lda", "cart", "rf")},
    **{f"synthpop {name}": SynthpopSampler(name) for name in ("logreg", "polyreg", "ctree")},
}
CASES = [(of, name) for of, samplers in (("numbers", NUMBERS), ("levels", LEVELS)) for name in samplers]
QUICK = [  # one case for each way to call R
    *(("numbers", "RpartSampler"), ("levels", "RSampler"), ("numbers", "mice norm"), ("numbers", "synthpop norm")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("of", "name"), [*QUICK, *nightly_rows(*(case for case in CASES if case not in QUICK))])
def test_samplers_draw_the_same_as_with_plain_names(need, of, name):
    package = {"RpartSampler": "rpart", "PartyCtreeSampler": "party", "RSampler": "nnet"}.get(name, name.split()[0])
    need(package)
    drawn = {}
    for kind, text in {"plain": "clerk", **HOSTILE}.items():
        frame = make_frame(PLAIN if kind == "plain" else hostile_names(kind), text)
        n_levels = 2 if name.endswith("logreg") else 3
        target = make_number(frame) if of == "numbers" else make_levels(frame, text, n_levels)
        table = encode(frame.assign(**{f"{text} 4": target}))
        fitted = (NUMBERS if of == "numbers" else LEVELS)[name].clone().fit(table.first(3), table.column(3))
        drawn[kind] = fitted.sample(table.first(3).take(np.arange(8)), RowStreams.from_seed(1, 8))
    for kind, values in drawn.items():
        np.testing.assert_allclose(values, drawn["plain"], rtol=1e-9, err_msg=kind)


# package, code, and the names that the package itself rejects
MODELS = {
    "lm": ("stats", "lm(y ~ ., data)", set()),
    "glm": ("stats", "glm(y > 0 ~ ., binomial, data)", set()),
    "rpart": (
        "rpart",
        "rpart::rpart(y ~ ., data)",
        {"backtick", "newline", "comment", "backslash", "escaped backtick"},
    ),
    "ctree": ("party", "party::ctree(y ~ ., data)", {"dot"}),
    "partykit": ("partykit", "partykit::ctree(y ~ ., data)", {"dot"}),
    "ranger": ("ranger", "ranger::ranger(x = data[1:3], y = data$y, seed = 1, num.threads = 1)", set()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_but(MODELS, "lm", "rpart"))
def test_models_predict_the_same_as_with_plain_names(need, name):
    package, code, refused_by_r = MODELS[name]
    need(package)
    frame = make_frame()
    y = make_number(frame)
    expected = RModel.from_code(code, frame.assign(y=y)).predict(frame)
    for kind, text in HOSTILE.items():
        rows = make_frame(hostile_names(kind), text)
        if kind in refused_by_r:
            with contextlib.suppress(RBridgeError):
                RModel.from_code(code, rows.assign(y=y)).predict(rows)
            continue
        found = RModel.from_code(code, rows.assign(y=y)).predict(rows)
        if expected.dtype == object:
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=kind)


@pytest.mark.parametrize("kind", slow_but(list(HOSTILE), *list(HOSTILE)[::3]))
@pytest.mark.parametrize(("engine", "package"), [("rpart", "rpart"), *nightly_rows(("ctree", "party"))])
def test_parity_is_compared_under_any_name(need, engine, package, kind):
    need(package)
    frame = make_frame(hostile_names(kind), HOSTILE[kind])
    report = check_parity(
        lambda X: X.iloc[:, 0],
        frame.tail(3),
        frame.iloc[:-3],
        fixed_features=[frame.columns[2]],
        c_int=(0.0, np.inf),
        fit_autoregressive_model=engine,
        generate_K=50,
        process_measures=("validation", "L0", "gower"),
        use_mccer=False,
    )
    assert report.agrees
    assert NOT_COMPARED not in set(report.table["verdict"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["backtick", "newline", "double quote"])
def test_command_compares_under_any_name(need, kind, tmp_path, capsys):
    need("rpart")
    frame = make_frame(hostile_names(kind), HOSTILE[kind])
    frame.assign(y=make_number(frame)).to_csv(tmp_path / "rows.csv", index=False)
    options = [
        "--response",
        "y",
        "--decision=0,inf",
        "--engine",
        "rpart",
        "--n-samples",
        "50",
        "--sep",
        ",",
        "--without-mccer",
    ]
    assert main(["parity", "--train", str(tmp_path / "rows.csv"), *options]) == DONE


@pytest.mark.parametrize("kind", ["backtick", "newline"])
def test_samplers_are_compared_under_any_name(need, kind):
    need("rpart")
    frame = make_frame(hostile_names(kind), HOSTILE[kind])
    compare_samplers(RpartSampler(), "cart", frame, n_samples=50, n_permutations=19, n_trees=5, random_state=1)


@pytest.mark.parametrize("kind", [kind for kind in HOSTILE if kind != "unicode"])
def test_mccer_gets_no_name_that_it_would_evaluate(monkeypatch, kind):
    """mcceR pastes names into formulas; it is never called with such a name."""
    monkeypatch.setattr(Session, "need", lambda *_: None)
    frame = make_frame(hostile_names(kind))
    for call in (explain_mcce, functools.partial(check_parity, use_mccer=True)):
        with pytest.raises(InputError, match=r"is not a plain R name.*rename"):
            call(lambda X: X.iloc[:, 0], frame.tail(3), frame.iloc[:-3])


@pytest.mark.parametrize("text", ["x\0y", "x\ud800"], ids=["null character", "lone surrogate"])
@pytest.mark.parametrize("where", ["name", "text", "level"])
def test_text_that_r_cannot_hold_raises(where, text):
    """R would end a text at the null character, and two levels could become one."""
    known = pd.Index([text, "x"], dtype=object)
    frame = {
        "name": pd.DataFrame(np.zeros((2, 1)), columns=known[:1]),
        "text": pd.DataFrame({"a": pd.Series(known, dtype=object)}),
        "level": pd.DataFrame({"a": pd.Categorical.from_codes([0, 1], known)}),
    }[where]
    with pytest.raises(InputError, match="which R cannot hold"):
        to_r(frame)
