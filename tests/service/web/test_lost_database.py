"""Over HTTP: with the database deleted under the service, no report is said to be safe."""

import logging

from support.living import living


def test_a_deleted_database_stops_acknowledgements_until_it_is_put_back(tmp_path, caplog):
    with living(tmp_path / "folder") as live:
        first, second, third = live.enrol(3)
        live.open_round(0)
        path = tmp_path / "folder" / "service.sqlite"
        assert live.send(live.report(first, 0)) == "accepted"

        path.rename(tmp_path / "away")
        with caplog.at_level(logging.ERROR):
            refused = live.ask("POST", "/v1/reports", live.report(second, 0))
            assert (refused.status, live.ask("GET", "/readyz").status) == (503, 503)
            assert live.ask_operator("POST", "/v1/operator/tokens", {"n": 1}).status == 503
        assert int(refused.headers["retry-after"]) >= 1
        (said,) = [line.getMessage() for line in caplog.records]
        assert said.startswith("writing failed fault=")
        assert "was deleted while the service ran, and nothing is acknowledged" in said
        assert live.send(live.report(third, 0)) == "busy"

        (tmp_path / "away").rename(path)
        live.wait(lambda: live.ask("GET", "/readyz").status == 200)
        assert live.send(live.report(second, 0)) == "accepted"
