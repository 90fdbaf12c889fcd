"""One HTML file from a store; `genscope.report.page.write_report` makes it.

Nothing is imported here: the command line uses `genscope.report.words` and must not wait for the drawing library.
"""
