"""The same experiments, small enough for two cores: `--scale cpu`.

All methods use the network `small`, 10,000 images and the default preset. They are compared at equal epochs and at
equal compute, measured in encoder units: PaPi's 12 epochs of 10 units equal 40 epochs of 3 units. Feature tables
(`real-world`) use the network `mlp` and have their own comparison.
"""

from dataclasses import replace

from papi.experiments import paper, realworld
from papi.experiments.after import AFTER
from papi.experiments.paper import CC, CEILING, DPLL, METHODS, PAPI, PICO, PRODEN, RC
from papi.experiments.suites import Entry, Figure, Suite, Table, Task

EPOCHS = 12
BUDGET = 120  # encoder units per image: PaPi's 12 epochs
IMAGES = 10_000

ALL = (CEILING, *METHODS, *AFTER)
TWO_PASSES = Entry("PaPi, two passes", "papi", ("passes=two", "set_prior=off"))
ONE_PASS = Entry("PaPi, one pass", "papi", ("passes=one", "set_prior=off"))
FORMS = (PAPI, TWO_PASSES, ONE_PASS)


def _with_set_prior(entry: Entry) -> Entry:
    own = (option for option in entry.options if not option.startswith("set_prior="))
    return Entry(f"{entry.label}, set_prior=auto", entry.method, (*own, "set_prior=auto"))


DEFAULT = _with_set_prior(ONE_PASS)  # what `papi train` runs
LISTENING = (DEFAULT, *map(_with_set_prior, (TWO_PASSES, PRODEN, RC, DPLL, PICO)))
DOUBTING = Entry(
    "PaPi, two passes, noise_tolerance=auto", "papi", ("passes=two", "noise_tolerance=auto", "set_prior=off")
)


def fashion(rate: float) -> Task:
    """The images included in the package, with uniform candidate sets."""
    return Task("fashion-mini", "fashion-mini", f"q = {rate:g}", rate)


def part(data: str, label: str, rate: float) -> Task:
    """A subset of the images of a published dataset."""
    return Task(data, label, f"q = {rate:g}", rate, limit=IMAGES)


INSTANCE = Task("fashion-mini", "fashion-mini", "instance-dependent", kind="instance-dependent")
BY_LOOKS = Task(
    "fashion-mini", "fashion-mini", "instance-dependent, paper's rule", kind="instance-dependent", rule="paper"
)
BY_CLASS = tuple(
    Task("fashion-mini", "fashion-mini", f"class-dependent, {name}", kind="class-dependent", matrix=name)
    for name in ("01", "02", "03", "04")  # `pair` at this rate is case 01
)
NOISY = Task("fashion-mini", "fashion-mini", "q = 0.5, truth missing in 20 %", 0.5, kind="noisy")
RATES = tuple(map(fashion, paper.FEW))
HARD = (fashion(0.5), fashion(0.7))
MANY = (part("cifar100", "CIFAR-100", 0.05), part("cifar100", "CIFAR-100", 0.1), part("cifar100-h", "CIFAR-100-H", 0.5))
CIFAR10, SVHN = part("cifar10", "CIFAR-10", 0.5), part("svhn", "SVHN", 0.5)
NEW = (BY_LOOKS, *BY_CLASS, CIFAR10, SVHN, *MANY)  # tasks of no other suite with three seeds
# Sets that depend on the class. On uniform ones, runs with `set_prior=auto` and without it are byte-equal.
UNEVEN = (INSTANCE, BY_LOOKS, *BY_CLASS, MANY[2])
BATCHES = tuple(
    Task("fashion-mini", "fashion-mini, q = 0.5", f"batch {size}", batch_size=size) for size in (32, 64, 128, 256)
)


def both(entries: tuple[Entry, ...], tasks: tuple[Task, ...], seeds: tuple[int, ...] = (0, 1, 2)) -> tuple[Table, ...]:
    """The two comparisons: at equal epochs and at equal compute."""
    return (
        Table("equal epochs", entries, tasks, seeds, epochs=EPOCHS),
        Table("equal compute", entries, tasks, seeds, units=BUDGET),
    )


