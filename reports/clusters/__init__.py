"""Clusters of failing cases: how many root causes there are, and the condition under which each shows."""

from poolproof.reports.clusters.cluster import FailureCluster, asides, headline, kinds_of, symptoms
from poolproof.reports.clusters.clustering import NEEDED, cluster_failures

__all__ = ["NEEDED", "FailureCluster", "asides", "cluster_failures", "headline", "kinds_of", "symptoms"]
