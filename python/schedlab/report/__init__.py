# SPDX-License-Identifier: MIT
"""One page that a person who was sent it understands.

In: a folder of runs.
Out: one HTML file with its charts, and the charts as files.
Read next: write.py; page/viewer.js, which moves through the slices.
"""
