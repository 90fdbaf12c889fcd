"""Explicit weights: networks that represent a given function, and their verification."""

from genscope.constructions._base import Construction as Construction
from genscope.constructions._base import weight_norms as weight_norms
from genscope.constructions.bag_of_vectors import bag_any_function as bag_any_function
from genscope.constructions.bag_of_vectors import bag_symmetric as bag_symmetric
from genscope.constructions.bag_of_vectors import bag_threshold as bag_threshold
from genscope.constructions.choice import construct as construct
from genscope.constructions.interpolation import interpolate as interpolate
from genscope.constructions.interpolation import interpolation_bound as interpolation_bound
from genscope.constructions.perceptron_cover import PerceptronCode as PerceptronCode
from genscope.constructions.perceptron_cover import perceptron_decode as perceptron_decode
from genscope.constructions.perceptron_cover import perceptron_encode as perceptron_encode
from genscope.constructions.random_encoding import random_any_function as random_any_function
from genscope.constructions.random_encoding import random_constant as random_constant
from genscope.constructions.random_encoding import sufficient_dimension as sufficient_dimension
from genscope.constructions.recurrent_retrieval import recurrent_retrieval as recurrent_retrieval
from genscope.constructions.retrieval import Retrieval as Retrieval
from genscope.constructions.retrieval import verify_retrieval as verify_retrieval
from genscope.constructions.sparse_function import LARGEST_SUPPORT as LARGEST_SUPPORT
from genscope.constructions.sparse_function import SparseFunction as SparseFunction
from genscope.constructions.sparse_variable import any_function as any_function
from genscope.constructions.sparse_variable import symmetric as symmetric
from genscope.constructions.sparse_variable import threshold_sum as threshold_sum
from genscope.constructions.token_retrieval import token_retrieval as token_retrieval
from genscope.constructions.verification import Verdict as Verdict
from genscope.constructions.verification import smallest_gamma as smallest_gamma
from genscope.constructions.verification import verify as verify
