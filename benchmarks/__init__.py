"""How fast PaPi is, as ratios to plain implementations of the same thing, measured in one run on one machine.

python -m benchmarks            everything; under a quarter of an hour on two cores
python -m benchmarks --quick    what needs no long run; under a minute

One file an item. Each holds a reference written from the specification as one would write it first, and runs it in
turns with ours on the same inputs and threads. Where results must be equal, that is asserted before anything is timed.
"""
