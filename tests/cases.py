"""Cases that the contract tests run over: to prove a new task, add a line."""

from genscope import tasks

# Name of the case: a random member of the family, from a key.
TASKS = {
    "and": lambda key: tasks.SparseAnd.draw(key, context_length=9, support_size=3),
    "or": lambda key: tasks.SparseOr.draw(key, context_length=9, support_size=3),
    "majority": lambda key: tasks.SparseMajority.draw(key, context_length=9, support_size=4),
    "threshold": lambda key: tasks.SparseThreshold.draw(key, context_length=9, support_size=4, threshold=2),
    "parity": lambda key: tasks.SparseParity.draw(key, context_length=9, support_size=3),
    "parity, biased": lambda key: tasks.SparseParity.draw(key, context_length=9, support_size=3, probability=0.3),
    "tokens": lambda key: tasks.TokenRegression.draw(key, context_length=6, dim=3, sparsity=2),
    "tokens, one t": lambda key: tasks.TokenRegression.draw(key, context_length=6, dim=3, shared_positions=True),
    "silent half": lambda key: tasks.SilentHalf.draw(key, context_length=6, sparsity=2, dim=3, encoding_dim=8),
    "parity chain": lambda key: tasks.ParityChain.draw(key, context_length=9, support_size=4),
    "expression": lambda key: tasks.SparseExpression.draw(key, context_length=9, expression="x0 & ~x1 | x2"),
    "walsh sum": lambda key: tasks.WalshSum.draw(key, context_length=9, degree=2, sparsity=4),
}
