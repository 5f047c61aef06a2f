# SPDX-License-Identifier: MIT
"""Commands that need a checkout, and are not in the wheel: what schedlab says of itself, shown.

In: experiments/, tests/ and bench/ of the checkout, and all of schedlab, which imports nothing of this.
Out: verdicts about published reports, dated soaks, schedlab's own speed, a shell in the teaching kernel.
Read next: commands.py; reproduce/steps.py.
"""
