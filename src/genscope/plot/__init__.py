"""Curves to look at and to restyle for a paper: data first, then matplotlib or plotly as you wish."""

from genscope.plot.curves import bound_curve as bound_curve
from genscope.plot.curves import scaling as scaling
from genscope.plot.curves import spectrum as spectrum
from genscope.plot.curves import success_curve as success_curve
from genscope.plot.picture import Picture as Picture
from genscope.plot.picture import Series as Series
from genscope.plot.picture import paper as paper
