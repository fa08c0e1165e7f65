"""Output of results: JSON, CSV, HTML reports, plots, attention overlays and the terminal view."""
