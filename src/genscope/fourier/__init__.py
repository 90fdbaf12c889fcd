"""Functions on the Boolean cube: its points and signs, and the grammar of Boolean expressions."""

from genscope.fourier.cube import bits as bits
from genscope.fourier.cube import number_of_table as number_of_table
from genscope.fourier.cube import points as points
from genscope.fourier.cube import signs as signs
from genscope.fourier.cube import table_of_number as table_of_number
from genscope.fourier.expression import Expression as Expression
from genscope.fourier.expression import ExpressionError as ExpressionError
from genscope.fourier.expression import parse as parse
