"""The figures of a report page, each as data that plotly draws."""
