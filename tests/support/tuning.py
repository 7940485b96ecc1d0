"""What was tuned in the estimator of `steered`, as the plain loops are given it."""

import naive
from retrasyn.mobility import estimator, kernels

TUNING = naive.Tuning(
    factors=tuple(estimator.FACTORS.tolist()),
    fields=estimator._FIELDS,
    kinds=estimator._KINDS,
    kind_spreads=estimator._KIND_SPREADS,
    few_reports=estimator._FEW_REPORTS,
    rounds=estimator._ROUNDS,
    first_rounds=estimator._FIRST_ROUNDS,
    most_step=kernels._MOST_STEP,
    settled=kernels._SETTLED,
    lag=estimator._LAG,
    most_relative=estimator._MOST_RELATIVE,
    shared=estimator._SHARED,
)
