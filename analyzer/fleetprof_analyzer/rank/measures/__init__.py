"""The measures of one rank: its time, the causes of its idle time, its kernels, copies, launches and stages."""
