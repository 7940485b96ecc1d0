"""Whether a file is there: an error is not a no."""

import pytest

from retrasyn.errors import OutputError
from retrasyn.files import is_there, replacing


def test_what_is_there_is_there_and_what_is_not_is_not(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    assert is_there(tmp_path)
    assert is_there(tmp_path / "file")
    assert not is_there(tmp_path / "other")
    assert not is_there(tmp_path / "file" / "below")
    assert not is_there(tmp_path / "link")


def test_what_cannot_be_seen_is_an_error(tmp_path):
    (tmp_path / "round").symlink_to(tmp_path / "round")

    for name in ("round", "o" * 300):
        with pytest.raises(OSError, match=name):
            is_there(tmp_path / name)


def test_a_folder_is_never_replaced(tmp_path):
    with pytest.raises(OutputError, match="it is no file"), replacing(tmp_path):
        pass
    assert tmp_path.is_dir()


def test_where_nothing_can_be_written_it_says_so(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"), replacing(tmp_path / "no" / "file"):
        pass
