"""GAIA (Hanafy et al., ASPLOS 2024): its trace, its clock and its cluster, on which the rules of the policies run."""
