"""The R session of this process: started on first use, once, and called from one thread.

1. `session` imports rpy2 and starts R; if one is missing, an `RError` says how to install it.
2. The functions of ``bridge.R`` and ``r/R/conditionals.R`` are in an R environment of their own.
3. `Session.call` runs one of them inside R's handlers: an error of R becomes an `RError`, a warning an `RWarning`, and
   R's output goes to the log ``r_bridge``.
4. `Session.callback` passes a Python function to R; an exception of it is raised by the enclosing call of R.
5. `HoldsR` objects are pickled with their R objects; R is started with the same packages before these are read.

R has one thread: calls from other threads raise an error, since R would crash. Only rpy2's plain vectors are used, not
its conversions, which other code can change.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.exceptions import InputError, MCCEWarning
from mcce.rcompat.from_r import RError, r_holds

INSTALL = "pip install 'mcce[r]'"
GET_R = (
    "Install R (Debian, Ubuntu: apt install r-base-dev; others: https://cran.r-project.org), then rpy2 again: "
    f"{INSTALL}. R elsewhere than on the PATH is found by the environment variable R_HOME."
)
OLDEST = (4, 0)  # of R: its data frames keep text, and sample() rejects
R_FILES = ("bridge.R", "r/R/conditionals.R")  # the second one is also part of the R package
PACKAGES = ("rpart", "party", "mcceR")  # whose versions matter for parity
WHERE_FROM = {"mcceR": 'remotes::install_github("NorskRegnesentral/mcceR")'}
LIBRARIES = "LD_LIBRARY_PATH"

log = logging.getLogger("r_bridge")
_session: Session | None = None


class RWarning(MCCEWarning):
    """A call of R succeeded with a warning."""


def session() -> Session:
    """Return the R session; start it if needed."""
    global _session
    check_thread()
    if _session is None:
        _session = Session(_start_r())
    return _session


def r_is_available() -> bool:
    """Return whether rpy2 and R can be used.

    Examples
    --------
    >>> import r_bridge
    >>> r_bridge.r_is_available() in (True, False)
    True
    """
    try:
        session()
    except RError:
        return False
    return True


def versions() -> dict[str, str]:
    """Return the versions of R, rpy2 and R's packages rpart, party and mcceR, as far as installed.

    Examples
    --------
    >>> import r_bridge
    >>> "rpart" in r_bridge.versions()  # doctest: +SKIP
    True
    """
    r = session()
    of_r = dict(zip(("R", *PACKAGES), r.strings(r.call("versions", list(PACKAGES)))))
    return {name: number for name, number in of_r.items() if number} | {"rpy2": version("rpy2")}


def check_thread() -> None:
    """Raise if called from another thread than the main one."""
    if threading.current_thread() is not threading.main_thread():
        raise RError(
            f"R was called from the thread {threading.current_thread().name!r}, and R has a single thread: Python's "
            "main one. Call it from there, with n_jobs=1."
        )


class HoldsR:
    """Base class of picklable objects that hold R objects.

    rpy2 crashes the process if an R object is unpickled before R is started; methods of R's generics need the packages
    that define them.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        r = session()
        return _new_with_r, (type(self), r.strings(r.call("loaded_packages"))), vars(self)


def _new_with_r(cls: type[HoldsR], packages: list[str]) -> HoldsR:
    """Start R, load the packages if installed, and return an empty object, whose state is unpickled next."""
    session().call("load_packages", packages)
    return cls.__new__(cls)


