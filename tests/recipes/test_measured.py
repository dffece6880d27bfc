"""The numbers behind sentences: of known rows, and refused where there are none."""

import statistics
from dataclasses import replace

import pytest
from toy_results import ACCURACIES, COMPUTE, ENTRIES, EPOCHS, TASK, result, results

from papi.config import RunConfig
from papi.errors import UserError
from papi.experiments import SUITES, cells
from papi.experiments.cpu import BUDGET, BY_LOOKS, DEFAULT, INSTANCE, LISTENING, RATES
from papi.experiments.cpu import EPOCHS as FEW_EPOCHS
from papi.experiments.paper import DPLL, PAPI, PRODEN
from papi.experiments.results import Results
from papi.experiments.suites import Entry
from recipes import measured
from recipes.measured import Column, Measured


def column(results: Results, label: str = TASK.label) -> Column:
    return Column("toy", EPOCHS, replace(TASK, label=label), results)


def test_a_cell_knows_its_runs() -> None:
    cell = column(results())["PaPi"]
    assert cell.by_seed == pytest.approx([80, 83, 86])
    assert (cell.mean, cell.spread) == pytest.approx((83, statistics.pstdev([80, 83, 86])))
    assert (cell.epochs, cell.units) == (2, 10)
    assert cell.curve("test_accuracy") == pytest.approx([0.415, 0.83])
    assert cell.value("cpu_seconds") == pytest.approx(31.4)
    assert cell.step_seconds == pytest.approx(31.4 / cell.runs[0].steps)


def test_a_column_knows_who_is_first() -> None:
    found = column(results())
    assert [cell.label for cell in found.ranked] == ["PaPi", "DPLL", "PRODEN"]
    assert (found.first.label, found.second.label, found.rank("PRODEN")) == ("PaPi", "DPLL", 3)
    assert found.best("PaPi").label == found.rival("PaPi").label == "DPLL"
    assert found.lead_by_seed("PaPi", "DPLL") == pytest.approx([1, -1, 4])
    assert found.has("PaPi")
    assert not found.has("EM")
    assert not column({}).has("PaPi")
    assert found.close  # by 1.3 points, and PaPi differs by 2.4 over seeds


def test_a_method_with_fewer_runs_does_not_compete_but_is_told() -> None:
    found = results()
    few = result(EPOCHS, Entry("EM", "em"), 0, 0.95)
    found[few.key] = few
    table = replace(EPOCHS, entries=(*ENTRIES, Entry("EM", "em")))
    both = Column("toy", table, TASK, found)
    assert both.first.label == "PaPi"
    assert [cell.label for cell in both.unfinished_ahead] == ["EM"]
    assert both.rival("PaPi").label == "EM"
    assert column(results()).unfinished_ahead == []


def test_a_page_cannot_speak_about_what_was_not_run() -> None:
    with pytest.raises(UserError, match=r"PaPi .*has no finished run"):
        _ = column({})["PaPi"].mean
    with pytest.raises(UserError, match="no run is finished"):
        _ = column({}).first
    with pytest.raises(UserError, match=r"mentions PIPA, which is not in toy.*Supervised, PaPi"):
        _ = column(results())["PIPA"]
    with pytest.raises(UserError, match=r"mentions q = 0.2 of uniform"):
        Measured({}).column("uniform", "q = 0.2")


def test_columns_of_a_suite_are_told_apart_by_what_runs_may_cost() -> None:
    table = SUITES["cpu"]["uniform"].tables
    made = {
        (epochs, entry): result(each, entry, seed, 0.5)
        for each, epochs in zip(table, (True, False), strict=True)
        for entry in (PAPI, PRODEN)
        for seed in (0,)
    }
    found = Measured({each.key: each for each in made.values()})
    assert found.column("uniform", "q = 0.5", epochs=True)["PRODEN"].epochs == FEW_EPOCHS
    assert found.column("uniform", "q = 0.5")["PRODEN"].epochs == BUDGET / 3
    assert found.column("uniform", "fashion-mini, q = 0.5")["PaPi"].epochs == FEW_EPOCHS
    assert [each.task.label for each in found.columns("uniform")] == ["q = 0.5"]
    assert found.count("uniform")[0] == len({each.key for each in made.values()})
    assert found.hours("uniform") == pytest.approx(len({each.key for each in made.values()}) * 31.4 / 3600)


