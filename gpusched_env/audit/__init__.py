"""The audit: an independent recomputation of a run from its folder alone.

It shares no code with the simulator, the model or the costs, and uses nothing but the standard library, so that a
mistake in one of them cannot hide in the other.
"""

from gpusched_env.audit.accountant import audit
from gpusched_env.audit.reading import Difference

__all__ = ["Difference", "audit"]
