"""Functions on the Boolean cube: points and signs, Boolean expressions, Fourier-Walsh expansions and their analysis."""

from genscope.fourier.cube import bits as bits
from genscope.fourier.cube import number_of_table as number_of_table
from genscope.fourier.cube import points as points
from genscope.fourier.cube import signs as signs
from genscope.fourier.cube import table_of_number as table_of_number
from genscope.fourier.expression import Expression as Expression
from genscope.fourier.expression import ExpressionError as ExpressionError
from genscope.fourier.expression import parse as parse
from genscope.fourier.spectrum import degree as degree
from genscope.fourier.spectrum import from_expression as from_expression
from genscope.fourier.spectrum import from_table as from_table
from genscope.fourier.spectrum import influences as influences
from genscope.fourier.spectrum import level_weights as level_weights
from genscope.fourier.spectrum import noise_sensitivity as noise_sensitivity
from genscope.fourier.spectrum import noise_stability as noise_stability
from genscope.fourier.spectrum import sparsity as sparsity
from genscope.fourier.spectrum import total_influence as total_influence
from genscope.fourier.transform import fwht as fwht
from genscope.fourier.transform import walsh_coefficients as walsh_coefficients
from genscope.fourier.walsh import WalshFunction as WalshFunction
from genscope.fourier.walsh import parity as parity
from genscope.fourier.walsh import random_function as random_function
from genscope.fourier.walsh import tiling as tiling
