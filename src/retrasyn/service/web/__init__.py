"""The curator over HTTP, in one process with the service.

`server` listens, `front` checks limits, `app` puts the routes together, `running` starts and stops
all of it; the other modules hold a few routes each.
"""
