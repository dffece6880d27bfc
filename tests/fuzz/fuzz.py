"""Spoils files of every kind and gives them to every command: nothing may crash, hang, or reach outside.

    python tests/fuzz/fuzz.py [--seconds 600] [--seed 0] [--only NUMBER]

`make fuzz SECONDS=600` runs it. A command must end with 0, 1 or 2 and without a traceback within 20 seconds. It must
read and change nothing that it was not told of. The seed and the number of a try decide all that happens in it, so
`--only` repeats one. What fails is kept in a folder.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from hostile_files import damage, put_in_place
from sandbox import Ended, differences, load_everything, look, run
from specimens import CANARY, make_outside, make_specimens
from tries import TRIES, Try

sys.path.append(str(Path(__file__).parents[1]))  # what all tests share

HANG = 20.0  # seconds after which a command is killed
KEPT = Path(tempfile.gettempdir()) / "papi-fuzz"


@dataclass
class Case:
    """One try: a command, what was spoilt, and what came of it."""

    number: int
    attempt: Try
    done: list[str]
    ended: Ended
    touched: list[str]  # outside, or inputs of the command
    leaked: bool  # a secret from outside was shown or written

    @property
    def verdict(self) -> str:
        """`crash`, `hang`, `escape`, `refusal` or `fine`."""
        if self.ended.code is None:
            return "hang"
        if self.ended.crashed:
            return "crash"
        if self.touched or self.leaked:
            return "escape"
        return "fine" if self.ended.code == 0 else "refusal"


@dataclass
class Fuzzer:
    """Specimens in a folder, and the tries on them."""

    place: Path
    seed: int = 0
    hang: float = HANG
    kept: Path | None = None  # where failures go
    counts: Counter[str] = field(default_factory=Counter)

    def prepare(self) -> None:
        """Make the specimens."""
        load_everything()
        (self.place / "outside").parent.mkdir(parents=True, exist_ok=True)
        make_specimens(self.place, self._train)

    def _train(self, folder: Path, *words: str) -> str:
        ended = run(words, folder, self.place / "outside", self.place / "said", 300)
        assert ended.code == 0, ended.said
        return ended.said

    def attempt(self, number: int) -> Case:
        """Do the try with this number."""
        chance = Random(f"{self.seed} {number}")
        attempt = chance.choice(TRIES)
        folder, outside = self.place / "case", self.place / "outside"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.place / attempt.specimen, folder)
        done = self._spoil(attempt, folder, chance)
        inputs, around = look(folder), look(outside)
        ended = run(attempt.words, folder, outside, self.place / "said", self.hang)
        after = look(folder)
        changed = [path for path in differences(inputs, after) if not _may_write(attempt, path)]
        touched = [*(f"outside/{path}" for path in differences(around, look(outside))), *changed]
        leaked = CANARY in ended.said or any(
            CANARY.encode() in (folder / path).read_bytes()
            for path in differences(inputs, after)
            if (folder / path).is_file() and not (folder / path).is_symlink()
        )
        case = Case(number, attempt, done, ended, touched, leaked)
        self.counts[case.verdict] += 1
        if case.verdict not in ("fine", "refusal"):
            self._keep(case, folder)
        if differences(around, look(outside)):  # the next try begins with a clean one
            shutil.rmtree(outside)
            make_outside(outside)
        return case

    def _spoil(self, attempt: Try, folder: Path, chance: Random) -> list[str]:
        done = []
        outside = self.place / "outside"
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            if chance.random() < 0.15 and (traps := attempt.traps):
                done.append(put_in_place(folder / chance.choice(traps), chance, outside))
            else:
                name = chance.choice(attempt.reads)
                file = chance.choice(sorted(folder.glob(name)) or [folder / name])  # names in the cache are digests
                done.append(damage(file, chance, outside, given=name in attempt.named))
        return done

    def _keep(self, case: Case, folder: Path) -> None:
        if self.kept is None:
            return
        target = self.kept / f"{case.verdict}-{self.seed}-{case.number}"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        (target / "said.txt").write_text(told(case, self.seed))
        self._copy_without_devices(folder, target / "case")

    @staticmethod
    def _copy_without_devices(folder: Path, target: Path) -> None:
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                (target / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target / path.relative_to(folder))


def _may_write(attempt: Try, path: str) -> bool:
    """Whether a path is where a command writes. What it leaves behind half-written belongs nowhere."""
    if path.startswith(".") or ".writing" in path:
        return False
    return any(path == each or path.startswith(f"{each}/") for each in (*attempt.writes, "cache"))


def told(case: Case, seed: int) -> str:
    """What a person needs to know about a case, and to repeat it."""
    lines = [
        f"{case.verdict.upper()} papi {' '.join(case.attempt.words)}  (in {case.attempt.specimen})",
        *(f"  spoilt: {each}" for each in case.done),
        *([f"  touched: {', '.join(case.touched[:5])}"] if case.touched else []),
        *(["  leaked: a secret from outside"] if case.leaked else []),
        f"  exit code {case.ended.code} after {case.ended.seconds:.1f} s; repeat with: "
        f"python tests/fuzz/fuzz.py --seed {seed} --only {case.number}",
        *(f"  | {line}" for line in case.ended.said.strip().splitlines()[-12:]),
    ]
    return "\n".join(lines)


def summary(fuzzer: Fuzzer) -> str:
    """The line that says whether all is well."""
    counts = fuzzer.counts
    return (
        f"{counts.total()} tries, {counts['refusal']} refusals, {counts['crash']} crashes, {counts['hang']} hangs, "
        f"{counts['escape']} touched outside"
    )


def failures(fuzzer: Fuzzer) -> int:
    """The number of tries that ended badly."""
    return sum(fuzzer.counts[verdict] for verdict in ("crash", "hang", "escape"))


def main() -> int:
    """Run tries until the time is over; 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one try")
    parser.add_argument("--hang", type=float, default=HANG, help="seconds after which a command counts as hanging")
    parser.add_argument("--keep", type=Path, default=KEPT, help="where failures go")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        fuzzer = Fuzzer(Path(place), asked.seed, asked.hang, asked.keep)
        fuzzer.prepare()
        deadline = time.monotonic() + asked.seconds
        number = asked.only or 0
        while time.monotonic() < deadline:
            case = fuzzer.attempt(number)
            if asked.only is not None or case.verdict not in ("fine", "refusal"):
                print(told(case, asked.seed), flush=True)
            if asked.only is not None:
                break
            number += 1
    print(summary(fuzzer))
    if failures(fuzzer):
        print(f"The cases are in {asked.keep}.")
    return int(failures(fuzzer) > 0)


if __name__ == "__main__":
    sys.exit(main())
