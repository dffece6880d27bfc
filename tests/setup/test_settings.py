"""Presets give every method values that its options understand, and leave alone what a person has set."""

import numpy as np
import pytest

from papi.config import CandidatesConfig, OptimConfig, RunConfig, Select
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.methods import METHODS
from papi.methods.options import parse_options
from papi.setup.data import settled
from papi.setup.settings import PRESETS, complete

DATA = ["fashion-mini", "fashion-mnist", "svhn", "cifar10", "cifar100", "mini-imagenet", "mine.npz"]


def paper(method: str, data: str = "cifar10", flip_rate: float = 0.5, *option: str) -> RunConfig:
    candidates = CandidatesConfig(flip_rate=flip_rate)
    return complete(RunConfig(data=data, method=method, preset="paper", candidates=candidates, option=option))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("method", METHODS)
def test_all_values_are_filled_in_and_fit_the_method(method: str, preset: str) -> None:
    for data in DATA:
        config = complete(RunConfig(data=data, method=method, preset=preset))
        parse_options(METHODS[method].Config, config.options)
        filled = (config.network, config.epochs, config.batch_size, config.drop_last, *vars(config.optim).values())
        assert None not in filled


@pytest.mark.parametrize("preset", PRESETS)
def test_a_method_from_outside_gets_no_options(preset: str) -> None:
    assert complete(RunConfig(method="package.module:Class", preset=preset)).option == ()


def test_what_a_person_sets_stays() -> None:
    mine = RunConfig(epochs=3, network="resnet18", option=("temperature=0.7",), optim=OptimConfig(lr=0.5))
    config = complete(mine)
    assert (config.epochs, config.network, config.options["temperature"], config.optim.lr) == (
        3,
        "resnet18",
        "0.7",
        0.5,
    )
    assert complete(config) == config


@pytest.mark.parametrize(
    ("select", "given", "share"),
    [("last", None, 0), ("covering-rate", None, 0.1), ("approximated-accuracy", 0.3, 0.3), ("last", 0.2, 0.2)],
)
def test_choosing_an_epoch_holds_samples_out(select: Select, given: float | None, share: float) -> None:
    assert complete(RunConfig(select=select, data_holdout=given)).data_holdout == share


def test_unknown_preset() -> None:
    with pytest.raises(UserError, match="did you mean 'quick'"):
        complete(RunConfig(preset="quik"))


class TestQuick:
    @pytest.mark.parametrize(("passes", "epochs"), [("paper", 12), ("two", 20), ("one", 40)])
    def test_forms_of_papi_cost_the_same(self, passes: str, epochs: int) -> None:
        config = complete(RunConfig(option=(f"passes={passes}",)))
        assert (config.epochs, config.options["passes"]) == (epochs, passes)
        assert complete(RunConfig(option=(f"passes={passes}",), epochs=7)).epochs == 7

    def test_all_methods_train_alike(self) -> None:
        """Only the method and its options differ between the runs of a comparison."""
        runs = [complete(RunConfig(method=method, epochs=12)) for method in METHODS]
        assert len({(c.network, c.epochs, c.batch_size, c.drop_last, c.optim) for c in runs}) == 1

    def test_the_default_is_two_passes_at_the_price_of_twelve_epochs_of_the_paper(self) -> None:
        assert complete(RunConfig()) == complete(RunConfig(option=("passes=two",), epochs=20))

    def test_one_view_methods_see_papis_weak_view(self) -> None:
        for method in ("proden", "rc", "cc", "lws", "supervised"):
            options = complete(RunConfig(method=method)).options
            assert parse_options(METHODS[method].Config, options).view == "weak"

    @pytest.mark.parametrize("epochs", [1, 12, 200])
    def test_the_ramp_of_dpll_takes_half_the_run(self, epochs: int) -> None:
        assert float(complete(RunConfig(method="dpll", epochs=epochs)).options["ramp_epochs"]) == epochs / 2

    def test_the_confidence_momentum_of_papi_is_that_of_500_epochs(self) -> None:
        start, end = complete(RunConfig(epochs=500)).options["confidence_momentum"].split(",")
        assert (float(start), float(end)) == pytest.approx((0.95, 0.8))


class TestFeatures:
    """Feature tables have a quick preset of their own."""

    def test_all_methods_train_alike_and_longer(self) -> None:
        runs = [complete(RunConfig(method=method, network="mlp")) for method in METHODS]
        assert {(c.network, c.epochs, c.batch_size, c.drop_last) for c in runs} == {("mlp", 200, 128, False)}
        assert {(c.optim.optimizer, c.optim.schedule) for c in runs} == {("adam", "multistep")}

    @pytest.mark.parametrize("method", METHODS)
    def test_options_fit_the_method_and_follow_the_length(self, method: str) -> None:
        long, short = (complete(RunConfig(method=method, network="mlp", epochs=epochs)) for epochs in (200, 20))
        for config in (long, short):
            parse_options(METHODS[method].Config, config.options)
            assert complete(config) == config
        assert (long.options != short.options) == (method in ("papi", "pico", "dpll", "valen"))

    def test_it_is_that_of_data_with_features(self) -> None:
        features = np.zeros((4, 3), np.float32)
        dataset = Dataset("mine", ("a", "b"), features, (), (), candidates=np.ones((4, 2), bool))
        assert complete(settled(RunConfig(data="mine.csv"), dataset)).epochs == 200


