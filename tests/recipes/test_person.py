"""The simulated person: what they say, and the table of what it is worth."""

import numpy as np

from recipes.person import ERRORS, ORDERS, answers, table
from runs_in_memory import run_of


def test_the_person_errs_on_one_in_twenty() -> None:
    labels = (np.arange(4000) % 3).tolist()
    run = run_of([[0.5, 0.3, 0.2]] * 4000, labels=labels)
    said = answers(run, np.arange(4000), 0)
    wrong = np.mean([said[image].labels != (labels[image],) for image in range(4000)])
    assert abs(wrong - ERRORS) < 0.015


def test_every_order_is_of_ambiguous_images_and_of_each_once() -> None:
    run = run_of([[0.6, 0.4, 0.0], [1.0, 0.0, 0.0], [0.4, 0.35, 0.25], [0.9, 0.0, 0.1]])
    for order in ORDERS.values():
        assert sorted(order(run, 0).tolist()) == [0, 2, 3]


def test_the_table_has_means() -> None:
    rows: list[dict[str, object]] = [
        {"seed": seed, "order": name, "found": 10 + seed, "left": 90, "after": 80, "accuracy": 0.8 + 0.1 * seed}
        for seed in (0, 1)
        for name in ORDERS
    ]
    rows += [{"seed": seed, "order": "no decisions", "left": 100, "accuracy": 0.5} for seed in (0, 1)]
    lines = table(rows).splitlines()
    assert lines[2] == "| no decisions | – | 100 | – | 50.00% ± 0.00% |"
    assert lines[3] == "| the desk | 10 | 90 | 80 | 85.00% ± 5.00% |"
