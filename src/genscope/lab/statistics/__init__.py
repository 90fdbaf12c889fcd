"""Success curves, thresholds and scaling laws: what counts of successes say, without input or output."""
