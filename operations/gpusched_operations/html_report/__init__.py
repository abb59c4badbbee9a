"""The page of a report: one HTML file that needs nothing but a browser, of a comparison, a run or an experiment.

Pure but for `folders` and `runs`, which read what the commands wrote. Writing a page needs the extra `report`;
importing this does not.
"""

from gpusched_operations.html_report.document import report_html
from gpusched_operations.html_report.folders import folder_report
from gpusched_operations.html_report.report_data import Picture, ReportData

__all__ = ["Picture", "ReportData", "folder_report", "report_html"]
