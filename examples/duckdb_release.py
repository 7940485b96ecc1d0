"""A private release in DuckDB: ask it anything in SQL, since all of it is synthetic.

Releases are plain Parquet, those of `retrasyn synthesize` as those of `retrasyn serve`
(`http://HOST:PORT/v1/points?format=parquet`). Needs `pip install duckdb`. Run it with
`python examples/duckdb_release.py`.
"""

import tempfile
from pathlib import Path

import duckdb

import retrasyn

POINTS = """
    create table points as
    select traj_id, t, [least(floor(axis * 0.6), 5)::int for axis in [x, y]] as cell
    from read_parquet(?)
"""
BUSIEST = """
    with counted as (select t // 30 as part, cell, count(*) / 30 as n from points group by all)
    select part, arg_max(cell, n) as cell, max(n) as n from counted group by part order by part
"""
TRIPS = """
    with trips as (
        select arg_min(cell, t) as a, arg_max(cell, t) as b, count(*) as steps
        from points group by traj_id
    )
    select a, b, count(*) as n, avg(steps) as steps
    from trips where a <> b group by all order by n desc, a, b limit 3
"""
STAYING = """
    select avg((cell = before)::int) from (
        select cell, lag(cell) over (partition by traj_id order by t) as before from points
    )
"""


def main() -> None:
    """Make a release, forget the real data, and ask three questions."""
    real = retrasyn.demo_city(n_users=20_000, n_timestamps=120, seed=1)
    synthetic, _ = retrasyn.synthesize(real, box=(0, 0, 10, 10))
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as base:
        path = Path(folder) / "release.parquet"
        retrasyn.write(synthetic, path)
        base.execute(POINTS, [str(path)])
        print("busiest cells [column, row] and the synthetic people in them on average")
        for part, cell, n in base.execute(BUSIEST).fetchall():
            print(f"  t {30 * part:>3}..{30 * part + 29:<3}  {cell}  {n:5.0f}")
        print("most frequent trips")
        for a, b, n, steps in base.execute(TRIPS).fetchall():
            print(f"  {a} to {b}  {n:4d}, {steps:.0f} steps long")
        row = base.execute(STAYING).fetchone()
        print(f"steps that stay in their cell: {row[0] if row else 0:.0%}")


if __name__ == "__main__":
    main()
