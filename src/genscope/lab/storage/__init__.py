"""Where results are kept: a SQL database, written once, shared by leases, brought up to date by its version."""
