"""The environment for instances that no scenario makes."""

from gpusched_env import GpuClusterEnv, Instance


class AnyInstance(GpuClusterEnv):
    """The environment of one instance, with its GPU types and configurations: every episode runs it, to its end."""

    def __init__(self, first: Instance, **settings_: object) -> None:
        super().__init__(instance=first, **{"max_idle_reviews": None, **settings_})
