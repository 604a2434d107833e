"""CSV input and output of the command line: no value is recoded silently."""

import csv
import gzip
import io

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.cli import main
from mcce.cli.tables import ReadOptions, read_table
from mcce.exceptions import InputError

WANTED = ["--response", "y", "--decision", "yes", "--n-samples", "100"]
N = 200


def column(cells, header="v"):
    """A file of one column and a number."""
    return f"{header},n\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells))


def read(tmp_path, text, name="t.csv", missing=(), kind=None):
    """Return the first column as read from a training file."""
    opened = gzip.open if name.endswith(".gz") else open
    with opened(tmp_path / name, "wt", encoding="utf-8", newline="") as file:
        file.write(text)
    options = ReadOptions(missing=missing, kinds={} if kind is None else {"v": kind})
    source = read_table("--train", str(tmp_path / name), options)
    return source.read(source.find_readings(source.table.columns[:1])).iloc[:, 0]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "2", "-3"], [1, 2, -3]),
        (["1", "", "3"], [1.0, np.nan, 3.0]),
        (["1", " ", "3"], [1.0, np.nan, 3.0]),
        (["1.10", "2.00"], [1.1, 2.0]),
        (["1e3", "-.5", "+7."], [1000.0, -0.5, 7.0]),
        (["0.1", "0", "-0.25"], [0.1, 0.0, -0.25]),
        (["-0.0", "0.0"], [0.0, 0.0]),
        (["", ""], [np.nan, np.nan]),
        (["True", "False"], [True, False]),
        (["TRUE", "FALSE"], [True, False]),
        (["TRUE", "True"], ["TRUE", "True"]),
        (["NA", "None", "", "null", "b"], ["NA", "None", np.nan, "null", "b"]),
        (["00026", "10115", ""], ["00026", "10115", np.nan]),
        (["007", "NA"], ["007", "NA"]),
        (["3A", "7B", "12"], ["3A", "7B", "12"]),
        ([" a", "a"], [" a", "a"]),
        (["0.30000000000000004", "0.1"], [0.1 + 0.2, 0.1]),  # to the last bit
        (["9007199254740993", "1"], [9007199254740993, 1]),
        (["1", '"12,5"'], [1.0, 12.5]),
        (['"0,125"', '"1,250"'], [0.125, 1.25]),
        (['"1,234"', '"1,234,567"'], [1234, 1234567]),
        (['"1.234,5"', '"0,5"'], [1234.5, 0.5]),
        (["1'234.5", "12'000"], [1234.5, 12000.0]),
        (["\u22123", "4"], [-3, 4]),
        (["1.234", "12.345"], [1.234, 12.345]),
        (['"1.234,5"', "1 234"], [1234.5, 1234.0]),  # two thousands separators: unambiguous
        (["a", " ", "b"], ["a", np.nan, "b"]),
        (["now", "today", "now"], ["now", "today", "now"]),  # read as dates by pandas
    ],
)
def test_detected_cell_types(cells, values, tmp_path):
    expected = pd.Series(values, name="v", dtype=None if not isinstance(values[0], str) else "str")
    pd.testing.assert_series_equal(read(tmp_path, column(cells)), expected)


