# SPDX-License-Identifier: MIT
"""What a person sees in the terminal; nothing here computes a result.

In: the results of the stages before.
Out: tables and lines in colour, or plain where nobody looks.
Read next: tables.py; then cli/, which calls these.
"""
