"""Cases of a bundle, judged again: the command ``rerun``."""
