from genscope.measure.attention import SupportMass as SupportMass
from genscope.measure.attention import cls_attention as cls_attention
from genscope.measure.attention import support_mass as support_mass
