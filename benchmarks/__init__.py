"""Speed of PaPi relative to plain implementations of the same computation, measured in one run on one machine.

python -m benchmarks            all benchmarks; under 15 minutes on two cores
python -m benchmarks --quick    only the short ones; under a minute

One file per item. Each contains a straightforward reference implementation and alternates it with ours on the same
inputs and number of threads. Where results must be equal, the benchmark asserts that before timing anything.
"""
