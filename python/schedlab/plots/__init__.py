# SPDX-License-Identifier: MIT
"""What a run looks like: charts, Gantt charts, and exports to other tools.

In: rows of samples, or the records of one run.
Out: Altair specifications, SVG, text, Perfetto and ftrace files.
Read next: charts.py; gantt.py and trace.py for one run.
"""
