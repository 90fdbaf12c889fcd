"""Black-box testers of a function of bits: they count their queries and say how sure they are."""

from genscope.probe.agreement import Agreement as Agreement
from genscope.probe.agreement import agree as agree
from genscope.probe.degree import degree_at_most as degree_at_most
from genscope.probe.degree import degree_within as degree_within
from genscope.probe.degree import find_degree as find_degree
from genscope.probe.degree import find_degree_within as find_degree_within
from genscope.probe.heavy import Heavy as Heavy
from genscope.probe.heavy import heavy_components as heavy_components
from genscope.probe.influence import Influences as Influences
from genscope.probe.influence import influences as influences
from genscope.probe.oracle import Oracle as Oracle
from genscope.probe.outcome import Finding as Finding
from genscope.probe.outcome import Outcome as Outcome
from genscope.probe.prompts import Template as Template
from genscope.probe.prompts import logit_difference as logit_difference
from genscope.probe.published import published_degree as published_degree
from genscope.probe.published import published_sparsity as published_sparsity
from genscope.probe.recovery import Recovery as Recovery
from genscope.probe.recovery import recover as recover
from genscope.probe.report import Findings as Findings
from genscope.probe.report import probe as probe
from genscope.probe.sparsity import find_sparsity as find_sparsity
from genscope.probe.sparsity import sparsity_at_most as sparsity_at_most
