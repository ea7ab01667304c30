"""`make bench`: what the platform costs and how fast it changes, each figure a ratio or a spread within one run."""
