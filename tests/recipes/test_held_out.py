"""The table of held-out accuracies on the results page is the one of the kept rows."""

from papi.config import from_dict
from recipes import held_out


def test_the_page_has_the_table_of_the_rows() -> None:
    page = (held_out.DOCS / "results.md").read_text()
    part = page.split(held_out.BEGIN)[1].split(held_out.END)[0]
    assert part.strip() == held_out.table(list(held_out.read_rows().values())).strip()


def test_what_the_page_says_about_them() -> None:
    """One pass is ahead of two wherever both were measured."""
    found: dict[tuple[str, int, str], float] = {}
    for row in held_out.read_rows().values():
        config = from_dict(row["settings"])
        task = str(config.candidates.kind), config.candidates.flip_rate
        found[str(task), config.seed, config.given_options["passes"]] = row["values"]["accuracy"]
    pairs = [(task, seed) for task, seed, form in found if form == "one" and (task, seed, "two") in found]
    assert pairs
    assert all(found[task, seed, "one"] > found[task, seed, "two"] for task, seed in pairs)
