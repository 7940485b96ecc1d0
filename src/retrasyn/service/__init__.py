"""The curator as a service: real devices, real rounds, durable reports, releases over HTTP."""
