"""Which exceptions are about a request, and which are mistakes of ours.

Source: None (house design).
Departures: None.
Guarantee: exact for ValueError and TypeError that genscope itself raises; what a library raises inside genscope is ours
to explain, and so no refusal, except errors of the system and of text encodings.
"""

import dis


def is_refusal(error: Exception) -> bool:
    """Whether an exception is about the request: from a `raise` of genscope, from the system, or about text."""
    if isinstance(error, OSError | UnicodeError):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    ours = str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0] == "genscope"
    return ours and dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
