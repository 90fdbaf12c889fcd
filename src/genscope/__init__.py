"""genscope."""
