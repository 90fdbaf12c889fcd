"""What learns: networks as Equinox modules, paper by paper."""

from genscope.models import bit_classifier as bit_classifier
from genscope.models import bit_transformer as bit_transformer
from genscope.models import edelman2022 as edelman2022
from genscope.models import encoding as encoding
from genscope.models import file as file
from genscope.models import lintilhac2026 as lintilhac2026
from genscope.models import mousavi2025 as mousavi2025
from genscope.models import normalisation as normalisation
from genscope.models import parity_chain as parity_chain
from genscope.models import scalar_attention as scalar_attention
from genscope.models import torch_module as torch_module
from genscope.models._batch import called as called
from genscope.models._batch import outputs as outputs
from genscope.models.bit_classifier import BitClassifier as BitClassifier
from genscope.models.bit_encoder import BitEncoder as BitEncoder
from genscope.models.bit_perceptron import BitPerceptron as BitPerceptron
from genscope.models.bit_recurrent import BitRecurrent as BitRecurrent
from genscope.models.bit_transformer import BitTransformer as BitTransformer
from genscope.models.torch_module import TorchModel as TorchModel
from genscope.models.torch_module import from_torch as from_torch
