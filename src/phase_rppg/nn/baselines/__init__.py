"""Published networks for comparison, one file each."""
