"""scikit-learn's parameter interface (`get_params`, `set_params`, `clone`) without importing scikit-learn.

`Learner` adds the attributes of fitted estimators: `n_features_in_`, `feature_names_in_`, tags.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from mcce.exceptions import InputError, did_you_mean, spell
from mcce.wording import Value

Self = TypeVar("Self", bound="Parameters")


class Parameters:
    """The parameters of an object: those of its constructor, by name.

    Attributes
    ----------
    whole_parameters : names of parameters that are opaque: their own parameters cannot be set through this object, and
        `sklearn.base.clone` does not copy them.
    """

    whole_parameters: ClassVar[tuple[str, ...]] = ()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor parameters by name; `deep` adds those of parameters, as in `sampler__min_leaf`."""
        own = {name: getattr(self, name) for name in self._parameter_names()}
        if not deep:
            return own
        inner = {
            f"{name}__{part}": part_value
            for name, value in own.items()
            if name not in self.whole_parameters and _has_parameters(value)
            for part, part_value in value.get_params().items()
        }
        return own | inner

    def set_params(self: Self, **params: Any) -> Self:
        """Set parameters by name, also those of parameters, as in `sampler__min_leaf=10`; fit again afterwards."""
        names = self._parameter_names()
        inner: dict[str, dict[str, Any]] = {}
        for full in params:
            name, _, part = full.partition("__")
            if name not in names:
                raise InputError(Value(type(self)), f" has no parameter {name!r}; {did_you_mean(name, names)}")
            if part:
                inner.setdefault(name, {})[part] = params[full]
        for name in names:  # first whole parameters, whose own parameters may be set in the same call
            if name in params:
                setattr(self, name, params[name])
        for name, parts in inner.items():
            value = getattr(self, name)
            if name in self.whole_parameters or not _has_parameters(value):
                raise InputError(
                    f"{name}__{next(iter(parts))} cannot be set: {name} of {type(self).__name__} is {spell(value)}, "
                    f"which has no parameters that can be set. Set {name} to an object with these parameters."
                )
            value.set_params(**parts)
        return self

    def __sklearn_clone__(self: Self) -> Self:
        """Return an unfitted copy; the objects of `whole_parameters` are shared."""
        from sklearn.base import clone

        own = self.get_params(deep=False)
        return type(self)(**{k: v if k in self.whole_parameters else clone(v, safe=False) for k, v in own.items()})

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))

    def __repr__(self) -> str:
        changed = changed_parameters(self)
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [
            p.name
            for p in inspect.signature(cls.__init__).parameters.values()
            if p.name != "self" and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]


def changed_parameters(obj: Parameters) -> dict[str, Any]:
    """Return the parameters of an object that differ from their defaults."""
    defaults = {
        p.name: p.default for p in inspect.signature(type(obj).__init__).parameters.values() if p.default is not p.empty
    }
    # compared by repr: arrays and estimators need not have a truth value
    return {k: v for k, v in obj.get_params(deep=False).items() if k not in defaults or repr(defaults[k]) != repr(v)}


class Learner(Parameters):
    """An estimator that learns from a table."""

    def _known_schema(self) -> Any:
        """Return the columns of the training table; None before `fit`."""
        raise NotImplementedError

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the training table."""
        schema = self._known_schema()
        if schema is None:
            raise AttributeError(f"{type(self).__name__} has n_features_in_ after fit(X)")
        return len(schema)

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """The columns of the training table, if it was a frame whose labels are all text."""
        schema = self._known_schema()
        if schema is None or schema.array_dtype is not None or not all(isinstance(n, str) for n in schema.names):
            raise AttributeError(f"{type(self).__name__} has feature_names_in_ after fit(X) with a frame named in text")
        return np.array(schema.names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return self._known_schema() is not None

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=True, string=True, categorical=True, allow_nan=True),
        )


def _has_parameters(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)
