from genscope.models import edelman2022 as edelman2022
from genscope.models import encoding as encoding
