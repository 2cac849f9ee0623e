"""Between which ranks a kernel is compared, and what is no difference: the same in the report and in the web UI.

It stands apart from what measures kernels, so that a program that only shows a report needs no numpy.
"""

from typing import Final

FEWEST_OTHERS: Final = 3
"""Other ranks that a rank is compared with, at least."""
LEAST_DIFFERENCE: Final = 0.05
"""Of the others' mean: a mean that is closer to it is no outlier, however little the others differ."""
