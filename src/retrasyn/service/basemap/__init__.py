"""The base map under the data: a style, tiles from a local file, roads. All of it is optional."""
