"""HTML pages: self-contained files that open from disk, without a server or a network."""
