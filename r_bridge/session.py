"""The R session of this process: started on first use, once, and called from one thread.

1. `session` imports rpy2 and starts R on first use; if one is missing, an `RBridgeError` says how to install it.
2. The functions of ``bridge.R``, ``parity.R`` and ``r/R/conditionals.R`` are in a separate R environment, not in the
   global one.
3. `Session.call` runs one of them inside R's handlers: an error of R becomes an `RBridgeError`, a warning an
   `RWarning`, and R's output is written to the log ``r_bridge``, not to the console.
4. `Session.callback` passes a Python function to R; an exception of it is raised by the enclosing call of R.
5. `HoldsR` objects are pickled with their R objects; R is started with the same packages before these are read.

R has one thread: calls from other threads raise an error, since R would crash. Only rpy2's plain vectors are used, not
its conversions, which other code can change.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.exceptions import InputError, listing
from r_bridge.errors import RBridgeError, RWarning

LIBRARIES = "LD_LIBRARY_PATH"

INSTALL = "pip install 'mcce[r]'"
GET_R = (
    "Install R (Debian, Ubuntu: apt install r-base-dev; others: https://cran.r-project.org), then rpy2 again: "
    f"{INSTALL}. R elsewhere than on the PATH is found by the environment variable R_HOME."
)
R_FILES = ("bridge.R", "parity.R", "r/R/conditionals.R")  # the last is also part of the R package
PACKAGES = ("rpart", "party", "mcceR")
WHERE_FROM = {"mcceR": 'remotes::install_github("NorskRegnesentral/mcceR")'}

NOT_IN_R = re.compile("[\0\ud800-\udfff]")  # a null character ends a text in R; lone surrogates are not UTF-8

log = logging.getLogger("r_bridge")
_session: Session | None = None


def session() -> Session:
    """Return the R session; start it if needed."""
    global _session
    check_thread()
    if _session is None:
        _session = Session(_start_r())
    return _session


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


def check_thread() -> None:
    """Raise if called from another thread than the main one."""
    if threading.current_thread() is not threading.main_thread():
        raise RBridgeError(
            f"R was called from the thread {threading.current_thread().name!r}, and R has a single thread: Python's "
            "main one. Call it from there; samplers and models of r_bridge need no n_jobs."
        )


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
    except RBridgeError:
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
    from importlib.metadata import version

    r = session()
    found = dict(zip(("R", *PACKAGES), r.strings(r.call("versions", list(PACKAGES)))))
    return {name: number for name, number in found.items() if number} | {"rpy2": version("rpy2")}


def arithmetic() -> str:
    """Return how R rounds a product and a sum: "separate", "fused" or "other".

    R's `qnorm` is compared with both variants of `mcce.rng.normal`: a compiler may fuse both operations into one that
    rounds once, as for Debian's R on ARM. "other" is neither: normal numbers may differ from those of mcce in the last
    bits, and so may rpart's choice between equivalent columns.

    Examples
    --------
    >>> import r_bridge
    >>> r_bridge.arithmetic()  # doctest: +SKIP
    'separate'
    """
    from mcce.rng.r import fill_fused_quantiles, fill_quantiles

    p = np.concatenate([np.arange(1, 1000) / 1000.0, 10.0 ** -np.arange(4.0, 100.0, 4.0)])
    r = session()
    theirs, ours = r.numbers(r.call("normal_quantiles", p)), np.empty(p.size)
    for name, fill in (("separate", fill_quantiles), ("fused", fill_fused_quantiles)):
        fill(p, ours)
        if np.array_equal(ours, theirs):
            return name
    return "other"


def _start_r() -> Any:
    """Import rpy2 and start R; suppress warnings of both about the environment."""
    libraries = os.environ.get(LIBRARIES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from rpy2 import rinterface
        except ModuleNotFoundError as error:
            raise RBridgeError(
                f"the bridge to R needs the Python package rpy2, which is not installed ({error}): {INSTALL}, "
                "with R 4.0 or newer on the machine."
            ) from error
        except Exception as error:
            raise RBridgeError(
                f"rpy2 is installed but finds no R it can use ({_first_line(error)}). {GET_R}"
            ) from error
        try:
            rinterface.initr()
        except Exception as error:
            if shutil.which("R") is None and not os.environ.get("R_HOME"):
                raise RBridgeError(
                    f"rpy2 is installed but finds no R: there is no `R` on the PATH, and R_HOME is not set. {GET_R}"
                ) from error
            raise RBridgeError(
                f"R was found but does not start: {_first_line(error)}. Does `R` start in a shell?"
            ) from error
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

    def call(self, name: str, *values: Any, **named: Any) -> Any:
        """Call a function of ``bridge.R`` with plain values (see `vector`) or R objects; return an R object."""
        check_thread()
        arguments = self.named_list([*values, *named.values()], [""] * len(values) + list(named))
        self._raised = None
        value, error, warned, printed = self._functions["run"](self._functions[name], arguments)
        for line in self.strings(printed):
            log.info("%s", line)
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised
        if len(error):
            message, where = self.strings(error)
            raise RBridgeError(f"R refused, in {where or 'an expression'}: {message}")
        for line in self.strings(warned):
            warnings.warn(f"R warns: {line}", RWarning, stacklevel=3)
        return value

    @contextmanager
    def callback(self, function: Callable[..., Any]) -> Iterator[Any]:
        """Yield an R function that calls a Python function of R objects; it is valid inside `with`."""
        # rpy2 never frees what it passes to R: pass a list, and empty it at the end
        held: list[Any] = [self, function]

        def guarded(*values: Any) -> Any:
            owner, wanted = held
            # rpy2 would log the exception and return NULL, and R would fail elsewhere
            try:
                return wanted(*values)
            except BaseException as error:
                owner._raised = error
                return owner.ri.NULL

        python_function = self.ri.rternalize(guarded)
        r_function, end = self._functions["forward"](python_function)
        try:
            yield r_function
        finally:
            end()
            held.clear()
            del python_function  # R holds only its address: keep it alive up to here

    def need(self, package: str, what: str) -> None:
        """Raise if a package of R is missing; `what` names the caller that needs it."""
        if not self.has(package):
            code = WHERE_FROM.get(package, f'install.packages("{package}")')
            raise RBridgeError(f"{what} needs R's package {package}, which is not installed; in R: {code}")

    def has(self, package: str) -> bool:
        """Return whether a package of R is installed."""
        return bool(self.call("has_package", package)[0])

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
        many = list(value) if isinstance(value, (list, tuple)) else [value]
        if all(isinstance(v, str) for v in many):
            return self.character(many)
        array = np.asarray(many)
        if array.dtype.kind not in "biuf":
            raise RBridgeError(f"{value!r} cannot be written as a vector of R; give numbers, text, booleans or a dict.")
        return self.array(array)

    def character(self, texts: Sequence[str | None]) -> Any:
        """Write texts as a character vector; None is NA."""
        for text in texts:
            if text is not None and NOT_IN_R.search(text):
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
        made = self.ri.ListSexpVector([self.vector(v) for v in values])
        made.do_slot_assign("names", self.character(names))
        return made

    def with_class(self, value: Any, *classes: str) -> Any:
        """Return an R object with a class set by R; R does not dispatch on an attribute alone."""
        value.rclass = self.character(classes)
        return value

    def strings(self, vector: Any) -> list[str]:
        """Read a character vector of R; NA is the empty text."""
        return ["" if v is self.ri.NA_Character else str(v) for v in vector]

    def texts(self, vector: Any) -> list[str | None]:
        """Read a character vector of R; NA is None."""
        return [None if v is self.ri.NA_Character else str(v) for v in vector]

    def numbers(self, vector: Any) -> npt.NDArray[Any]:
        """Read a numeric vector of R as a copy: float64 for doubles, int32 for integers and booleans (NA: smallest)."""
        if not len(vector):
            return np.empty(0)
        values = np.array(vector.memoryview())
        if values.dtype.kind == "f":
            values[np.isnan(values)] = np.nan  # R's NA is a signalling NaN, which raises warnings in casts
        return values

    def parts(self, value: Any) -> dict[str, Any]:
        """Read a named list of R."""
        return dict(zip(self.strings(value.names), value)) if len(value) else {}

    def __repr__(self) -> str:
        return f"Session(R with {listing([p for p in PACKAGES if self.has(p)])})"
