"""`retrasyn receipt`: what it shows, what it recomputes, how it ends."""

import json

import pytest

from retrasyn import write
from retrasyn.privacy.receipt import GUESSABLE
from retrasyn.receipts.files import receipt_place, write_with_receipt
from support.command_line import assert_one_line, run
from support.made_receipts import RUNS, city, receipt
from support.made_receipts import run as made


@pytest.fixture
def path(tmp_path):
    out = tmp_path / "out.parquet"
    write_with_receipt(made("steered").synthetic, receipt("steered"), out, receipt_place(out))
    return receipt_place(out)


def tamper(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_what_was_promised_and_spent_is_shown_in_plain_words(path):
    outcome = run("receipt", "show", path)
    assert outcome.code == 0
    assert outcome.out.startswith(f"{GUESSABLE}: all noise follows from a number")
    for words in ("What is not protected", "worst window", "lifetime", "two devices", "sha256"):
        assert words in outcome.out
    assert all(len(line) <= 92 for line in outcome.out.splitlines())


@pytest.mark.parametrize("name", RUNS)
def test_every_kind_of_run_can_be_shown(name, tmp_path):
    place = tmp_path / "x.receipt.json"
    place.write_text(receipt(name).to_json())
    outcome = run("receipt", "show", place)
    known = receipt(name).seed is not None
    whole = "Private for a person's day, NOT for the person" if "person-day" in name else "Private"
    private = GUESSABLE if known else f"{whole}: epsilon {receipt(name).epsilon:g} over any 4"
    assert outcome.code == 0
    assert outcome.out.startswith("NOT PRIVATE: true" if name == "exact" else private)
    assert ("not counted" in outcome.out) == (receipt(name).composition is None)
    assert ("release 2 of this data" in outcome.out) == (name == "counted twice")
    assert "none yet" in outcome.out
    assert ("secret" in outcome.out) == (receipt(name).seed is None)


def test_a_broken_promise_is_the_headline(path):
    tamper(path, within_guarantee=False)
    assert run("receipt", "show", path).out.startswith("OUTSIDE THE GUARANTEE")


def test_a_sound_receipt_ends_well_and_says_what_it_could_not_know(path):
    outcome = run("receipt", "verify", path)
    assert outcome.code == 0
    assert "cannot be recomputed: needs the input" in outcome.out
    assert outcome.out.splitlines()[-1] == "16 hold, 0 FAIL, 1 cannot be recomputed"


def test_a_release_of_many_shards_can_be_named(tmp_path):
    write(city(), tmp_path / "real.parquet")
    out = tmp_path / "parts.parquet"
    box = ("--box", "0,0,10,10", "--quiet")
    assert run("synthesize", tmp_path / "real.parquet", "-o", out, "--parts", *box).code == 0
    place = receipt_place(out).rename(tmp_path / "moved.receipt.json")

    outcome = run("receipt", "verify", place, "--data", out)

    assert (outcome.code, outcome.err) == (0, "")
    assert "is the file it was made with" in outcome.out


def test_with_the_input_everything_is_recomputed(path, tmp_path):
    write(city(), tmp_path / "real.parquet")
    outcome = run("receipt", "verify", path, "--input", tmp_path / "real.parquet")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1] == "17 hold, 0 FAIL, 0 cannot be recomputed"


def test_a_check_that_fails_is_exit_code_one(path):
    tamper(path, epsilon=0.5)
    outcome = run("receipt", "verify", path)
    assert outcome.code == 1
    assert "FAIL  noise: " in outcome.out
    assert outcome.err == ""


def test_the_checks_are_told_as_json(path):
    tamper(path, gap=3)
    outcome = run("receipt", "verify", path, "--json")
    told = json.loads(outcome.out)
    assert (outcome.code, told["ok"]) == (1, False)
    by_name = {check["name"]: check for check in told["checks"]}
    assert by_name["gap"]["verdict"] == "FAIL"
    assert by_name["gap"]["fields"] == ["unit", "window", "gap"]
    assert by_name["run"]["verdict"] == "unknown"


def test_another_file_can_be_named(path, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    (tmp_path / "out.parquet").rename(other / "out.parquet")
    assert "needs the released file" in run("receipt", "verify", path).out
    outcome = run("receipt", "verify", path, "--data", other / "out.parquet")
    assert (outcome.code, "needs the released file" in outcome.out) == (0, False)


def test_what_is_no_receipt_is_refused_in_one_line(path, tmp_path):
    assert_one_line(run("receipt", "verify", tmp_path / "out.parquet"), "is not a receipt")
    assert_one_line(run("receipt", "show", tmp_path / "gone"), "cannot be read")
    assert_one_line(run("receipt", "verify", path, "--data", tmp_path), "is no file")
    assert_one_line(run("receipt", "verify", path, "--input", tmp_path / "no.csv"), "no.csv")


def test_a_page_stands_on_its_own(path, tmp_path):
    page = tmp_path / "receipt.html"
    outcome = run("receipt", "show", path, "--html", page)
    text = page.read_text()
    assert outcome.code == 0
    assert f">{GUESSABLE}</h1>" in text
    assert "What was recomputed" in text
    assert "<script" not in text
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    assert not [word for word in ("http://", "https://", "src=", "@import") if word in text]


def test_what_a_receipt_says_cannot_become_part_of_the_page(path, tmp_path):
    page = tmp_path / "receipt.html"
    tamper(path, guarantee="<script>alert(1)</script>", not_protected=['"><img src=x>'])
    assert run("receipt", "show", path, "--html", page).code == 0
    assert "<script>" not in page.read_text()
    assert "<img" not in page.read_text()


def test_a_page_goes_where_it_can_be_written(path, tmp_path):
    assert_one_line(run("receipt", "show", path, "--html", tmp_path / "no" / "x.html"), "no")


def test_without_a_command_the_help_is_shown():
    assert "verify" in run("receipt").out + run("receipt").err
