"""Catalyst's aggregate classes: their one name, and what of their arguments is no expression.

By class and not by name, since a class keeps the name that was written (`std`, `any_value`). The
optimiser has already replaced what is short for something else: BOOL_AND is Min, ANY_VALUE is
First, COUNT_IF is Count.
"""

from __future__ import annotations

from typing import Final

from matcher.model.expr import IGNORE_NULLS, OPAQUE_PREFIX

_NAMES: Final[dict[str, str]] = {
    "Sum": "sum", "Average": "avg", "Count": "count", "Min": "min", "Max": "max",
    "BitAndAgg": "bit_and", "BitOrAgg": "bit_or", "BitXorAgg": "bit_xor",
    "MaxBy": "max_by", "MinBy": "min_by", "First": "first", "Last": "last",
    "StddevSamp": "stddev_samp", "StddevPop": "stddev_pop",
    "VarianceSamp": "var_samp", "VariancePop": "var_pop",
    "CovPopulation": "covar_pop", "CovSample": "covar_samp", "Corr": "corr",
    "Skewness": "skewness", "Kurtosis": "kurtosis",
    "CollectSet": "collect_set", "HyperLogLogPlusPlus": "approx_count_distinct",
    "HllSketchAgg": "hll_sketch_agg", "HllUnionAgg": "hll_union_agg", "Percentile": "percentile",
    **{
        f"Kll{java}Agg{kind}": f"kll_{sql}_agg_{kind.lower()}"
        for java, sql in (("Sketch", "sketch"), ("Merge", "merge"))
        for kind in ("Bigint", "Float", "Double")
    },
}  # fmt: skip
_KNOWN: Final = frozenset(_NAMES.values())
# Arguments that are no expressions, as they always are (buffer offsets, NULL for an undefined
# moment, …). Others change what the aggregate means.
_USUAL_PARAMS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("StddevSamp", "StddevPop", "VarianceSamp", "VariancePop"), ("true",)),
    **dict.fromkeys(("CovPopulation", "CovSample", "Corr", "Skewness", "Kurtosis"), ("true",)),
    **dict.fromkeys(("First", "Last"), ("false",)),
    **dict.fromkeys(("HllSketchAgg", "HllUnionAgg"), ("0", "0")),
    "CollectSet": ("0", "0", "true"),  # before Spark 4.2: ("0", "0"), which said the same
    "HyperLogLogPlusPlus": ("0.05", "0", "0"),
    "Percentile": ("0", "0", "false"),
}
# Their only such argument is how they treat overflow, which is a setting.
EVALUATED: Final = frozenset({"Sum", "Average"})


def aggregate_name(cls: str, pretty: str) -> str:
    """The name that the matcher and the text door use.

    A class that is not known here goes by its own name where it goes in Spark by that of one that
    is, as MAX_BY(x, y, k) does, which gives k values: nothing is known of it.

    Args:
        cls: The class.
        pretty: How Spark calls the function.

    >>> aggregate_name("MaxBy", "max_by"), aggregate_name("MaxMinByK", "max_by")
    ('max_by', 'spark:MaxMinByK')
    >>> aggregate_name("Mode", "mode")
    'mode'
    """
    if cls in _NAMES:
        return _NAMES[cls]
    name = pretty.lower()
    return f"{OPAQUE_PREFIX}{cls}" if "." in cls or name in _KNOWN else name


def aggregate_params(cls: str, params: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments that are no expressions, without those that say nothing."""
    if params == _USUAL_PARAMS.get(cls, ()):
        return ()
    if cls == "CollectSet" and params == ("0", "0"):
        return ()
    if cls.startswith("Kll") and cls in _NAMES and params in (("None", "0", "0"), ("0", "0")):
        return ()
    if cls in ("First", "Last") and params == ("true",):
        return (IGNORE_NULLS,)
    if cls == "HyperLogLogPlusPlus" and params[1:] == ("0", "0"):
        return params[:1]
    return params
