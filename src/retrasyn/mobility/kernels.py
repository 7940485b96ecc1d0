"""Compiled kernels of the mobility model, of its estimate and of age histograms."""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

_MOST_STEP = 1.5  # largest change of a parameter in one round
_SETTLED = 0.01
_MOST_WEIGHT = 1e12  # beyond, rounding errors would outweigh the prior


@njit(nogil=True, cache=True)
def build_model(
    released: npt.NDArray[np.float64],
    move_index: npt.NDArray[np.int32],
    n_moves: int,
    move: npt.NDArray[np.float64],
    quit_hazard: npt.NDArray[np.float64],
    enter: npt.NDArray[np.float64],
    quit_share: npt.NDArray[np.float64],
) -> None:
    """Fill a zeroed model from released frequencies; rows without mass stay zero (Eq. 6)."""
    n_cells = quit_hazard.size
    endpoints = released.size > n_moves
    entering = quitting = 0.0
    for cell in range(n_cells):
        quits = 0.0
        if endpoints:
            quits = released[n_moves + n_cells + cell]
            entering += released[n_moves + cell]
            quitting += quits
        leaving = quits
        for direction in range(9):
            if move_index[cell, direction] >= 0:
                leaving += released[move_index[cell, direction]]
        if leaving > 0.0:
            quit_hazard[cell] = quits / leaving
            for direction in range(9):
                if move_index[cell, direction] >= 0:
                    move[cell, direction] = released[move_index[cell, direction]] / leaving
    for cell in range(n_cells):
        if entering > 0.0:
            enter[cell] = released[n_moves + cell] / entering
        if quitting > 0.0:
            quit_share[cell] = released[n_moves + n_cells + cell] / quitting


@njit(nogil=True, cache=True)
def step_ages(
    histograms: npt.NDArray[np.float64],
    hazards: npt.NDArray[np.float64],
    size: float,
    entering: npt.NDArray[np.float64],
    quitting: npt.NDArray[np.float64],
) -> None:
    """Age every expert's population by one timestamp and refill it to its size.

    Rows are experts, columns ages from 1 on; the last column holds that age and above. If
    more survive than `size`, all survivors are scaled down and the excess quits.
    """
    n_experts, oldest = histograms.shape
    for e in range(n_experts):
        gone = survivors = 0.0
        carried = 0.0
        for a in range(oldest):
            here = histograms[e, a]
            left = here * hazards[e, a]
            gone += left
            stayed = here - left
            survivors += stayed
            if a == oldest - 1:
                histograms[e, a] = carried + stayed
            else:
                histograms[e, a] = carried
                carried = stayed
        if survivors > size:
            for a in range(1, oldest):
                histograms[e, a] *= size / survivors
            gone += survivors - size
            survivors = size
        histograms[e, 0] = size - survivors
        entering[e] = size - survivors
        quitting[e] = gone