def test_numbers_over_several_columns() -> None:
    one, two = column(results()), column(results())
    assert measured.means([one, two], "PaPi") == pytest.approx([83, 83])
    assert measured.gaps([one, two], "PaPi", "PRODEN") == pytest.approx([13, 13])
    assert measured.leads([one], "DPLL") == pytest.approx([83 - 100 * statistics.mean(ACCURACIES[DPLL])])
    assert measured.average([one, two], "PRODEN") == pytest.approx(70)
    assert measured.finished([one, two], "PRODEN")
    assert not measured.finished([one, column({})], "PRODEN")
    assert measured.ratios([one], "PaPi", "DPLL") == [1]
    longer = Column("toy", COMPUTE, TASK, results(COMPUTE))
    assert measured.gains([one], [longer], "PaPi") == pytest.approx([0])


def test_leads_over_methods_with_and_without_the_set_prior() -> None:
    tables = SUITES["cpu"]["forms"].tables
    made = []
    for table, entry, task, seed, accuracy in (
        (tables[0], DEFAULT, RATES[0], 0, 0.9), (tables[0], DEFAULT, RATES[0], 1, 0.8),
        (tables[0], PRODEN, RATES[0], 0, 0.8), (tables[0], PRODEN, RATES[0], 2, 0.5),
        (tables[0], DEFAULT, INSTANCE, 0, 0.7), (tables[0], PRODEN, INSTANCE, 0, 0.4),
        (tables[2], LISTENING[2], INSTANCE, 0, 0.6), (tables[0], DEFAULT, BY_LOOKS, 0, 0.7),
    ):  # fmt: skip
        made.append(result(table, entry, seed, accuracy, task))
    every = Measured({each.key: each for each in made}).merged("forms")
    assert len({each.task for each in every}) == len(every)
    ours, theirs = DEFAULT.label, PRODEN.label
    assert measured.mean_leads(every, ours, theirs) == pytest.approx([10, 30])  # the seed that both have
    assert measured.mean_leads(every, ours, theirs, prior=True) == pytest.approx([10, 10])
    assert measured.mean_leads(every, ours, "CC") == []
    looks = next(each for each in every if each.task == BY_LOOKS)
    assert looks.with_prior(theirs) is None  # not run, and not the same as without


def test_sentences() -> None:
    rates = [column(results(), label) for label in ("q = 0.1", "q = 0.3", "q = 0.5", "instance-dependent")]
    assert measured.where(rates) == "q = 0.1, 0.3, 0.5 and instance-dependent"
    assert measured.where(rates[:1]) == "q = 0.1"
    assert measured.names(rates[:2]) == "fashion-mini (q = 0.1 and 0.3)"
    assert measured.winners(rates[:2]) == "PaPi at q = 0.1 and 0.3"
    worse = {key: each for key, each in results().items() if each.config.method != "papi"}
    mixed = [column(worse, "q = 0.1"), column(results(), "q = 0.3"), column(worse, "q = 0.5")]
    assert measured.winners(mixed) == "DPLL at q = 0.1 and 0.5, and PaPi at q = 0.3"
    assert (
        measured.winners(mixed[1:], by_name=True)
        == "PaPi on fashion-mini (q = 0.3), and DPLL on fashion-mini (q = 0.5)"
    )
    assert measured.won(mixed, "PaPi") == [mixed[1]]
    assert measured.in_words("PaPi, one pass, set_prior=auto") == "PaPi (one pass, `set_prior=auto`)"
    assert measured.in_words("CC") == "CC"


def test_the_default_form_is_that_of_papi_train() -> None:
    label = measured.default_form()
    entries = [entry for suite in SUITES["cpu"].values() for table in suite.tables for entry in table.entries]
    entry = next(entry for entry in entries if entry.label == label)
    options = cells.settings_of(RunConfig(option=entry.options)).options
    assert options == cells.settings_of(RunConfig()).options
