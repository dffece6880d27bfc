"""Check the English of the documentation: proselint's rules, and phrases that this project avoids.

    python -m recipes.prose [FILE …]

`make lint` runs it on README.md, CONTRIBUTING.md, SECURITY.md and all pages below docs/. Code, formulas and URLs
are ignored. Each finding is one line: the file, the line number, the problem, and what to write instead.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from proselint.checks import __register__ as PROSELINT
from proselint.config import DEFAULT, Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).parents[1]

# A phrase, as a regular expression in which a space also matches a line break, and what to write instead.
STYLE = {
    r"(is|are|was|were|becomes?|too|very) dear|dearer|dearest": "write what it costs, or: expensive, slow",
    r"so it is with": "write: The same holds for …",
    r"by the more,? the more": "write: … grows with …",
    r"(is|are|was|were|stays?) silent": "say what is missing: reports nothing, does not say",
    r"takes? as long:": "write that both take the same time",
    r"(a|one) (column|dict|file|line|module|name|row|word) an? (class|epoch|image|line|method|run)": "write: per",
    r"there(in|of|for|from|upon)|where(in|of|upon)|here(by|in|of)": "write: in it, of it, from it",
    r"shall|ought to|must needs": "write: must, should",
    r"in order to": "write: to",
    r"(is|are) (not )?to be had": "write: is (not) available",
    r"by heart": "write: memorise",
    r"utili[sz](e|es|ed|ing)": "write: use",
    r"obviously|of course|needless to say": "leave it out",
    r"please note|note that|it should be noted": "leave it out",
}
# Rules of proselint that do not fit technical Markdown: straight quotes and three dots are intended, `1's` is not a
# decade, "multiply-adds" has no adverb, and product names keep their own spelling.
OFF = ("typography", "dates_times.dates", "misc.phrasal_adjectives", "spelling.consistency", "weasel_words.very")
CONFIG = Config(max_errors=1000, checks=dict.fromkeys(OFF, False) | {**DEFAULT["checks"], "typography": False})

_HIDDEN = re.compile(
    r"```.*?^ *```"  # blocks of code
    r"|^---\n.*?^---\n"  # front matter of a notebook
    r"|<!--.*?-->|\$\$.*?\$\$|\$[^$\n]+\$"  # comments and formulas
    r"|`[^`]+`|(?<=\])\([^)\s]+\)|https?://\S+",  # code and link targets
    re.DOTALL | re.MULTILINE,
)


def prose(markdown: str) -> str:
    """The same lines, with everything except prose replaced by spaces. A heading counts as a sentence."""
    text = _HIDDEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), markdown)
    return re.sub(r"^(#+ .*)$", r"\1.", text, flags=re.MULTILINE)


def findings(markdown: str) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and the problem in each line."""
    text = prose(markdown)
    registry = CheckRegistry()
    if not registry.checks:
        registry.register_many(PROSELINT)
    for found in LintFile("page", text).lint(CONFIG):
        yield found.pos[0], f"{found.check_result.message} ({found.check_result.check_path})"
    for phrasing, advice in STYLE.items():
        pattern = re.compile(rf"\b(?:{phrasing})\b".replace(" ", r"\s+"), re.IGNORECASE)
        for hit in pattern.finditer(text):
            yield text.count("\n", 0, hit.start()) + 1, f"'{' '.join(hit[0].split())}': {advice}"


def pages() -> list[Path]:
    """All pages of the documentation."""
    return [
        *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
        *sorted(ROOT.glob("docs/**/*.md")),
    ]


def main(files: list[Path]) -> int:
    """Print the findings. Returns 1 if there are any."""
    told = [f"{file}:{line}: {what}" for file in files for line, what in sorted(findings(file.read_text()))]
    print("\n".join(told), end="\n" if told else "")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]] or pages()))
