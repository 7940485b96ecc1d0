"""What there is to look at: releases as frames, counts and histories, whatever they come from.

Nothing here knows a web server or a campaign; `source` is all that is asked of the data.
"""
