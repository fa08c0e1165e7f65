"""Everything a person or a program reads: JSON, CSV, HTML, plots, attention overlays, the terminal view."""