def test_numbers_with_too_many_digits_are_rounded_and_reported(tmp_path, capsys):
    assert read(tmp_path, column(["123456789012345678901", "7"]), kind="numeric").tolist() == [
        123456789012345678901.0,
        7,
    ]
    said = capsys.readouterr().err
    assert "column 'v' of" in said
    assert "is rounded: line 2 holds '123456789012345678901', which has too many digits for a number. If" in said
    for exact in (["9007199254740993", "1"], ["100000000000000000000", "1"]):
        assert read(tmp_path, column(exact), kind="numeric").tolist() == [int(exact[0]), 1]
    assert "is rounded" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            ["1", "2", "much"],
            r"column 'v' of .*t.csv holds numbers \(1 of 3 cells are not: 'much'\), but line 4 holds 'much'",
        ),
        (["1", "2", "NA"], "or add --missing NA if it means missing, or --kinds v=categorical if these are levels"),
        (["3.5", '"12,5"'], "line 3 holds '12,5'"),
        (['"1,234"', '"12,500"'], "two ways: line 2 holds '1,234', which is 1234 with a decimal '.' and 1.234 with a"),
        (
            ["1.1", "1.10", "1.2"],
            "holds '1.1' and '1.10', which are one number in two spellings. Add --kinds v=categorical",
        ),
        (["123456789012345678901"], "'123456789012345678901', which has too many digits for a number"),
        (["2001-12-31", "now"], r"holds dates like 2024-12-31 \(1 of 2 cells are not: 'now'\)"),
    ],
)
def test_ambiguous_cells_raise(cells, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read(tmp_path, column(cells))
    in_file = [row[0] for row in csv.reader(io.StringIO(column(cells)))][1:]
    assert read(tmp_path, column(cells), kind="categorical").tolist() == in_file


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_reported_line_is_that_of_the_file(name, tmp_path):
    text = 'v,n\n1,"two\nlines"\n\n2,3\nx,4\n'
    with pytest.raises(InputError, match="line 6 holds 'x'"):
        read(tmp_path, text, name)


def test_missing_cells_are_counted_by_column(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,b,c\n1,,x\n,?,y\n3, ,z\n")
    readings_of(tmp_path / "t.csv", missing=["?"])
    assert "missing cells of" in (said := capsys.readouterr().err)
    assert "t.csv: 1 of 'a', 3 of 'b'" in said
    assert "of 'c'" not in said
    read(tmp_path, column(["1", "2"]))
    assert "missing cells" not in capsys.readouterr().err


def test_options_set_cell_types(tmp_path):
    assert read(tmp_path, column(["007", "12"]), kind="numeric").tolist() == [7, 12]
    assert read(tmp_path, column(["1.1", "1.10"]), kind="numeric").tolist() == [1.1, 1.1]
    with pytest.raises(InputError, match="is numeric by option, but line 3 holds 'x'"):
        read(tmp_path, column(["007", "x"]), kind="numeric")
    numbers = read(tmp_path, column(["1", "NA", "?", "4"]), missing=["NA", "?"])
    np.testing.assert_array_equal(numbers, [1, np.nan, np.nan, 4])


def test_duplicate_column_name_raises(tmp_path):
    with pytest.raises(InputError, match=r"has the column\(s\) 'a' more than once; rename them"):
        read(tmp_path, "a,b,a\n1,2,3\n")


def test_numbers_of_a_german_file_are_written_in_its_format(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = pd.DataFrame({"Gehalt": np.tile(np.arange(1000.0, 41_000.0, 400.0), 2), "Alter": np.arange(200) % 50 + 20})
    explainer = mcce.MCCE(lambda rows: rows["Gehalt"] >= 17_300, decision=True, fixed=["Alter"], random_state=1).fit(X)
    explainer.explain(X.head(2), n_samples=20, sparse=True)
    monkeypatch.setattr("mcce.cli.fitting.load_explainer", lambda *_: explainer)
    (tmp_path / "bank.mcce").touch()
    (tmp_path / "neu.csv").write_text("Nr;Gehalt;Alter\n1;1.200,00;30\n2;12.000,50;40\n")
    arguments = ["explain", "bank.mcce", "neu.csv", "--id", "Nr", "--n-samples", "200", "--sparse", "--out", "cf.csv"]
    assert main(arguments) == 0
    found = pd.read_csv("cf.csv", sep=";", dtype=str)["Gehalt"]
    assert found.str.fullmatch(r"\d{5},\d").tolist() == [True, True]
    assert (found.str.replace(",", ".").astype(float) >= 17_300).all()


# ---- files of different locales: values read, reports and errors

GERMAN_FILE = """Nr;Gehalt;Ort;Seit;PLZ;Faktor
001;1.234,50;Köln;31.12.2001;01069;1.500
002;12.000,00;Köln ;01.02.2003;10115;2.250
003;999,25;NA;05.06.2010;01069;1.000
"""
ENGLISH_FILE = 'id,salary,since,member\n1,"1,234.50",2001-12-31,TRUE\n2,"12,000.00",2003-02-01,FALSE\n'
DATES_FILE = "id,born\n1,03/04/1980\n2,05/06/1990\n"


def readings_of(path, **options):
    source = read_table("--train", str(path), ReadOptions(**options))
    return source.read(source.find_readings(source.table.columns))


def test_german_file_is_read_and_every_choice_is_reported(tmp_path, capsys):
    (tmp_path / "de.csv").write_text(GERMAN_FILE, encoding="utf-8-sig")
    with pytest.raises(InputError, match=r"'31.12.2001'. For dates add --date-format Seit=FORMAT"):
        readings_of(tmp_path / "de.csv")
    table = readings_of(tmp_path / "de.csv", date_format={"Seit": "%d.%m.%Y"})
    assert table["Gehalt"].tolist() == [1234.5, 12000.0, 999.25]
    assert table["Faktor"].tolist() == [1500, 2250, 1000]  # 1.500 is read as 1500 if other columns have decimal commas
    assert table["Nr"].tolist() == ["001", "002", "003"]
    assert table["PLZ"].tolist() == ["01069", "10115", "01069"]
    assert table["Ort"].tolist() == ["Köln", "Köln ", "NA"]
    assert table["Seit"].dt.strftime("%Y-%m-%d").tolist() == ["2001-12-31", "2003-02-01", "2010-06-05"]
    said = capsys.readouterr().err
    assert "is read with separator ';', decimal ',', thousands '.' (in column 'Gehalt', line 2 holds '1.234,50'" in said
    assert "column 'PLZ' of" in said
    assert "line 2 holds '01069', with a leading zero. If these are numbers, add --kinds PLZ=numeric" in said
    assert "has the level(s) 'NA'; if that means missing, add --missing NA" in said
    assert "differ from others in blanks alone, and are kept: 'Köln '" in said


def test_english_file_is_read_and_every_choice_is_reported(tmp_path, capsys):
    (tmp_path / "en.csv").write_text(ENGLISH_FILE)
    table = readings_of(tmp_path / "en.csv")
    assert table["salary"].tolist() == [1234.5, 12000.0]
    assert table["member"].tolist() == [True, False]
    said = capsys.readouterr().err
    assert "is read with separator ',', decimal '.', thousands ','" in said
    assert "is read as dates: line 2 holds '2001-12-31', read as 2001-12-31" in said


def test_options_replace_detection(tmp_path, capsys):
    (tmp_path / "de.csv").write_text(GERMAN_FILE, encoding="latin-1")
    stated = {"sep": ";", "decimal": ",", "thousands": ".", "encoding": "latin-1"}
    table = readings_of(tmp_path / "de.csv", **stated, date_format={"Seit": "%d.%m.%Y"}, missing=["NA"])
    assert table["Gehalt"].tolist() == [1234.5, 12000.0, 999.25]
    assert table["Ort"].isna().tolist() == [False, False, True]
    assert "is read with" not in (said := capsys.readouterr().err)
    assert "dates" not in said


@pytest.mark.parametrize(
    ("text", "encoding", "options", "message"),
    [
        (GERMAN_FILE, "latin-1", {}, r"line 2: the byte 0xf6 in .* is not utf-8. State the encoding, as in --encoding"),
        (
            GERMAN_FILE,
            "utf-8",
            {"decimal": "."},
            "decimal '.', by --decimal .* column 'Gehalt', line 2 holds '1.234,50'",
        ),
        (
            DATES_FILE,
            "utf-8",
            {},
            "neither plain numbers nor ISO dates: line 2 holds '03/04/1980'. For dates add --date-format born=FORMAT",
        ),
        ("a;b\n1.234;1\n5.678;2\n", "utf-8", {}, r"is 1.234 with a decimal '.' and 1234 with .* Add --decimal . or"),
        ("a;b\n1,5;1.5\n2,5;2.5\n", "utf-8", {}, "decimal '.', by --decimal or by other columns, but in column 'a'"),
        ("a,b\n9007199254740993,1\n,2\n", "utf-8", {}, "'9007199254740993', which has too many digits for a number"),
        ("a,b\n1,2\n3\n", "utf-8", {}, r"line 3 has 1 cell\(s\), '3', and the header has 2 names"),
    ],
)
def test_lossy_recoding_raises(text, encoding, options, message, tmp_path):
    (tmp_path / "t.csv").write_text(text, encoding=encoding)
    with pytest.raises(InputError, match=message):
        readings_of(tmp_path / "t.csv", **options)


@pytest.mark.parametrize("ending", ["xlsx", "parquet"])
def test_values_of_workbooks_and_parquet_are_kept_and_text_stays_text(ending, tmp_path, capsys):
    pytest.importorskip("openpyxl" if ending == "xlsx" else "pyarrow", reason="pip install openpyxl pyarrow")
    table = pd.DataFrame(
        {
            "code": ["007", "012", "100"],
            "amount": [1.5, np.nan, 3.25],
            "count": [1, 2, 2**53 + 1 if ending == "parquet" else 3],
            "zip": ["10115", "20095", "80331"],
            "since": pd.to_datetime(["2001-12-31", "2003-02-01", "2010-06-05"]).astype("datetime64[ms]"),
            "member": [True, False, True],
        }
    )
    path = tmp_path / f"t.{ending}"
    table.to_excel(path, index=False) if ending == "xlsx" else table.to_parquet(path)
    pd.testing.assert_frame_equal(readings_of(path), table, check_dtype=ending == "parquet")
    said = capsys.readouterr().err
    assert "column 'zip' of" in said
    assert "row " in said
    assert "'10115'. If these are numbers, add --kinds zip=numeric" in said
    assert readings_of(path, kinds={"zip": "numeric"})["zip"].tolist() == [10115, 20095, 80331]


def test_error_value_of_a_workbook_is_not_missing(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="pip install openpyxl")
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, 2], ["#N/A", 3]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(InputError, match="row 3 holds an error value, as #N/A"):
        readings_of(tmp_path / "t.xlsx")


def test_rows_to_explain_have_the_kinds_of_the_training_data(tmp_path, capsys):
    """1.500 alone is ambiguous; the kinds and marks of the training file decide."""
    (tmp_path / "de.csv").write_text(GERMAN_FILE)
    train = read_table("--train", str(tmp_path / "de.csv"), ReadOptions(date_format={"": "%d.%m.%Y"}))
    readings = train.find_readings(train.table.columns)
    (tmp_path / "new.csv").write_text("Nr;Gehalt;Ort;Seit;PLZ;Faktor\n7;1.500;12;01.02.2003;10115;1.500\n")
    rows = read_table("--explain", str(tmp_path / "new.csv"), ReadOptions()).like(readings)
    found = rows.read(rows.find_readings(readings)).iloc[0]
    assert found.tolist() == ["7", 1500, "12", pd.Timestamp("2003-02-01"), "10115", 1500]
    for cell, message in (("0080,5", "with a leading zero"), ("viel", "is numeric in the training data, but line 2")):
        (tmp_path / "new.csv").write_text(f"Nr;Gehalt;Ort;Seit;PLZ;Faktor\n7;{cell};Köln;01.02.2003;10115;1.500\n")
        rows = read_table("--explain", str(tmp_path / "new.csv"), ReadOptions()).like(readings)
        with pytest.raises(InputError, match=message):
            rows.find_readings(readings)


# ---- through the whole command


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Codes, levels that look missing, prices, numbers with missing cells, booleans of R, ids with zeros."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "who": [f"{i:06d}" for i in range(N)],
            "zip": rng.choice(["00026", "10115", "00950"], N),
            "alley": rng.choice(["NA", "None", "Grvl"], N),
            "price": [f"{x:.2f}" for x in rng.integers(100, 2000, N) / 10],
            "rooms": np.where(rng.random(N) < 0.2, "", rng.integers(1, 9, N).astype(str)),
            "pool": rng.choice(["TRUE", "FALSE"], N),
            "ratio": [f"{x:.12g}" for x in rng.random(N)],
        }
    )
    good = (rows["price"].astype(float) > 80) & (rows["alley"] != "Grvl")
    rows["y"] = np.where(good, "yes", "no")
    rows.to_csv(tmp_path / "train.csv", index=False)
    rows[~good].head(20).to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explain(*more):
    return main(["explain", "--train", "train.csv", "--explain", "new.csv", *WANTED, *more])


