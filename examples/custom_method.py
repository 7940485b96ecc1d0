"""A method of your own is a row: existing parts, put together in another way, then compared.

The paper's plainest way of asking (the same share of users every time) gets the synthesiser of
`steered`. How much of our gain comes from asking well, how much from synthesising well? Run it with
`python examples/custom_method.py`; CONTRIBUTING.md says how a row joins the table for good.
"""

import dataclasses

import retrasyn
from retrasyn import METHODS
from retrasyn.synthesis import QuitByLength

GRID = retrasyn.Grid(retrasyn.Box(0, 0, 10, 10), side=6)
MINE = dataclasses.replace(
    METHODS["uniform-p"],
    name="uniform-steered",
    summary="uniform-p with the synthesiser of steered",
    lifecycle=QuitByLength(),
    steers=True,
    continuous=True,
    jump="clamp",
    of_paper=False,
)


def main() -> None:
    """Print how the new row does between the two it was made of."""
    real = retrasyn.demo_city(n_users=10_000, n_timestamps=120, seed=1)
    print("method            spent  density  transition  query  pattern F1")
    for row in (METHODS["uniform-p"], MINE, METHODS["steered"]):
        synthetic, receipt = retrasyn.synthesize(real, row, grid=GRID)
        scores = retrasyn.evaluate(real, synthetic, GRID)
        print(
            f"{row.name:<16}{receipt.worst_window.declared.epsilon:>7g}{scores.density_error:>9.3f}{scores.transition_error:>12.3f}"
            f"{scores.query_error:>7.2f}{scores.pattern_f1:>12.2f}"
        )
    print("\n'spent' is recounted from the grants: no more than epsilon 1 in anybody's window.")


if __name__ == "__main__":
    main()
