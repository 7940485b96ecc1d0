"""Data like GeoLife's: few people, some days of each over years, a trip or two on them."""

import numpy as np

N_PEOPLE, N_DAYS = 182, 1461
STEP = 180  # seconds between two fixes
BOX = (116.1, 39.7, 116.7, 40.2)
_HUBS = np.array([[116.33, 39.98], [116.40, 39.92], [116.46, 39.91], [116.31, 39.90]])
_DAY = 86_400 // STEP


def trips(seed=0, n_people=N_PEOPLE, n_days=N_DAYS):
    """Return person, time in steps, longitude and latitude of every fix, sorted by the first two.

    Everybody lives near the first hub and works near one of them, and is recorded on 2 to 600
    days within 400, on their way there in the morning and back in the evening.
    """
    rng = np.random.default_rng(seed)
    n_recorded = rng.lognormal(3.0, 1.2, n_people).clip(2, 600).astype(int)
    parts = []
    for person in range(n_people):
        home = _HUBS[0] + rng.normal(0, [0.05, 0.04])
        work = _HUBS[rng.integers(4)] + rng.normal(0, 0.01, 2)
        first = rng.integers(0, n_days - 100)
        days = rng.integers(first, min(n_days, first + 400), n_recorded[person])
        for day in np.unique(days):
            for hour, here, there in ((8.5, home, work), (18.5, work, home)):
                if rng.random() < 0.25:
                    continue
                n = rng.integers(7, 30)
                begin = day * _DAY + int((hour + rng.normal(0, 1.2)) * 3600 / STEP)
                way = here + (there - here) * np.linspace(0, 1, n)[:, None]
                way += rng.normal(0, 0.002, (n, 2))
                parts.append((np.full(n, person), begin + np.arange(n), way[:, 0], way[:, 1]))
    person, t, x, y = (np.concatenate(column) for column in zip(*parts, strict=True))
    _, rows = np.unique(person * 10**9 + t, return_index=True)  # sorted; a place at a time
    return person[rows], t[rows], x[rows], y[rows]


def write_fixes(path, seed=0):
    """Write them as a CSV file with clock times."""
    person, t, x, y = trips(seed)
    times = np.datetime64("2007-04-01T00:00:00") + (t * STEP).astype("timedelta64[s]")
    lines = zip(person.tolist(), times.tolist(), x.tolist(), y.tolist(), strict=True)
    with path.open("w") as file:
        file.write("user,time,lon,lat\n")
        file.writelines(f"{p},{when.isoformat()}Z,{a:.6f},{b:.6f}\n" for p, when, a, b in lines)
    return path
