"""Clusters of failing cases: the number of root causes, and the condition of each."""

from poolproof.reports.clusters.cluster import FailureCluster
from poolproof.reports.clusters.clustering import NEEDED, cluster_failures, clusters_of
from poolproof.reports.clusters.describing import asides, describe, headline, kinds_of, tells_a_case, tells_a_cluster

__all__ = [
    "NEEDED",
    "FailureCluster",
    "asides",
    "cluster_failures",
    "clusters_of",
    "describe",
    "headline",
    "kinds_of",
    "tells_a_case",
    "tells_a_cluster",
]
