"""What is learned: tasks, each with one input law and one target function."""

from genscope.tasks._base import AbstractTask as AbstractTask
from genscope.tasks._base import Batch as Batch
from genscope.tasks.ideal_learner import expected_rivals as expected_rivals
from genscope.tasks.ideal_learner import ideal_sample_size as ideal_sample_size
from genscope.tasks.ideal_learner import information_bound as information_bound
from genscope.tasks.parity_chain import ParityChain as ParityChain
from genscope.tasks.silent_half import SilentHalf as SilentHalf
from genscope.tasks.sparse_boolean import AbstractSparseBoolean as AbstractSparseBoolean
from genscope.tasks.sparse_boolean import AbstractSymmetric as AbstractSymmetric
from genscope.tasks.sparse_boolean import SparseAnd as SparseAnd
from genscope.tasks.sparse_boolean import SparseExpression as SparseExpression
from genscope.tasks.sparse_boolean import SparseMajority as SparseMajority
from genscope.tasks.sparse_boolean import SparseOr as SparseOr
from genscope.tasks.sparse_boolean import SparseParity as SparseParity
from genscope.tasks.sparse_boolean import SparseThreshold as SparseThreshold
from genscope.tasks.token_regression import TokenRegression as TokenRegression
from genscope.tasks.uniqueness import UniqueDraw as UniqueDraw
from genscope.tasks.uniqueness import draw_unique as draw_unique
from genscope.tasks.uniqueness import find_rival as find_rival
from genscope.tasks.walsh_sum import WalshSum as WalshSum
