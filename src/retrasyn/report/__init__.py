"""The evaluation report: one HTML file with maps and charts."""
