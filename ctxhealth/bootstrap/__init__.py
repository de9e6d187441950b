"""What is there before Django is: the virtual environment, the data folder, the first sentences.

Standard library only, Python 3.11 and newer.
"""

from __future__ import annotations
