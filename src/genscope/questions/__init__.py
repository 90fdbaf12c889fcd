"""Questions of a user: the samples that a network needs for a function, measured, with theory beside."""

from genscope.questions.answer import Answer as Answer
from genscope.questions.prepared import learn as learn
from genscope.questions.question import Question as Question
from genscope.questions.threshold_search import sample_complexity as sample_complexity
