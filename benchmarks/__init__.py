"""Speed as ratios against a peer or a plain implementation, in one run on one machine; nothing here is a test."""
