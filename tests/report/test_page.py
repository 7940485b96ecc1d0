"""The page is one whole, well-formed, harmless file."""

import base64
import hashlib
import html
import json
import re
import sys
from html.parser import HTMLParser

import pytest

from retrasyn.errors import MissingExtra, OutputError
from retrasyn.report.page import check_available
from retrasyn.report.verdict import in_words
from support.report_pairs import EDGES, HOSTILE, RECEIPT, content_of, make_pair, page_of

VOID = {"meta", "link", "input", "br", "img", "hr"}


class Reader(HTMLParser):
    """Follow the tags of a page and keep what its scripts and headings hold."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.texts = {}
        self.attributes = []

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]][-1] += data


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return page_of(make_pair(), tmp_path_factory.mktemp("page") / "report.html")


def test_every_tag_is_closed_and_every_name_is_given_once(page):
    names = [value for _, name, value in read(page).attributes if name == "id"]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("receipt", [RECEIPT, RECEIPT | {"seed": 7}, None], ids=["", "7", "none"])
def test_it_opens_with_a_verdict_and_then_says_that_it_shows_real_data(receipt, tmp_path):
    pair = make_pair()
    page = page_of(pair, tmp_path / "report.html", receipt=receipt)
    start = page.index("<main>")
    first, alarm, *rest = re.findall(r"<p(?: [^>]*)?>(.*?)</p>", page[start:], re.DOTALL)
    grades = content_of(pair).grades
    assert plain_text(first) == in_words(grades)
    assert alarm == "Not private: shows real data"
    second = next(text for text in rest if text.startswith("The synthetic data alone: "))
    assert ("Private: epsilon 1" in second) == (receipt == RECEIPT)


def plain_text(markup):
    """Return the words of a paragraph."""
    return html.unescape(re.sub(r"<[^>]+>", "", markup)).replace("\N{NO-BREAK SPACE}", " ").strip()


def test_every_link_and_label_has_its_goal(page):
    attributes = read(page).attributes
    names = {value for _, name, value in attributes if name == "id"}
    goals = {value[1:] for _, name, value in attributes if name == "href" and value[0] == "#"}
    goals |= {value for _, name, value in attributes if name in {"aria-labelledby", "for"}}
    assert goals <= names


def test_nothing_points_out_of_the_file(page):
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", page)
    sources = [value for _, name, value in read(page).attributes if name in {"src", "href"}]
    assert all(value.startswith(("#", "data:")) for value in sources)


def test_a_browser_is_told_to_run_our_program_and_no_other(page):
    _, program = read(page).texts["script"]
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    assert "innerHTML" not in program


def test_figures_are_json_without_nan(page):
    text, _ = read(page).texts["script"]
    data = json.loads(text, parse_constant=pytest.fail)
    assert data["grid"]["side"] == 5


def test_hostile_words_stay_words(tmp_path):
    receipt = dict.fromkeys(RECEIPT, HOSTILE) | {
        HOSTILE: HOSTILE,
        "settings": {HOSTILE: HOSTILE},
        "not_protected": [HOSTILE],
        "private": False,
    }
    reader = read(page_of(make_pair(), tmp_path / "report.html", title=HOSTILE, receipt=receipt))
    assert reader.texts["h1"] == [HOSTILE]
    assert len(reader.texts["script"]) == 2
    assert "img" not in {tag for tag, _, _ in reader.attributes}
    assert not [name for _, name, _ in reader.attributes if name.startswith("on")]
    assert HOSTILE in reader.texts["li"]


@pytest.mark.parametrize("shape", EDGES.values(), ids=EDGES)
def test_odd_data_makes_a_small_well_formed_page(shape, tmp_path):
    text = page_of(make_pair(**shape), tmp_path / "report.html")
    read(text)
    assert len(text) < 3_000_000


@pytest.mark.parametrize("receipt", [None, {}, {"private": False}, {"rounds": 7}], ids=str)
def test_any_receipt_or_none_makes_a_page(receipt, tmp_path):
    page = page_of(make_pair(), tmp_path / "report.html", receipt=receipt)
    status = "broken" if receipt == {"private": False} else "unknown"
    assert f'class="status {status}"' in page


def test_the_same_again_gives_the_same_bytes(page, tmp_path):
    assert page_of(make_pair(), tmp_path / "again.html") == page


def test_without_the_template_engine_the_page_says_what_to_type(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=r'pip install "retrasyn\[report\]"'):
        check_available()


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(OutputError, match="does not exist"):
        page_of(make_pair(), tmp_path / "nowhere" / "report.html")
