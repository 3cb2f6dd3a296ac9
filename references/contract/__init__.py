"""The contract of low-level calls: which are legal, and how a library responds to illegal ones.

The contract is data by API and product: ordered tables of clauses. A clause has one sentence, its source, its status
and phase, and a way to break it. If the library's published pages and its code disagree, both are recorded, and a
library may follow either.
"""
