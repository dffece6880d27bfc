"""Real candidate sets: feature tables collected for partial-label learning. Part of `--scale cpu`.

A fifth of each table is the test set, a different one for each seed. Columns are standardised on the training set.
"""

from dataclasses import replace

from papi.experiments.after import AFTER
from papi.experiments.paper import CC, PAPI, PICO, PRODEN
from papi.experiments.suites import Entry, Place, Published, Suite, Table, Task

_LABEL, _OTHER_LABEL = "Real-world sets", "More real-world sets"
_NAMES = ("Lost", "MSRCv2", "BirdSong")
# Not run by us. Published numbers for these tables could not be checked, so none are shown.
_OTHERS = {
    "fg-net": "FG-NET",
    "mirflickr": "Mirflickr",
    "soccer-player": "Soccer Player",
    "italian": "Italian",
    "yahoo-news": "Yahoo! News",
}

# Reproductions by others (accuracy in %, five splits of the same kind), not numbers from PaPi's paper.
_REPRODUCTIONS = {
    "PRODEN": ((78.9, 3.0), (54.3, 1.8), (75.6, 1.1)),
    "CC": ((78.2, 2.1), (51.0, 2.0), (74.5, 1.6)),
    "PiCO": ((76.2, 2.3), (54.4, 1.2), (77.2, 1.8)),
}
PUBLISHED: dict[Place, Published] = {
    (entry, _LABEL, name): Published(*number)
    for entry, numbers in _REPRODUCTIONS.items()
    for name, number in zip(_NAMES, numbers, strict=True)
}

DEFAULT = Entry("PaPi, default for tables", "papi", ("passes=two", "mixup=off"))  # as `papi train` does on a table
TABLE = Table(
    "80 % to train on, 20 % to test",
    (PAPI, DEFAULT, PICO, PRODEN, CC, *AFTER),
    tuple(Task(name.lower(), _LABEL, name) for name in _NAMES),
    seeds=(0, 1, 2, 3, 4),
    network="mlp",
    published=PUBLISHED,
    published_by="published",
)
OTHERS = replace(TABLE, tasks=tuple(Task(data, _OTHER_LABEL, name) for data, name in _OTHERS.items()), published={})
SUITE = Suite("real-world", "Real-world candidate sets", (TABLE, OTHERS))
