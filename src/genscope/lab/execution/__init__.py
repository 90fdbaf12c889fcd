"""How trials are computed: the runner, and pools of threads, of processes and of machines."""
