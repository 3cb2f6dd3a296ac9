"""The contract of low-level calls: which are legal, and how a library responds to those that are not.

The contract is data by API and product: ordered tables of clauses, each with one sentence, its source, its status and
phase, and how to break it. Where the library's published pages and its code disagree, both are recorded, and a library
is right when it follows either.
"""
