"""What is measured of one rank: its time, the causes of its idle time, its kernels, copies, launches and stages."""
