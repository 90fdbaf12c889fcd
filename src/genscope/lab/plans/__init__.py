"""What is to be computed: studies, their figures as declarations, selections, and the trials of each."""
