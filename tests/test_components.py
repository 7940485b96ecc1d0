"""What a missing program does to a test."""

import shutil

import pytest

from support import components


@pytest.fixture
def nothing_is_installed(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)


def test_a_program_that_is_there_is_found():
    assert components.need("sh", package="dash").name == "sh"


def test_a_missing_program_is_installed_where_that_is_possible(monkeypatch):
    installed = set()
    monkeypatch.setattr(components, "can_install", lambda: True)
    monkeypatch.setattr(components, "_install", installed.add)
    monkeypatch.setattr(
        shutil, "which", lambda _: "/usr/bin/globe" if "globe-viewer" in installed else None
    )
    assert components.need("globe", package="globe-viewer").name == "globe"


def test_elsewhere_the_test_is_skipped_with_the_command_to_type(monkeypatch, nothing_is_installed):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install -y globe-viewer"):
        components.need("globe", package="globe-viewer")


def test_a_runner_of_all_checks_fails_instead(monkeypatch, nothing_is_installed):
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="apt-get install -y globe-viewer"):
        components.need("globe", package="globe-viewer")
