"""Files that this package writes and reads: instances, and folders of runs. Errors name the faulty field."""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_env.formats.instance_file import instance_json, load_instance, save_instance
    from gpusched_env.formats.run_folder import RecordedRun, read_run, write_run

__all__ = ["RecordedRun", "instance_json", "load_instance", "read_run", "save_instance", "write_run"]

__getattr__ = lazy_names(__name__, __file__)
