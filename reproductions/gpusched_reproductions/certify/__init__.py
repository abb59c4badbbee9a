"""Certificates: how far from the best a round or a run of a small instance is, proven by a solver."""

from gpusched_reproductions.certify.round import RoundCertificate, certify_round
from gpusched_reproductions.certify.static import StaticCertificate, certify_static

__all__ = ["RoundCertificate", "StaticCertificate", "certify_round", "certify_static"]
