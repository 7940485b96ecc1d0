"""The curator over HTTP: a small application on one server, in one process with the service.

`server` listens, `app` puts everything together, `reports` is the short way for reports; the other
modules hold a few routes each.
"""
