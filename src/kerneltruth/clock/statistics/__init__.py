"""Pure statistics of timed blocks: intervals of ratios, and what they support."""
