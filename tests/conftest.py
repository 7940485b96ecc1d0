"""Settings every test shares."""

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    deadline=None,  # the first call of a kernel compiles it
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
settings.register_profile("long", parent=settings.get_profile("default"), max_examples=2000)
# A runner in the background may have been told to ignore Ctrl-C; the tests send it on purpose.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