def _start_r() -> Any:
    """Import rpy2 and start R, without the warnings of both about the environment."""
    libraries = os.environ.get(LIBRARIES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from rpy2 import rinterface
        except ModuleNotFoundError as error:
            raise RError(
                f"the bridge to R needs the Python package rpy2, which is not installed ({error}): {INSTALL}, with R "
                f"{OLDEST[0]}.{OLDEST[1]} or newer on the machine."
            ) from error
        except Exception as error:
            raise RError(f"rpy2 is installed but finds no R it can use ({_first_line(error)}). {GET_R}") from error
        try:
            rinterface.initr()
        except Exception as error:
            if shutil.which("R") is None and not os.environ.get("R_HOME"):
                raise RError(
                    f"rpy2 is installed but finds no R: there is no `R` on the PATH, and R_HOME is not set. {GET_R}"
                ) from error
            raise RError(f"R does not start: {_first_line(error)}. Does `R` start in a shell?") from error
    # R adds its folders there, from which a child process of Python would load another Python's library
    if libraries is None:
        os.environ.pop(LIBRARIES, None)
        os.unsetenv(LIBRARIES)
    else:
        os.environ[LIBRARIES] = libraries
    return rinterface


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


class Session:
    """The R session of this process; returned by `session`."""

    def __init__(self, rinterface: Any) -> None:
        self.ri = rinterface
        self._raised: BaseException | None = None
        files = (resources.files("r_bridge").joinpath(name) for name in R_FILES)
        code = "\n".join(file.read_text(encoding="utf-8") for file in files)
        load = rinterface.evalr("function(code) { e <- new.env(parent = baseenv()); eval(parse(text = code), e); e }")
        self._functions = load(rinterface.StrSexpVector([code]))
        number = self.strings(self.call("versions", []))[0]
        if tuple(int(part) for part in number.split(".")[:2]) < OLDEST:
            raise RError(f"R is version {number}, and the bridge needs {OLDEST[0]}.{OLDEST[1]} or newer. {GET_R}")

    def call(self, name: str, *values: Any) -> Any:
        """Call a function of ``bridge.R`` with plain values (see `vector`) or R objects; return an R object."""
        check_thread()
        arguments = self.named_list(values, [""] * len(values))
        self._raised = None
        value, error, warned, printed = self._functions["run"](self._functions[name], arguments)
        for line in self.strings(printed):
            log.info("%s", line)
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised
        if len(error):
            message, where = self.strings(error)
            raise RError(f"R stopped in {where or 'an expression'}: {message}")
        for line in self.strings(warned):
            warnings.warn(f"R warns: {line}", RWarning, stacklevel=3)
        return value

    @contextmanager
    def callback(self, function: Callable[..., Any]) -> Iterator[Any]:
        """Yield an R function that calls a Python function of R objects; it is valid inside `with`."""
        held: list[Any] = [self, function]  # rpy2 never frees what it passes to R: empty the list at the end

        def guarded(*values: Any) -> Any:
            owner, called = held
            try:  # rpy2 would log the exception and return NULL, and R would fail elsewhere
                return called(*values)
            except BaseException as error:
                owner._raised = error
                return owner.with_class(owner.character([str(error)]), "raised_in_python")

        python_function = self.ri.rternalize(guarded)
        r_function, end = self._functions["forward"](python_function)
        try:
            yield r_function
        finally:
            end()
            held.clear()
            del python_function  # R holds only its address: keep it alive up to here

    def has(self, package: str) -> bool:
        """Return whether a package of R is installed."""
        return bool(self.call("has_package", package)[0])

    def need(self, package: str, what: str) -> None:
        """Raise if a package of R is missing; `what` names the caller that needs it."""
        if not self.has(package):
            code = WHERE_FROM.get(package, f'install.packages("{package}")')
            raise RError(f"{what} needs R's package {package}, which is not installed; in R: {code}")

    def evaluate(self, code: str, data: Any = None) -> Any:
        """Return the value of R code; `data` is a variable in it."""
        return self.call("evaluate", code, data)

    def vector(self, value: Any) -> Any:
        """Return an R object of None, a scalar, a sequence or array of one type, or a dict; R objects are unchanged."""
        if isinstance(value, self.ri.Sexp):
            return value
        if value is None:
            return self.ri.NULL
        if isinstance(value, Mapping):
            return self.named_list(list(value.values()), list(value))
        if isinstance(value, np.ndarray):
            return self.array(value)
        elements = list(value) if isinstance(value, (list, tuple)) else [value]
        if all(isinstance(element, str) for element in elements):
            return self.character(elements)
        array = np.asarray(elements)
        if array.dtype.kind not in "biuf":
            raise RError(f"{value!r} cannot be written as a vector of R; give numbers, text, booleans or a dict.")
        return self.array(array)

    def character(self, texts: Sequence[str | None]) -> Any:
        """Write texts as a character vector; None is NA."""
        for text in texts:
            if text is not None and not r_holds(text):
                raise InputError(
                    f"{text!r} holds a null character or half of a surrogate pair, which R cannot hold; replace it."
                )
        return self.ri.StrSexpVector([self.ri.NA_Character if text is None else text for text in texts])

    def array(self, values: npt.NDArray[Any]) -> Any:
        """Write a one-dimensional array of booleans, integers (of 32 bits, else as doubles) or floats."""
        if values.dtype.kind == "b":
            return self.ri.BoolSexpVector(np.ascontiguousarray(values, dtype=np.int32))
        if values.dtype.kind in "iu" and (not values.size or max(-int(values.min()), int(values.max())) < 2**31):
            return self.ri.IntSexpVector(np.ascontiguousarray(values, dtype=np.int32))
        return self.ri.FloatSexpVector(np.ascontiguousarray(values, dtype=np.float64))

    def named_list(self, values: Sequence[Any], names: Sequence[str]) -> Any:
        """Return a named list of R."""
        vector = self.ri.ListSexpVector([self.vector(value) for value in values])
        vector.do_slot_assign("names", self.character(names))
        return vector

    def with_class(self, value: Any, *classes: str) -> Any:
        """Return an R object with a class set by R; R does not dispatch on an attribute alone."""
        value.rclass = self.character(classes)
        return value

    def strings(self, vector: Any) -> list[str]:
        """Read a character vector of R; NA is the empty text."""
        return ["" if text is self.ri.NA_Character else str(text) for text in vector]

    def numbers(self, vector: Any) -> npt.NDArray[Any]:
        """Read a numeric vector of R as a copy: float64 for doubles, int32 for integers and logicals (NA: smallest)."""
        if not len(vector):
            return np.empty(0)
        values = np.array(vector.memoryview())
        if values.dtype.kind == "f":
            values[np.isnan(values)] = np.nan  # R's NA is a signalling NaN, which raises warnings in casts
        return values

    def parts(self, value: Any) -> dict[str, Any]:
        """Read a named list of R."""
        return dict(zip(self.strings(value.names), value)) if len(value) else {}
