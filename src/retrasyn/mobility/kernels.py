"""Compiled kernels of the mobility model, its prior and age histograms."""

import math

import numpy as np
import numpy.typing as npt
from numba import njit


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


N_POINTS = 40  # grid points of a prior
_LOWEST_TOP = 1e-6
_DIRECTIONS = 9
_STAY = 4
_RANK_ONE_ROUNDS = 6
_LEAST_DIRECTION = 1e-5
_FAR = -20.0


@njit(nogil=True, cache=True)
def npmle(
    y: npt.NDArray[np.float64],
    scale: npt.NDArray[np.float64],
    variance: npt.NDArray[np.float64],
    top: float,
    prior: npt.NDArray[np.float64],
    rounds: int,
    mean: npt.NDArray[np.float64],
    spread: npt.NDArray[np.float64],
) -> None:
    """Shrink y ~ N(scale theta, variance), theta >= 0 from an unknown prior, fitted by EM.

    `prior` [40] is the start of EM and receives its result; `mean` and `spread` [n] receive the
    posterior mean and variance of theta.
    """
    n = y.size
    points = np.empty(N_POINTS)
    for g in range(N_POINTS):
        points[g] = max(top, _LOWEST_TOP) * (g / (N_POINTS - 1)) ** 2
    likelihood = np.empty((n, N_POINTS))
    for i in range(n):
        least = math.inf
        for g in range(N_POINTS):
            error = y[i] - scale[i] * points[g]
            likelihood[i, g] = error * error / (2.0 * variance[i])
            least = min(least, likelihood[i, g])
        for g in range(N_POINTS):
            likelihood[i, g] = math.exp(least - likelihood[i, g])
    total = np.empty(N_POINTS)
    for _ in range(rounds):
        total[:] = 0.0
        for i in range(n):
            mass = 0.0
            for g in range(N_POINTS):
                mass += prior[g] * likelihood[i, g]
            if mass > 0.0:
                share = 1.0 / (mass * n)
                for g in range(N_POINTS):
                    total[g] += prior[g] * likelihood[i, g] * share
        whole = total.sum()
        if whole > 0.0:
            prior[:] = total / whole
    for i in range(n):
        mass = first = second = 0.0
        for g in range(N_POINTS):
            weight = prior[g] * likelihood[i, g]
            mass += weight
            first += weight * points[g]
            second += weight * points[g] * points[g]
        mean[i] = first / mass if mass > 0.0 else 0.0
        spread[i] = max(second / mass - mean[i] * mean[i], 0.0) if mass > 0.0 else 0.0


@njit(nogil=True, cache=True)
def _fit_cells(
    slow: npt.NDArray[np.float64],
    table: npt.NDArray[np.int32],
    kappa: npt.NDArray[np.float64],
    d: npt.NDArray[np.float64],
) -> None:
    """Fit the cell factor of a rank-one table, given the direction factor."""
    for i in range(d.size):
        above = below = 0.0
        for c in range(_DIRECTIONS):
            if table[i, c] >= 0:
                above += kappa[c] * slow[i, c]
                below += kappa[c] * kappa[c]
        d[i] = max(0.0, above / below)


@njit(nogil=True, cache=True)
def rank_one(
    slow: npt.NDArray[np.float64],
    table: npt.NDArray[np.int32],
    kappa: npt.NDArray[np.float64],
    d: npt.NDArray[np.float64],
) -> None:
    """Fit slow[i, c] ~ d_i kappa_c by alternating least squares, starting from kappa."""
    for _ in range(_RANK_ONE_ROUNDS):
        _fit_cells(slow, table, kappa, d)
        for c in range(_DIRECTIONS):
            above = below = 0.0
            for i in range(d.size):
                if table[i, c] >= 0:
                    above += d[i] * slow[i, c]
                    below += d[i] * d[i]
            kappa[c] = max(_LEAST_DIRECTION, above / below if below > 0.0 else 0.0)
        kappa /= kappa.sum()
    _fit_cells(slow, table, kappa, d)


@njit(nogil=True, cache=True)
def shrink_moves(
    fast: npt.NDArray[np.float64],
    fast_variance: float,
    slow: npt.NDArray[np.float64],
    slow_variance: float,
    table: npt.NDArray[np.int32],
    priors: npt.NDArray[np.float64],
    rounds: int,
    leaving_error: float,
    kernel: npt.NDArray[np.float64],
    kernel_variance: npt.NDArray[np.float64],
    density: npt.NDArray[np.float64],
    density_variance: npt.NDArray[np.float64],
) -> None:
    """Turn two estimates of the moves [n_cells, 9] into a transition kernel and a density.

    `priors` [5, 40] hold the mixtures of cells, staying, straight and diagonal moves, and the
    density: the start of EM, overwritten by its result.
    """
    n_cells = table.shape[0]
    kappa = np.full(_DIRECTIONS, 1.0 / _DIRECTIONS)
    d, dhat, spread = np.empty(n_cells), np.empty(n_cells), np.empty(n_cells)
    rank_one(slow, table, kappa, d)
    ones, variance = np.ones(n_cells), np.empty(n_cells)
    for i in range(n_cells):
        squares = 0.0
        for c in range(_DIRECTIONS):
            if table[i, c] >= 0:
                squares += kappa[c] * kappa[c]
        variance[i] = slow_variance / squares
    npmle(d, ones, variance, d.max(), priors[0], rounds, dhat, spread)
    kernel[:] = 0.0
    kernel_variance[:] = 0.0
    for kind in range(3):
        _shrink_directions(
            slow,
            slow_variance,
            table,
            dhat,
            kind,
            priors[1 + kind],
            rounds,
            kernel,
            kernel_variance,
        )
    for i in range(n_cells):
        row = kernel[i].sum()
        if row > 0.0:
            kernel_variance[i] /= row * row
    normalise_rows(kernel, table)
    if leaving_error > 0.0:
        calibrate(kernel, table, dhat, slow, slow_variance, leaving_error)
    z = np.empty(n_cells)
    for i in range(n_cells):
        squares = above = 0.0
        for c in range(_DIRECTIONS):
            if table[i, c] >= 0:
                above += kernel[i, c] * fast[i, c]
                squares += kernel[i, c] * kernel[i, c]
        z[i] = above / squares
        variance[i] = fast_variance / squares
    npmle(z, ones, variance, z.max(), priors[4], rounds, density, density_variance)
    whole = density.sum()
    for i in range(n_cells):
        density[i] = density[i] / whole if whole > 0.0 else 1.0 / n_cells
        density_variance[i] = density_variance[i] / (whole * whole) if whole > 0.0 else 0.0