def as_text(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["cart", "parametric"])
def test_codes_and_levels_are_written_as_in_the_files_and_numbers_by_value(sampler, files, capsys):
    assert explain("--id", "who", "--out", "cf.csv", "--fixed", "zip,rooms", "--sampler", sampler) in (0, 3)
    said = capsys.readouterr().err
    assert "column 'zip' of train.csv is read as text: line " in said
    assert "column 'alley' of train.csv has the level(s) 'NA', 'None'" in said or "'None', 'NA'" in said
    found, train, new = as_text("cf.csv"), as_text("train.csv"), as_text("new.csv").set_index("who")
    assert len(found) > 5
    own = new.loc[found["id"]].reset_index(drop=True)  # ids keep the text of the file
    pd.testing.assert_series_equal(found["zip"], own["zip"])
    np.testing.assert_array_equal(pd.to_numeric(found["rooms"]), pd.to_numeric(own["rooms"]))
    for name in ("zip", "alley"):
        assert set(found[name]) <= set(train[name])
    assert set(found["pool"]) <= {"True", "False"}
    if sampler == "cart":
        for name in ("price", "ratio"):
            assert set(found[name].astype(float)) <= set(train[name].astype(float))


@pytest.mark.slow
def test_given_missing_words_are_missing(files):
    for name in ("train.csv", "new.csv"):
        table = as_text(name)
        table.assign(rooms=table["rooms"].replace("", "NA")).to_csv(name, index=False)
    assert explain("--out", "cf.csv") == 2
    assert explain("--out", "cf.csv", "--missing", "NA", "--fixed", "rooms", "--id", "who") in (0, 3)
    found, new = as_text("cf.csv"), as_text("new.csv").set_index("who")
    own = new.loc[found["id"], "rooms"].replace("NA", "")
    np.testing.assert_array_equal(pd.to_numeric(found["rooms"]), pd.to_numeric(own))
    assert set(found["alley"]) <= {"None", "Grvl", ""}


