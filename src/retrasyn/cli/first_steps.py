"""What `retrasyn` says when it is given nothing: five things to do next."""

STEPS = (
    ("See it work, in a minute", "retrasyn demo"),
    (
        "Your own CSV, made private",
        "retrasyn synthesize trips.csv -o synthetic.parquet --box 0,0,10,10",
    ),
    (
        "How close that is to the real data",
        "retrasyn evaluate trips.csv synthetic.parquet --report report.html",
    ),
    (
        "A campaign with real devices, and its live map at http://127.0.0.1:8700/",
        "retrasyn serve",
    ),
    ("What to expect with so many people, before anybody reports", "retrasyn plan --users 5000"),
)


def first_steps(version: str) -> str:
    """Return them as a text, with the commands to type."""
    steps = "\n".join(f"  {about}\n    $ {command}" for about, command in STEPS)
    return (
        f"RetraSyn {version}: private synthetic trajectory streams, in real time.\n\n{steps}\n\n"
        "All commands: retrasyn --help. Whether all is well: retrasyn doctor. Pages: retrasyn help"
    )
