"""Speed as ratios against a peer or a plain implementation, in one run on one machine; nothing here is a test.

CPU seconds are of one thread: the settings below must be there before NumPy or JAX are imported.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false " + os.environ.get("XLA_FLAGS", "")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
