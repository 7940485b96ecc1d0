"""What the viewer shows of releases: frames, counts and histories, from any `ReleaseSource`.

Nothing here depends on a web server or a campaign.
"""
