"""Black-box testers of a Boolean function: they count their queries and say how sure they are."""
