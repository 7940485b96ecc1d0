"""What was tuned in the estimator of `steered`, as the plain loops are given it."""

import naive
from retrasyn.mobility import estimator, kernels

TUNING = naive.Tuning(
    kept=estimator.KEPT,
    paces=tuple(estimator.PACES.tolist()),
    filters=estimator.FILTERS,
    field=estimator._FIELD,
    deviation_field=estimator._DEVIATION_FIELD,
    widths=estimator._WIDTHS,
    kinds=estimator._KINDS,
    kind_spreads=estimator._KIND_SPREADS,
    kind_deviations=estimator._KIND_DEVIATIONS,
    few_reports=estimator._FEW_REPORTS,
    rounds=estimator._ROUNDS,
    first_rounds=estimator._FIRST_ROUNDS,
    most_step=kernels._MOST_STEP,
    settled=kernels._SETTLED,
    most_relative=estimator._MOST_RELATIVE,
    shared=estimator._SHARED,
)