@pytest.mark.parametrize(
    ("changes", "arguments", "message"),
    [
        (
            {"price": "0080.00"},
            [],
            "new.csv is numeric in the training data, but line 2 holds '0080.00', with a leading",
        ),
        (
            {"price": "NA"},
            [],
            "new.csv is numeric in the training data, but line 2 holds 'NA'. Correct it, or add --missing NA",
        ),
        ({"pool": "maybe"}, [], "is True or False in the training data, but line 2 holds 'maybe'"),
        ({"who": "000001"}, ["--id", "who"], "'000001' more than once"),
        ({"who": ""}, ["--id", "who"], "has a name that is missing"),
        ({}, ["--kinds", "zip=numeric", "--ordered", "zip=1<2"], "--kinds and --ordered both name 'zip'"),
        ({}, ["--kinds", "zipp=numeric"], "--kinds 'zipp' is not a column of train.csv; did you mean 'zip'"),
    ],
)
def test_invalid_rows_to_explain(changes, arguments, message, files, capsys):
    as_text("new.csv").assign(**changes).to_csv("new.csv", index=False)
    assert explain(*arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_text_cell_in_an_unused_column_is_ignored(files, capsys):
    for name in ("train.csv", "new.csv"):
        table = as_text(name)
        table["who"] = [*table["who"].astype(int).astype(str)[:-1], "unknown"]
        table.to_csv(name, index=False)
    assert explain("--out", "-") == 2
    assert (
        "column 'who' of train.csv holds numbers (1 of 200 cells are not: 'unknown'), but line 201 holds 'unknown'"
        in capsys.readouterr().err
    )
    assert explain("--out", "-", "--id", "who") in (0, 3)