@njit(nogil=True, cache=True)
def normalise_rows(kernel: npt.NDArray[np.float64], table: npt.NDArray[np.int32]) -> None:
    """Normalise every row to sum 1; a row without mass becomes uniform."""
    for i in range(table.shape[0]):
        row = kernel[i].sum()
        n_near = 0
        for c in range(_DIRECTIONS):
            n_near += table[i, c] >= 0
        for c in range(_DIRECTIONS):
            if table[i, c] >= 0:
                kernel[i, c] = kernel[i, c] / row if row > 0.0 else 1.0 / n_near


@njit(nogil=True, cache=True)
def positive_mean(mean: float, error: float) -> float:
    """Return the mean of a normal variable that is known to be positive."""
    z = mean / error
    if z < _FAR:  # the limit, where the ratio below would be 0 / 0
        return error / -z
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return mean + error * density / (0.5 * math.erfc(-z / math.sqrt(2.0)))


@njit(nogil=True, cache=True)
def calibrate(
    kernel: npt.NDArray[np.float64],
    table: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64],
    slow: npt.NDArray[np.float64],
    slow_variance: float,
    leaving_error: float,
) -> None:
    """Scale all leaving moves so that their share is within a standard error of the estimated sum.

    Shrunk one by one, many small moves add up to too much. Their sum, everything except staying,
    is known better: its variance is `leaving_error` times that of one move.
    """
    leaving = staying = now = whole = 0.0
    for i in range(table.shape[0]):
        staying += slow[i, _STAY]
        leaving += slow[i].sum() - slow[i, _STAY]
        now += weights[i] * (1.0 - kernel[i, _STAY])
        whole += weights[i]
    total = leaving + staying
    if now <= 0.0 or whole <= 0.0 or total <= 0.0:
        return
    error = math.sqrt(leaving_error * slow_variance) / total
    share = min(positive_mean(leaving / total, error), 1.0)
    now /= whole
    factor = min(max(now, share - error), share + error) / now
    for i in range(table.shape[0]):
        bent = min(factor * (1.0 - kernel[i, _STAY]), 0.999)
        own = bent / (1.0 - kernel[i, _STAY]) if kernel[i, _STAY] < 1.0 else 0.0
        for c in range(_DIRECTIONS):
            kernel[i, c] = 1.0 - bent if c == _STAY else kernel[i, c] * own


@njit(nogil=True, cache=True)
def _shrink_directions(
    slow: npt.NDArray[np.float64],
    slow_variance: float,
    table: npt.NDArray[np.int32],
    dhat: npt.NDArray[np.float64],
    kind: int,
    prior: npt.NDArray[np.float64],
    rounds: int,
    kernel: npt.NDArray[np.float64],
    kernel_variance: npt.NDArray[np.float64],
) -> None:
    """Shrink the moves of one kind (0 stay, 1 straight, 2 diagonal) relative to their cells."""
    n_cells = table.shape[0]
    y, scale = np.empty(4 * n_cells), np.empty(4 * n_cells)
    n = 0
    above = below = 0.0
    for i in range(n_cells):
        for c in range(_DIRECTIONS):
            if table[i, c] >= 0 and _kind(c) == kind:
                y[n], scale[n] = slow[i, c], dhat[i]
                above += slow[i, c] * dhat[i]
                below += dhat[i] * dhat[i]
                n += 1
    if n == 0:  # a grid of one cell has no neighbours
        return
    slope = above / below if below > 0.0 else 0.0
    top = 1.2 if kind == 0 else min(1.2, max(1e-3, 12.0 * slope))
    mean, spread = np.empty(n), np.empty(n)
    npmle(y[:n], scale[:n], np.full(n, slow_variance), top, prior, rounds, mean, spread)
    n = 0
    for i in range(n_cells):
        for c in range(_DIRECTIONS):
            if table[i, c] >= 0 and _kind(c) == kind:
                kernel[i, c] = mean[n]
                kernel_variance[i, c] = spread[n]
                n += 1


@njit(inline="always")
def _kind(direction: int) -> int:
    """Return 0 for staying, 1 for a straight and 2 for a diagonal step."""
    return 0 if direction == _STAY else 2 - direction % 2