class TestPaper:
    """Rows of the releases, written out once more."""

    @pytest.mark.parametrize(
        ("data", "flip_rate", "expected"),  # temperature, alpha, learning rate, weight decay, batch size
        [
            ("fashion-mnist", 0.1, ("1.0", "8.0", 0.05, 1e-3, 256)),
            ("fashion-mnist", 0.3, ("1.0", "0.05", 0.05, 1e-4, 256)),
            ("fashion-mini", 0.7, ("1.0", "5.0", 0.05, 1e-3, 256)),
            ("svhn", 0.1, ("0.3", "0.05", 0.05, 1e-3, 256)),
            ("svhn", 0.5, ("0.3", "0.05", 0.07, 1e-3, 256)),
            ("cifar10", 0.5, ("0.3", "8.0", 0.05, 1e-3, 256)),
            ("cifar100", 0.05, ("0.3", "8.0", 0.1, 1e-3, 256)),
            ("mini-imagenet", 0.2, ("0.1", "5.0", 0.03, 1e-4, 64)),
            ("mine.npz", 0.5, ("0.3", "8.0", 0.05, 1e-3, 256)),
        ],
    )
    def test_papi(self, data: str, flip_rate: float, expected: tuple[object, ...]) -> None:
        config = paper("papi", data, flip_rate)
        temperature, alpha, lr, weight_decay, batch_size = expected
        assert config.options == {"temperature": temperature, "mixup_alpha": alpha}
        assert config.optim == OptimConfig("sgd", lr, 0.9, False, weight_decay, "all", "cosine")  # type: ignore[arg-type]
        assert (config.network, config.epochs, config.drop_last) == ("resnet18", 500, True)
        assert config.batch_size == batch_size

    @pytest.mark.parametrize(
        (
            "method",
            "data",
            "expected",
        ),  # optimizer, lr, weight decay, schedule, epochs, batch size, drop_last
        [
            ("pico", "cifar10", ("sgd", 0.01, 1e-3, "cosine", 800, 256, True)),
            ("dpll", "cifar10", ("sgd", 0.1, 1e-4, "multistep", 200, 64, False)),
            ("dpll", "fashion-mnist", ("sgd", 0.1, 1e-4, "multistep", 200, 64, False)),
            ("valen", "fashion-mnist", ("sgd", 0.01, 1e-4, "constant", 500, 256, False)),
            ("valen", "cifar10", ("sgd", 0.05, 1e-3, "constant", 500, 256, False)),
            ("proden", "fashion-mnist", ("sgd", 0.01, 1e-5, "constant", 500, 256, True)),
            ("proden", "cifar10", ("sgd", 0.05, 1e-3, "constant", 500, 256, True)),
            ("lws", "cifar10", ("sgd", 0.05, 1e-3, "exponential", 250, 256, False)),
            ("rc", "fashion-mnist", ("adam", 1e-3, 1e-5, "constant", 250, 256, False)),
            ("rc", "cifar10", ("adam", 1e-3, 1e-3, "constant", 250, 256, False)),
            ("cc", "svhn", ("adam", 1e-3, 1e-3, "constant", 250, 256, False)),
            ("supervised", "svhn", ("sgd", 0.07, 1e-3, "cosine", 500, 256, True)),
        ],
    )
    def test_others(self, method: str, data: str, expected: tuple[object, ...]) -> None:
        config = paper(method, data)
        optim = config.optim
        length = (config.epochs, config.batch_size, config.drop_last)
        assert (optim.optimizer, optim.lr, optim.weight_decay, optim.schedule, *length) == expected

    @pytest.mark.parametrize(
        ("data", "flip_rate", "loss", "lr", "weight_decay", "beta"),
        [
            ("fashion-mnist", 0.1, "sigmoid", 0.05, 1e-3, "2"),
            ("fashion-mnist", 0.3, "sigmoid", 0.1, 1e-3, "1"),
            ("fashion-mnist", 0.7, "sigmoid", 0.1, 1e-3, "1"),
            ("cifar10", 0.1, "cross-entropy", 0.01, 0.01, "1"),
            ("cifar10", 0.3, "cross-entropy", 0.01, 0.01, "2"),
        ],
    )
    def test_lws(self, data: str, flip_rate: float, loss: str, lr: float, weight_decay: float, beta: str) -> None:
        config = paper("lws", data, flip_rate, f"loss={loss}")
        assert (config.optim.lr, config.optim.weight_decay, config.options["beta"]) == (lr, weight_decay, beta)

    def test_releases_without_augmentation(self) -> None:
        for method in ("proden", "rc", "cc", "lws"):
            assert paper(method).options["view"] == "plain"
        assert "view" not in paper("supervised").options

    def test_long_warm_up_of_pico_with_many_candidates(self) -> None:
        assert [paper("pico", "cifar100", q).options["warmup_epochs"] for q in (0.05, 0.2)] == ["1", "100"]
