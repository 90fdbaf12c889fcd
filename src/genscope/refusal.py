"""Refusal: a request that makes no sense, with what was given, what is allowed and what to change."""


class Refusal(ValueError):
    """Raised where genscope refuses a request; any other exception out of genscope is a bug."""
