"""The page of a report: one HTML file that needs nothing but a browser, of a comparison, a run or an experiment.

Pure but for `folders`, which reads what the commands wrote. Importing this needs no plotly; writing a page with figures
does, for its JavaScript.
"""

from gpusched_experiments.page.document import report_html
from gpusched_experiments.page.folders import folder_report
from gpusched_experiments.page.report_data import Picture, ReportData

__all__ = ["Picture", "ReportData", "folder_report", "report_html"]
