"""What was computed, read back: selections with their thresholds, numbers of figures, pages of trials, verdicts."""