@njit(nogil=True, cache=True)
def shares_of(
    heights: npt.NDArray[np.float64],
    moves: npt.NDArray[np.int32],
    shares: npt.NDArray[np.float64],
) -> None:
    """Write the share of every move, proportional to exp((u_i + u_j) / 2 + a_kind).

    `heights` [n_cells + 2] are u, then a_1 and the rest of a_2 = 2 a_1 + rest; a_0 is 0.
    """
    n_cells = heights.size - 2
    most = -math.inf
    for s in range(shares.size):
        i, j, kind = moves[s]
        along = kind * heights[n_cells] + (kind // 2) * heights[n_cells + 1]
        shares[s] = 0.5 * (heights[i] + heights[j]) + along
        most = max(most, shares[s])
    total = 0.0
    for s in range(shares.size):
        shares[s] = math.exp(shares[s] - most)
        total += shares[s]
    for s in range(shares.size):
        shares[s] /= total


@njit(nogil=True, cache=True)
def heights_of(
    base: npt.NDArray[np.float64],
    modes: npt.NDArray[np.float64],
    spreads: npt.NDArray[np.float64],
    standard: npt.NDArray[np.float64],
    heights: npt.NDArray[np.float64],
) -> None:
    """Turn standardised parameters [n_modes + 2] into heights: [n_cells + 2]."""
    n_cells, n_modes = modes.shape
    for i in range(n_cells):
        total = base[i]
        for a in range(n_modes):
            total += modes[i, a] * spreads[a] * standard[a]
        heights[i] = total
    for k in range(2):
        heights[n_cells + k] = base[n_cells + k] + spreads[n_modes + k] * standard[n_modes + k]


@njit(nogil=True, cache=True)
def _add_slopes(
    shares: npt.NDArray[np.float64],
    moves: npt.NDArray[np.int32],
    modes: npt.NDArray[np.float64],
    mean: npt.NDArray[np.float64],
    slopes: npt.NDArray[np.float64],
    spread: npt.NDArray[np.float64],
) -> None:
    """Add up what each parameter does to all moves, to arrivals, and to the squares of moves."""
    n_cells, n_modes = modes.shape
    arriving, squares = np.zeros(n_cells), np.zeros(n_cells)
    for s in range(shares.size):
        i, j, kind = moves[s]
        half, quarter = 0.5 * shares[s], 0.25 * shares[s] * shares[s]
        arriving[j] += half
        squares[i] += quarter
        squares[j] += quarter
        for a in range(n_modes):
            slopes[j, a] += half * modes[i, a]
            spread[i, a] += quarter * modes[j, a]
            spread[j, a] += quarter * modes[i, a]
        for k in range(2):
            effect = float(kind if k == 0 else kind // 2)
            slopes[j, n_modes + k] += 2.0 * half * effect
            spread[i, n_modes + k] += 2.0 * quarter * effect
            spread[j, n_modes + k] += 2.0 * quarter * effect
    for i in range(n_cells):
        for a in range(n_modes):
            slopes[i, a] += arriving[i] * modes[i, a]
            spread[i, a] += squares[i] * modes[i, a]
        for a in range(n_modes + 2):
            mean[a] += slopes[i, a]


@njit(nogil=True, cache=True)
def curvature(
    shares: npt.NDArray[np.float64],
    moves: npt.NDArray[np.int32],
    modes: npt.NDArray[np.float64],
    weight: float,
    arrival_weight: float,
    hessian: npt.NDArray[np.float64],
    mean: npt.NDArray[np.float64],
    slopes: npt.NDArray[np.float64],
) -> None:
    """Write the Gauss-Newton curvature of both kinds of reports over modes and kinds of move.

    `mean` [n_modes + 2] receives what each parameter does to all moves together, `slopes`
    [n_cells, n_modes + 2] what it does to the arrivals of a cell, without that common part.
    """
    n_cells, n_modes = modes.shape
    spread, common = np.zeros(slopes.shape), np.zeros(mean.size)
    hessian[:], mean[:], slopes[:] = 0.0, 0.0, 0.0
    _add_slopes(shares, moves, modes, mean, slopes, spread)
    arriving, square = np.zeros(n_cells), np.zeros(n_cells)
    squares = 0.0
    for s in range(shares.size):
        i, j, kind = moves[s]
        share = weight * shares[s] * shares[s]
        squares += share
        arriving[j] += shares[s]
        square[i] += 0.5 * share
        square[j] += 0.5 * share
        one, two = float(kind), float(kind // 2)
        hessian[n_modes, n_modes] += share * one * one
        hessian[n_modes, n_modes + 1] += share * one * two
        hessian[n_modes + 1, n_modes + 1] += share * two * two
        common[n_modes] += share * one
        common[n_modes + 1] += share * two
    for i in range(n_cells):
        squares += arrival_weight * arriving[i] * arriving[i]
        for a in range(n_modes):
            common[a] += square[i] * modes[i, a]
        for a in range(mean.size):
            common[a] += arrival_weight * arriving[i] * slopes[i, a]
    for i in range(n_cells):
        for a in range(mean.size):
            height = weight * modes[i, a] if a < n_modes else 0.0
            slope = arrival_weight * slopes[i, a]
            for b in range(a, mean.size):
                hessian[a, b] += height * spread[i, b] + slope * slopes[i, b]
    for a in range(mean.size):
        for b in range(a, mean.size):
            shared = squares * mean[a] * mean[b] - common[a] * mean[b] - mean[a] * common[b]
            hessian[a, b] += shared
            hessian[b, a] = hessian[a, b]


@njit(nogil=True, cache=True)
def _gradient(
    shares: npt.NDArray[np.float64],
    moves: npt.NDArray[np.int32],
    modes: npt.NDArray[np.float64],
    observed: npt.NDArray[np.float64],
    weight: float,
    arrivals: npt.NDArray[np.float64],
    arrival_weight: float,
    mean: npt.NDArray[np.float64],
    slopes: npt.NDArray[np.float64],
    gradient: npt.NDArray[np.float64],
) -> None:
    """Write the slope of the log-likelihood of both kinds of reports."""
    n_cells, n_modes = modes.shape
    level, missing, arriving = np.zeros(n_cells), arrivals.copy(), np.zeros(n_cells)
    gradient[:] = 0.0
    off = 0.0
    for s in range(shares.size):
        i, j, kind = moves[s]
        gap = weight * shares[s] * (observed[s] - shares[s])
        off += gap
        level[i] += 0.5 * gap
        level[j] += 0.5 * gap
        gradient[n_modes] += gap * kind
        gradient[n_modes + 1] += gap * (kind // 2)
        missing[j] -= shares[s]
        arriving[j] += shares[s]
    for i in range(n_cells):
        off += arrival_weight * arriving[i] * missing[i]
        for a in range(n_modes):
            gradient[a] += level[i] * modes[i, a]
        for a in range(mean.size):
            gradient[a] += arrival_weight * missing[i] * slopes[i, a]
    for a in range(mean.size):
        gradient[a] -= off * mean[a]


@njit(nogil=True, cache=True)
def _factorise(matrix: npt.NDArray[np.float64]) -> None:
    """Replace a positive matrix by its Cholesky factor U: it was U'U. Below are leftovers."""
    for k in range(matrix.shape[0]):
        root = math.sqrt(matrix[k, k])
        for j in range(k, matrix.shape[0]):
            matrix[k, j] /= root
        for i in range(k + 1, matrix.shape[0]):
            multiple = matrix[k, i]
            for j in range(i, matrix.shape[0]):
                matrix[i, j] -= multiple * matrix[k, j]


@njit(nogil=True, cache=True)
def _standardised(
    hessian: npt.NDArray[np.float64], spreads: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the Cholesky factor U, with U'U the curvature of the posterior."""
    factor = np.empty(hessian.shape)
    for a in range(spreads.size):
        for b in range(spreads.size):
            factor[a, b] = spreads[a] * hessian[a, b] * spreads[b]
        factor[a, a] += 1.0
    _factorise(factor)
    return factor


@njit(nogil=True, cache=True)
def _solve(factor: npt.NDArray[np.float64], vector: npt.NDArray[np.float64]) -> None:
    """Solve U'U y = vector in place."""
    for i in range(vector.size):
        vector[i] /= factor[i, i]
        for j in range(i + 1, vector.size):
            vector[j] -= factor[i, j] * vector[i]
    for i in range(vector.size - 1, -1, -1):
        for j in range(i + 1, vector.size):
            vector[i] -= factor[i, j] * vector[j]
        vector[i] /= factor[i, i]


@njit(nogil=True, cache=True)
def _shorten(
    modes: npt.NDArray[np.float64],
    spreads: npt.NDArray[np.float64],
    step: npt.NDArray[np.float64],
) -> float:
    """Shorten a step that would change a height too much; return by how much it would have."""
    change = np.empty(modes.shape[0] + 2)
    heights_of(np.zeros(change.size), modes, spreads, step, change)
    largest = np.abs(change).max()
    if largest > _MOST_STEP:
        step *= _MOST_STEP / largest
    return float(largest)


@njit(nogil=True, cache=True)
def fit(
    base: npt.NDArray[np.float64],
    modes: npt.NDArray[np.float64],
    spreads: npt.NDArray[np.float64],
    moves: npt.NDArray[np.int32],
    observed: npt.NDArray[np.float64],
    weight: float,
    arrivals: npt.NDArray[np.float64],
    arrival_weight: float,
    rounds: int,
    standard: npt.NDArray[np.float64],
    heights: npt.NDArray[np.float64],
    hessian: npt.NDArray[np.float64],
) -> float:
    """Find the most probable parameters by Gauss-Newton, beginning with those given, in place.

    The prior is `base` plus independent modes with these spreads; `observed` and `arrivals` are
    shares with `weight` over the variance of one report. Return the logarithm of how likely the
    reports are under this prior (Laplace's approximation), up to a constant.
    """
    n_cells, n_modes = modes.shape
    mean, slopes = np.empty(n_modes + 2), np.empty((n_cells, n_modes + 2))
    step, shares = np.empty(n_modes + 2), np.empty(moves.shape[0])
    weight, arrival_weight = min(weight, _MOST_WEIGHT), min(arrival_weight, _MOST_WEIGHT)
    heights_of(base, modes, spreads, standard, heights)
    shares_of(heights, moves, shares)
    for _ in range(rounds):
        curvature(shares, moves, modes, weight, arrival_weight, hessian, mean, slopes)
        _gradient(
            shares, moves, modes, observed, weight, arrivals, arrival_weight, mean, slopes, step
        )
        for a in range(step.size):
            step[a] = spreads[a] * step[a] - standard[a]
        _solve(_standardised(hessian, spreads), step)
        largest = _shorten(modes, spreads, step)
        standard += step
        heights_of(base, modes, spreads, standard, heights)
        shares_of(heights, moves, shares)
        if largest < _SETTLED:
            break
    missing, likely = arrivals.copy(), -0.5 * (standard * standard).sum()
    for s in range(shares.size):
        likely -= 0.5 * weight * (observed[s] - shares[s]) ** 2
        missing[moves[s, 1]] -= shares[s]
    likely -= 0.5 * arrival_weight * (missing * missing).sum()
    factor = _standardised(hessian, spreads)
    for a in range(spreads.size):
        likely -= math.log(factor[a, a])
    return float(likely)


@njit(nogil=True, cache=True)
def _times(
    left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Multiply two matrices in an order that depends on no library and no number of threads."""
    product = np.zeros((left.shape[0], right.shape[1]))
    for i in range(left.shape[0]):
        for k in range(left.shape[1]):
            factor = left[i, k]
            for j in range(right.shape[1]):
                product[i, j] += factor * right[k, j]
    return product


@njit(nogil=True, cache=True)
def _divide(factor: npt.NDArray[np.float64], root: npt.NDArray[np.float64]) -> None:
    """Replace R by the solution X of U'X = R."""
    for i in range(root.shape[0]):
        for b in range(root.shape[1]):
            root[i, b] /= factor[i, i]
        for j in range(i + 1, root.shape[0]):
            multiple = factor[i, j]
            for b in range(root.shape[1]):
                root[j, b] -= multiple * root[i, b]


@njit(nogil=True, cache=True)
def covariance_of(
    hessian: npt.NDArray[np.float64], spreads: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the covariance of parameters, given their curvature and their independent priors."""
    root = np.diag(spreads)
    _divide(_standardised(hessian, spreads), root)
    return _times(root.T.copy(), root)


@njit(nogil=True, cache=True)
def observe(
    shares: npt.NDArray[np.float64],
    moves: npt.NDArray[np.int32],
    modes: npt.NDArray[np.float64],
    spreads: npt.NDArray[np.float64],
    observed: npt.NDArray[np.float64],
    weight: float,
    arrivals: npt.NDArray[np.float64],
    arrival_weight: float,
    deviation: npt.NDArray[np.float64],
    covariance: npt.NDArray[np.float64],
) -> None:
    """Let an extended Kalman filter learn from reports, in place.

    `shares` are those it expects; `deviation` and `covariance` are in units of the spreads.
    `observed` and `arrivals` are shares with `weight` over the variance of one report.
    """
    n_cells, n_modes = modes.shape
    n = n_modes + 2
    mean, slopes, gradient = np.empty(n), np.empty((n_cells, n)), np.empty(n)
    hessian, factor, root = np.empty((n, n)), np.empty((n, n)), np.zeros((n, n))
    weight, arrival_weight = min(weight, _MOST_WEIGHT), min(arrival_weight, _MOST_WEIGHT)
    curvature(shares, moves, modes, weight, arrival_weight, hessian, mean, slopes)
    _gradient(
        shares, moves, modes, observed, weight, arrivals, arrival_weight, mean, slopes, gradient
    )
    factor[:] = covariance
    _factorise(factor)
    for a in range(n):
        gradient[a] *= spreads[a]
        for b in range(n):
            hessian[a, b] *= spreads[a] * spreads[b]
            if b >= a:
                root[a, b] = factor[a, b]
    factor = _times(_times(root, hessian), root.T.copy())
    for a in range(n):
        factor[a, a] += 1.0
    _factorise(factor)
    _divide(factor, root)
    covariance[:] = _times(root.T.copy(), root)
    step = np.zeros(n)
    for a in range(n):
        for b in range(n):
            step[a] += covariance[a, b] * gradient[b]
    _shorten(modes, spreads, step)
    deviation += step


@njit(nogil=True, cache=True)
def add_variances(
    shares: npt.NDArray[np.float64],
    moves: npt.NDArray[np.int32],
    modes: npt.NDArray[np.float64],
    covariance: npt.NDArray[np.float64],
    of_moves: npt.NDArray[np.float64],
    of_arrivals: npt.NDArray[np.float64],
) -> None:
    """Add the variance of every share and of every cell's arrivals, by that of the parameters."""
    n_cells, n_modes = modes.shape
    mean, slopes = np.zeros(n_modes + 2), np.zeros((n_cells, n_modes + 2))
    _add_slopes(shares, moves, modes, mean, slopes, np.zeros(slopes.shape))
    arriving = np.zeros(n_cells)
    for s in range(shares.size):
        arriving[moves[s, 1]] += shares[s]
    for i in range(n_cells):
        slopes[i] -= arriving[i] * mean
    spread = _times(slopes, covariance)
    for i in range(n_cells):
        of_arrivals[i] += (spread[i] * slopes[i]).sum()
    effects = np.zeros((n_cells + 2, n_modes + 2))  # of a height, without the common part
    effects[:n_cells, :n_modes] = 0.5 * modes
    effects[n_cells, n_modes] = effects[n_cells + 1, n_modes + 1] = 1.0
    spread = _times(effects, covariance)
    common = (spread * mean).sum(axis=1)
    whole = (_times(mean.reshape(1, -1), covariance)[0] * mean).sum()
    for s in range(shares.size):
        i, j, kind = moves[s]
        one, two = float(kind), float(kind // 2)
        square = whole
        for a in range(n_modes + 2):
            effect = effects[i, a] + effects[j, a]
            effect += one * effects[n_cells, a] + two * effects[n_cells + 1, a]
            along = spread[i, a] + spread[j, a]
            along += one * spread[n_cells, a] + two * spread[n_cells + 1, a]
            square += effect * along
        square -= 2.0 * (common[i] + common[j] + one * common[n_cells] + two * common[n_cells + 1])
        of_moves[s] += shares[s] * shares[s] * max(square, 0.0)
