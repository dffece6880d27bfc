"""The commands that the fuzzer gives, and what each of them reads and may write."""

from dataclasses import dataclass

from specimens import FROZEN, TRAINING, TUNING

RUN_FILES = ("config.json", "metrics.jsonl", "summary.json", "candidates.npz", "arrays.npz", "model.safetensors")
CHECKPOINTS = ("checkpoint.pt", "checkpoint.previous.pt")
TRAPS = (  # where commands write within a run folder: a folder that was received may have something there
    "labels.csv", "report.html", "exported", "exported/model.pt", "exported/model.safetensors", "run.lock",
    "checkpoint.damaged.pt", "checkpoint.previous.damaged.pt", ".labels.csv.writing", ".writing.labels.csv",
    ".writing.report.html", ".writing.checkpoint.pt", ".writing.config.json", ".writing.metrics.jsonl", "lock",
)  # fmt: skip
_QUICK = ("--epochs", "1", "--batch-size", "8", "--threads", "1", "--device", "cpu")


@dataclass(frozen=True)
class Try:
    """A command in a copy of a specimen."""

    specimen: str
    words: tuple[str, ...]
    reads: tuple[str, ...]  # files that may be spoilt, relative to the specimen
    writes: tuple[str, ...] = ()  # files and folders that the command may make or change
    folders: tuple[str, ...] = ()  # run folders in which a trap may lie

    @property
    def traps(self) -> tuple[str, ...]:
        """Where the command writes without being told: something may lie there in a folder that was received.

        Its own outputs come as often as all other names together.
        """
        others = tuple(f"{folder}/{name}" for folder in self.folders for name in TRAPS)
        own = tuple(name for name in self.writes if name.startswith(tuple(f"{each}/" for each in self.folders)))
        return others + own * (len(others) // len(own) if own else 0)

    @property
    def named(self) -> frozenset[str]:
        """What the person names on the command line; all else is found in folders that they were handed."""
        return frozenset(self.reads) & frozenset(self.words)


def _within(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names or RUN_FILES)


def _on_run(specimen: str, *words: str, reads: tuple[str, ...] = (), writes: tuple[str, ...] = ()) -> Try:
    return Try(specimen, words, (*_within("run"), *reads), writes, ("run",))


def _on_both(*words: str, reads: tuple[str, ...] = (), writes: tuple[str, ...] = ()) -> list[Try]:
    return [_on_run(specimen, *words, reads=reads, writes=writes) for specimen in TRAINING]


def _into(folder: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """The same command with another folder for the run."""
    return tuple(folder if word == "run" else word for word in words)


def _continuing(specimen: str) -> list[Try]:
    """Training again where a run is unfinished, or finished."""
    words = TRAINING[specimen]
    data = {"features": ("table.npz",), "images": ("labels.csv", "photos/0.png")}[specimen]
    half = _into("half", words)
    files = _within("half", "config.json", "metrics.jsonl", "candidates.npz", *CHECKPOINTS[:1])
    return [
        Try(specimen, half, (*files, files[-1], files[-1], *data), ("half",), ("half",)),
        Try(specimen, words, (*_within("run"), *_within("run", *CHECKPOINTS), *data), ("run",), ("run",)),
    ]


def _from_data(specimen: str, data: str, *options: str, reads: tuple[str, ...] = ()) -> list[Try]:
    """Checking data, and training on them."""
    files = reads or (data,)
    return [
        Try(specimen, ("check", data, *options), files),
        Try(specimen, ("train", "--data", data, *options, "--out", "out", *_QUICK), files, ("out",)),
    ]


_PICTURES = ("photos/0.png", "photos/7.png")
_SORTED = ("sorted/ant/0.png", "sorted/bee/1.png", "sorted/classes.txt", "sorted/metadata.csv", "sorted/train")
_LABELLED = ("run/labels.csv",)
_ANSWER = ("labels", "run", "--fix", "answers.csv", "--epochs", "1", "--out", "out")
_TABLES = (
    "label-studio.json", "coco.json", "cvat.xml", "via.csv", "crowd.csv", "labels.tsv", "labels.xlsx", "excluded.csv",
)  # fmt: skip
_BACK = {"label-studio": ".json", "cvat": ".xml", "coco": ".json", "via": ".csv", "crowd": ".csv"}
_TOML = ("papi.toml",)
_LITTLE = ("little/labels.csv", "little/labels.csv", "little/photos/0.png")
_SMALL = ("--limit", "24", "--epochs", "1", "--out", "out")  # also without a word in papi.toml
_ENCODER = ("--network", "tiny_encoder:encoder")
_CACHES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    ((), ("cache/embeddings/*/*.npy",) * 4),
    (("--tune", "all"), ("cache/photos/*.pixels",) * 4),
)
_FIX = ("labels", "run", "--fix", "decisions.csv", "--epochs", "1", "--out", "out")

TRIES: tuple[Try, ...] = (
    *_on_both("doctor", "run", reads=_within("run", *CHECKPOINTS)),
    Try("images", ("doctor", "half"), _within("half", "config.json", "metrics.jsonl", "checkpoint.pt"), (), ("half",)),
    *_on_both("watch", "run"),
    Try("features", ("watch", "half"), _within("half", "config.json", "metrics.jsonl"), (), ("half",)),
    *_on_both("compare", "run", "half", reads=_within("half", "config.json", "metrics.jsonl")),
    _on_run("features", "compare", "run", "half", "--regret"),
    *_on_both("labels", "run", writes=_LABELLED),
    *_on_both("labels", "run", "--out", "new.out.csv", writes=("new.out.csv",)),
    *_on_both(*_FIX, reads=("decisions.csv", "decisions.csv", "decisions.csv"), writes=("out",)),
    *_on_both("report", "run", writes=("run/report.html",)),
    _on_run("features", "report", "run", "half", "--out", "page.html", writes=("page.html",)),
    _on_run("features", "evaluate", "run", reads=("table.npz",)),
    _on_run("images", "evaluate", "run", reads=("photos/0.png", "labels.csv")),
    _on_run("features", "evaluate", "run", "--data", "table.csv", reads=("table.csv",)),
    *_on_both("export", "run", "--format", "safetensors", writes=("run/exported",)),
    *_on_both("export", "run", "--format", "torchscript", writes=("run/exported",)),
    *_on_both("export", "run", "--format", "safetensors", "--hub-folder", "hub", writes=("hub",)),
    _on_run("images", "predict", "run", "new", "one.jpg", reads=("new/18.png", "one.jpg")),
    _on_run("images", "predict", "run", "new", "--out", "p.csv", reads=("new/18.png",), writes=("p.csv",)),
    _on_run("features", "predict", "run", "new.npy", "--out", "p.jsonl", reads=("new.npy",) * 3, writes=("p.jsonl",)),
    _on_run("features", "predict", "run", "new.npz", reads=("new.npz",) * 3),
    _on_run("features", "predict", "run", "new.csv", reads=("new.csv",) * 3),
    Try("features", ("bench", "uniform", "--tables-only", "--out", "."), _within("run"), (), ("run",)),
    Try("features", ("bench", "uniform", "--dry-run", "--out", "."), _within("run"), (), ("run",)),
    *_continuing("features"),
    *_continuing("images"),
    *_from_data("features", "table.npz"),
    *_from_data("features", "table.mat"),
    *_from_data("features", "table.csv"),
    *_from_data("features", "table.parquet"),
    *_from_data("features", "table.npz", "--candidates.kind", "class-dependent", "--candidates.matrix", "matrix.csv",
                reads=("matrix.csv",)),
    *_from_data("features", "table.npz", "--candidates.kind", "class-dependent", "--candidates.matrix", "matrix.npy",
                reads=("matrix.npy",)),
    *_from_data("features", "table.npz", "--candidates.kind", "hierarchical", "--candidates.groups", "groups.csv",
                reads=("groups.csv",)),
    *_from_data("images", "photos", "--candidates.file", "labels.csv", reads=("labels.csv", "labels.csv", *_PICTURES)),
    *_from_data("images", "photos", "--candidates.file", "labels.jsonl", reads=("labels.jsonl",)),
    *_from_data("images", "photos", "--candidates.file", "labels.parquet", reads=("labels.parquet",)),
    *_from_data("images", "photos", "--candidates.file", "labels.npz", reads=("labels.npz",)),
    *_from_data(
        "images", "photos", "--candidates.file", "votes.csv", "--candidates.weigh", "auto", reads=("votes.csv",)
    ),
    *_from_data("images", "photos", "--candidates.file", "votes.csv", "--candidates.votes", "dawid-skene",
                "--candidates.weigh", "auto", reads=("votes.csv",)),
    *_from_data("images", "sorted", reads=_SORTED),
    *(each for file in _TABLES for each in _from_data("tools", "photos", "--candidates.file", file, reads=(file,))),
    *(each for tree in ("tree.csv", "tree.json") for each in _from_data(
        "tools", "photos", "--candidates.file", "coarse.csv", "--classes.tree", tree,
        reads=(tree, tree, "coarse.csv"))),
    *_from_data("tools", "photos", "--candidates.file", "weights.csv", "--candidates.weigh", "auto", "--skip-bad",
                reads=("weights.csv", "photos/3.png")),
    *_from_data("tools", "pictures.parquet"),
    *_from_data("tools", "shards", reads=("shards/train-0.parquet", "shards/train-1.parquet")),
    *(_on_run("images", "labels", "run", "--format", tool, writes=(f"run/{tool}{suffix}",))
      for tool, suffix in _BACK.items()),
    *(_on_run("images", "labels", "run", "--format", tool, "--decisions", "answers.csv", "--out", "back.out",
              reads=("answers.csv",) * 3, writes=("back.out",)) for tool in _BACK),
    *_on_both(*_ANSWER, reads=("answers.csv",) * 3, writes=("out",)),
    *_on_both("report", "run", "half", reads=_within("half", "config.json", "metrics.jsonl", "checkpoint.pt"),
              writes=("report.html",)),
    Try("features", (*TUNING, "--dry-run"), ("table.npz",)),
    Try("features", TUNING, ("trials/*/config.json", "trials/*/metrics.jsonl", "trials/*/candidates.npz"), ("trials",)),
    Try("ready", ("train", *_SMALL), _TOML, ("out",)),  # files that it names count as named by the person
    Try("ready", ("check",), _TOML),
    Try("ready", ("train", "--options-file", "options.toml", *_SMALL), ("options.toml",), ("out",)),
    Try("ready", ("init", "little"), _LITTLE, ("little/papi.toml",), ("little",)),
    Try("ready", ("init", "--force"), _TOML, ("papi.toml",)),
    Try("tools", ("init", "--data", "photos", "--candidates.file", "label-studio.json"), ("label-studio.json",),
        ("papi.toml",)),
    *(Try("frozen", (*_into("out", FROZEN), *tune), (*cache, "photos/0.png"), ("out",)) for tune, cache in _CACHES),
    Try("frozen", FROZEN, (*_within("run"), *_within("run", *CHECKPOINTS)), ("run",), ("run",)),
    _on_run("frozen", "doctor", "run", reads=_within("run", *CHECKPOINTS)),
    _on_run("frozen", "predict", "run", "new", *_ENCODER, "--out", "p.csv", reads=("new/18.png",), writes=("p.csv",)),
    _on_run("frozen", "predict", "run", "new", reads=("new/18.png",)),
    _on_run("frozen", "evaluate", "run", *_ENCODER, reads=("cache/embeddings/*/*.npy",)),
    _on_run("frozen", "labels", "run", writes=_LABELLED),
    _on_run("frozen", "export", "run", "--format", "safetensors", *_ENCODER, writes=("run/exported",)),
)  # fmt: skip