def _curves(entries: tuple[Entry, ...]) -> Table:
    return Table("equal epochs", entries, HARD, epochs=EPOCHS)


_STRONGEST = (CEILING, *FORMS, PRODEN, DPLL, CC, PICO)  # of the paper's methods
_ONCE = Table("1× budget", (*_STRONGEST, DEFAULT, *AFTER), (*RATES, INSTANCE), units=BUDGET)
_TIMED = replace(_ONCE, entries=_STRONGEST, tasks=(*HARD, INSTANCE))  # runs timed on the same kind of processor
_THRICE = Table("3× budget", (*FORMS, PRODEN), (HARD[1],), (0, 1), units=3 * BUDGET)
_CONVERGING = (PAPI, TWO_PASSES, DEFAULT, PRODEN, CC, PICO)

SUITES = (
    Suite("uniform", "Uniform candidate labels", both(ALL, RATES)),
    Suite("instance-dependent", "Instance-dependent candidate labels", both(ALL, (INSTANCE,))),
    Suite("many-classes", "100 classes, 100 images of each", both((CEILING, PAPI, DPLL, PICO, PRODEN), MANY)),
    Suite(
        "other-data",
        "Colour images",
        (
            *both((CEILING, PAPI, PRODEN), (CIFAR10,), (0,)),
            *both((CEILING, PAPI, PRODEN), (SVHN,)),  # three seeds, because when learning starts varies by seed
        ),
    ),
    Suite("ablation", "What mixup and alignment contribute", both((PAPI, *paper.VARIANTS, PICO), HARD)),
    Suite("augmentation", "Compositions of weak and strong views", both(paper.COMPOSITIONS, HARD[:1])),
    Suite(
        "figures",
        "How the two classifiers and the representation develop",
        (),
        (
            Figure("pico-versions", "Accuracy of PiCO, with true positives (v2), self-taught as well (v3)",
                   "test_accuracy", _curves(paper.PICO_VERSIONS)),
            Figure("right-alone", "Images in a batch that only one of the two classifiers gets right",
                   "right_alone", _curves((PAPI, PICO))),
            Figure("similarity", "Similarity within and between classes", "similarity", _curves((PAPI, PICO))),
            Figure("prototypes", "Accuracy of the prototypical classifier",
                   "prototype_accuracy", _curves((PAPI, PICO))),
        ),
    ),
    Suite(
        "cost",
        "What a step costs, and what small batches cost",
        # A seed that no other suite uses, so that all runs are timed together and none is reused from another machine.
        (Table("equal epochs", METHODS, BATCHES, (3,), epochs=EPOCHS),),
        costs=True,
    ),
    Suite(
        "budget",
        "PaPi with four, two or one passes per step",
        (_ONCE, _THRICE),
        (
            Figure("compute", "Accuracy against compute", "accuracy_by_compute", _TIMED),
            Figure("compute-3x", "Accuracy against compute, three times the budget", "accuracy_by_compute", _THRICE),
        ),
    ),
    Suite(
        "forms",
        "All forms of PaPi on all tasks",
        (
            Table("1× budget", (CEILING, DEFAULT, PRODEN, CC, PICO), (*RATES, INSTANCE, *NEW), units=BUDGET),
            Table("1× budget, others", (PAPI, TWO_PASSES, ONE_PASS, RC, DPLL), NEW, (0,), units=BUDGET),
            Table("1× budget, set_prior=auto for all methods", LISTENING, UNEVEN, (0,), units=BUDGET),
            Table("10× budget", _CONVERGING, (HARD[1], INSTANCE), (0,), units=10 * BUDGET),
        ),
    ),
    Suite(
        "noise",
        "Sets that may lack the true label",
        (Table("1× budget", (TWO_PASSES, DOUBTING), (HARD[0], NOISY), units=BUDGET),),
    ),
    realworld.SUITE,
)  # fmt: skip
