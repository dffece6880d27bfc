"""Settings are complete, of the right types, and leave alone what a person has set."""

import json
from dataclasses import fields, replace
from typing import Literal

import numpy as np
import pytest

from papi.config import (
    CandidateKind,
    CandidatesConfig,
    CandidateSettings,
    OptimConfig,
    RunConfig,
    Select,
    Settings,
    from_dict,
    to_dict,
)
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.methods import METHODS, find_method
from papi.methods.base import Method
from papi.methods.config import MethodConfig
from papi.setup.settings import PRESETS, complete
from papi.train import settings_for

DATA = ["fashion-mini", "fashion-mnist", "svhn", "cifar10", "cifar100", "mini-imagenet", "mine.npz"]


def of_images(config: RunConfig) -> Settings:
    return complete(config, features=False, sets_given=False)


def of_features(config: RunConfig) -> Settings:
    return complete(config, features=True, sets_given=True)


def paper(method: str, data: str = "cifar10", flip_rate: float = 0.5, *option: str) -> Settings:
    candidates = CandidatesConfig(flip_rate=flip_rate)
    return of_images(RunConfig(data=data, method=method, preset="paper", candidates=candidates, option=option))


class Outside(Method):
    """A method that brings nothing of its own."""


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_open_and_options_fit_the_method(method: str, preset: str) -> None:
    kind = find_method(method).Config
    for data in DATA:
        settings = of_images(RunConfig(data=data, method=method, preset=preset))
        filled = (settings.network, settings.epochs, settings.batch_size, settings.drop_last, settings.candidates.seed)
        assert None not in (*filled, *vars(settings.optim).values())
        built = kind(**settings.options)
        assert settings.options.keys() == {field.name for field in fields(kind)}
        for field in fields(kind):  # typed values, not the text that one would type
            assert type(getattr(built, field.name)) is type(field.default), field.name


@pytest.mark.parametrize("preset", PRESETS)
def test_a_method_from_outside_has_its_own_defaults_and_papis_optimizer(preset: str) -> None:
    outside = of_images(RunConfig(method=f"{__name__}:Outside", preset=preset))
    assert outside.options == {}
    assert outside.optim == of_images(RunConfig(preset=preset)).optim


def test_what_a_person_sets_stays() -> None:
    mine = RunConfig(epochs=3, network="resnet18", option=("temperature=0.7",), optim=OptimConfig(lr=0.5))
    settings = of_images(mine)
    assert (settings.epochs, settings.network, settings.optim.lr) == (3, "resnet18", 0.5)
    assert settings.options["temperature"] == 0.7


@pytest.mark.parametrize("method", METHODS)
def test_settings_from_a_file_complete_to_the_same(method: str) -> None:
    """What a run records is enough to make the same run again, whatever presets say by then."""
    settings = of_images(RunConfig(method=method, seed=7, select="covering-rate"))
    again = of_images(from_dict(json.loads(json.dumps(to_dict(settings)))))
    assert again == settings
    assert of_images(replace(from_dict(to_dict(settings)), preset="paper")).options == settings.options


@pytest.mark.parametrize(
    ("select", "given", "share"),
    [("last", None, 0), ("covering-rate", None, 0.1), ("approximated-accuracy", 0.3, 0.3), ("last", 0.2, 0.2)],
)
def test_choosing_an_epoch_holds_samples_out(select: Select, given: float | None, share: float) -> None:
    assert of_images(RunConfig(select=select, data_holdout=given)).data_holdout == share


def test_unknown_preset() -> None:
    with pytest.raises(UserError, match="did you mean 'quick'"):
        of_images(RunConfig(preset="quik"))


class TestCandidates:
    def test_seed(self) -> None:
        assert of_images(RunConfig(seed=5)).candidates.seed == 5
        assert of_images(RunConfig(seed=5, candidates=CandidatesConfig(seed=3))).candidates.seed == 3

    @pytest.mark.parametrize(
        ("data", "sets_given", "kind"),
        [
            ("fashion-mini", False, "uniform"),
            ("cifar100-h", False, "hierarchical"),
            ("mine.npz", False, "uniform"),
            ("mine.npz", True, None),
        ],
    )
    def test_kind(self, data: str, sets_given: bool, kind: str | None) -> None:
        settings = complete(RunConfig(data=data), features=False, sets_given=sets_given)
        assert settings.candidates.kind == kind
        assert isinstance(settings.candidates, CandidateSettings)

    def test_sets_can_be_made_where_some_are_given(self) -> None:
        wanted = RunConfig(candidates=CandidatesConfig(kind="noisy"))
        assert complete(wanted, features=False, sets_given=True).candidates.kind == "noisy"

    @pytest.mark.parametrize(
        ("sets", "given", "says"),
        [
            (CandidatesConfig(flip_rate=0.3), True, "--candidates.flip-rate has no effect"),
            (CandidatesConfig(kind="instance-dependent", flip_rate=0.3), False, "--candidates.flip-rate has no effect"),
            (CandidatesConfig(noise_rate=0.3), False, "--candidates.noise-rate has no effect"),
        ],
    )
    def test_a_setting_that_would_do_nothing_is_refused(self, sets: CandidatesConfig, given: bool, says: str) -> None:
        with pytest.raises(UserError, match=says):
            complete(RunConfig(candidates=sets), features=False, sets_given=given)


class TestQuick:
    @pytest.mark.parametrize(("passes", "epochs"), [("paper", 12), ("two", 20), ("one", 40)])
    def test_forms_of_papi_cost_the_same(self, passes: str, epochs: int) -> None:
        settings = of_images(RunConfig(option=(f"passes={passes}",)))
        assert (settings.epochs, settings.options["passes"]) == (epochs, passes)
        assert of_images(RunConfig(option=(f"passes={passes}",), epochs=7)).epochs == 7

    def test_all_methods_train_alike(self) -> None:
        """Only the method and its options differ between the runs of a comparison."""
        runs = [of_images(RunConfig(method=method, epochs=12)) for method in METHODS]
        assert len({(c.network, c.epochs, c.batch_size, c.drop_last, c.optim) for c in runs}) == 1

    def test_the_default_is_one_pass_at_the_price_of_twelve_epochs_of_the_paper(self) -> None:
        assert of_images(RunConfig()) == of_images(RunConfig(option=("passes=one", "set_prior=auto"), epochs=40))

    @pytest.mark.parametrize(("epochs", "passes"), [(1, "one"), (50, "one"), (51, "two"), (200, "two")])
    def test_long_runs_take_two_passes(self, epochs: int, passes: str) -> None:
        assert of_images(RunConfig(epochs=epochs)).options["passes"] == passes

    def test_the_papers_form_makes_no_use_of_the_sets(self) -> None:
        assert of_images(RunConfig(option=("passes=paper",))).options["set_prior"] == "off"
        assert of_images(RunConfig(preset="paper")).options["set_prior"] == "off"

    def test_one_view_methods_see_papis_weak_view(self) -> None:
        for method in ("proden", "rc", "cc", "lws", "supervised"):
            assert of_images(RunConfig(method=method)).options["view"] == "weak"

    @pytest.mark.parametrize("epochs", [1, 12, 200])
    def test_the_ramp_of_dpll_takes_half_the_run(self, epochs: int) -> None:
        assert of_images(RunConfig(method="dpll", epochs=epochs)).options["ramp_epochs"] == epochs / 2

    def test_the_confidence_momentum_of_papi_is_that_of_500_epochs(self) -> None:
        assert of_images(RunConfig(epochs=500)).options["confidence_momentum"] == pytest.approx((0.95, 0.8))

    def test_values_can_be_typed_again(self) -> None:
        """Rounded to what a person would type, so that a copied command gives the same run."""
        start, end = of_images(RunConfig(epochs=17)).options["confidence_momentum"]
        assert (float(f"{start:.6g}"), float(f"{end:.6g}")) == (start, end)


class TestFeatures:
    """Feature tables have a quick preset of their own."""

    def test_all_methods_train_alike_and_longer(self) -> None:
        runs = [of_features(RunConfig(method=method)) for method in METHODS]
        assert {(c.network, c.epochs, c.batch_size, c.drop_last) for c in runs} == {("mlp", 200, 128, False)}
        assert {(c.optim.optimizer, c.optim.schedule) for c in runs} == {("adam", "multistep")}

    @pytest.mark.parametrize("method", METHODS)
    def test_options_follow_the_length(self, method: str) -> None:
        long, short = (of_features(RunConfig(method=method, epochs=epochs)) for epochs in (200, 20))
        assert (long.options != short.options) == (method in ("papi", "pico", "dpll", "valen"))

    def test_it_is_that_of_data_with_features(self) -> None:
        features = np.zeros((4, 3), np.float32)
        dataset = Dataset("mine", ("a", "b"), features, (), (), candidates=np.ones((4, 2), bool))
        assert settings_for(RunConfig(data="mine.csv"), dataset).epochs == 200

    def test_the_paper_has_none_for_them_but_the_network_fits(self) -> None:
        assert of_features(RunConfig(preset="paper")).network == "mlp"


def test_a_config_answers_without_anything_being_built() -> None:
    plain = MethodConfig()
    assert (plain.view_names, plain.encoder_passes.units) == (("weak",), 3)
    assert not any((plain.needs_projector, plain.needs_truth, plain.needs_shape, plain.packs_sets))


class TestPaper:
    """Rows of the releases, written out once more."""

    @pytest.mark.parametrize(
        ("data", "flip_rate", "expected"),  # temperature, alpha, learning rate, weight decay, batch size
        [
            ("fashion-mnist", 0.1, (1.0, 8.0, 0.05, 1e-3, 256)),
            ("fashion-mnist", 0.3, (1.0, 0.05, 0.05, 1e-4, 256)),
            ("fashion-mini", 0.7, (1.0, 5.0, 0.05, 1e-3, 256)),
            ("svhn", 0.1, (0.3, 0.05, 0.05, 1e-3, 256)),
            ("svhn", 0.5, (0.3, 0.05, 0.07, 1e-3, 256)),
            ("cifar10", 0.5, (0.3, 8.0, 0.05, 1e-3, 256)),
            ("cifar100", 0.05, (0.3, 8.0, 0.1, 1e-3, 256)),
            ("mini-imagenet", 0.2, (0.1, 5.0, 0.03, 1e-4, 64)),
            ("mine.npz", 0.5, (0.3, 8.0, 0.05, 1e-3, 256)),
        ],
    )
    def test_papi(self, data: str, flip_rate: float, expected: tuple[object, ...]) -> None:
        config = paper("papi", data, flip_rate)
        temperature, alpha, lr, weight_decay, batch_size = expected
        plain = vars(find_method("papi").Config())
        assert config.options == plain | {"temperature": temperature, "mixup_alpha": alpha}
        optim = (config.optim.optimizer, config.optim.momentum, config.optim.nesterov, config.optim.decay)
        assert (*optim, config.optim.schedule) == ("sgd", 0.9, False, "all", "cosine")
        assert (config.optim.lr, config.optim.weight_decay) == (lr, weight_decay)
        assert (config.network, config.epochs, config.drop_last) == ("resnet18", 500, True)
        assert config.batch_size == batch_size

    @pytest.mark.parametrize(
        ("method", "data", "expected"),  # optimizer, lr, weight decay, schedule, epochs, batch size, drop_last
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
            ("fashion-mnist", 0.1, "sigmoid", 0.05, 1e-3, 2.0),
            ("fashion-mnist", 0.3, "sigmoid", 0.1, 1e-3, 1.0),
            ("fashion-mnist", 0.7, "sigmoid", 0.1, 1e-3, 1.0),
            ("cifar10", 0.1, "cross-entropy", 0.01, 0.01, 1.0),
            ("cifar10", 0.3, "cross-entropy", 0.01, 0.01, 2.0),
            ("fashion-mnist", 0.1, "cross-entropy", 0.1, 1e-3, 2.0),
            ("fashion-mnist", 0.3, "cross-entropy", 0.1, 1e-3, 1.0),
            ("fashion-mnist", 0.5, "cross-entropy", 0.1, 1e-3, 2.0),
        ],
    )
    def test_lws(self, data: str, flip_rate: float, loss: str, lr: float, weight_decay: float, beta: float) -> None:
        config = paper("lws", data, flip_rate, f"loss={loss}")
        assert (config.optim.lr, config.optim.weight_decay, config.options["beta"]) == (lr, weight_decay, beta)

    def test_releases_without_augmentation(self) -> None:
        for method in ("proden", "rc", "cc", "lws"):
            assert paper(method).options["view"] == "plain"
        assert paper("supervised").options["view"] == "weak"

    def test_long_warm_up_of_pico_with_many_candidates(self) -> None:
        assert [paper("pico", "cifar100", q).options["warmup_epochs"] for q in (0.05, 0.2)] == [1.0, 100.0]

    @pytest.mark.parametrize(
        ("data", "kind", "weight", "correction"),
        [
            ("cifar10", "instance-dependent", 10.0, 0.2),
            ("cifar10", "uniform", 10.0, 1.0),
            ("cifar100", "instance-dependent", 10.0, 0.2),
            ("cifar100", "uniform", 10.0, 1.0),
            ("fashion-mnist", "instance-dependent", 5.0, 1.0),
            ("fashion-mnist", "uniform", 10.0, 1.0),
            ("mine.npz", None, 10.0, 1.0),
        ],
    )
    def test_valen(self, data: str, kind: CandidateKind | None, weight: float, correction: float) -> None:
        options = find_method("valen").Config.released(data, 0.5, kind, {}).options  # type: ignore[union-attr]
        assert (options["distribution_weight"], options["correction"]) == (weight, correction)

    @pytest.mark.parametrize(
        ("data", "expected"),  # temperature, alpha, learning rate, weight decay, epochs
        [
            ("fashion-mnist", (1.0, 5.0, 0.05, 1e-3, 500)),
            ("svhn", (0.3, 0.05, 0.07, 1e-3, 500)),
            ("cifar10", (0.3, 8.0, 0.05, 1e-3, 500)),
            ("cifar100", (1.0, 5.0, 0.1, 1e-3, 200)),
        ],
    )
    @pytest.mark.parametrize("flip_rate", [0.01, 0.3, 0.9])
    def test_papi_on_instance_dependent_sets(self, data: str, expected: tuple[float, ...], flip_rate: float) -> None:
        release = find_method("papi").Config.released(data, flip_rate, "instance-dependent", {})
        assert release is not None
        options = release.options["temperature"], release.options["mixup_alpha"]
        assert (*options, release.lr, release.weight_decay, release.epochs) == expected

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("data", ["fashion-mnist", "cifar10", "cifar100"])
    def test_instance_dependent_sets_know_no_flip_rate(self, method: str, data: str) -> None:
        kind = find_method(method).Config
        found = [kind.released(data, rate, "instance-dependent", {}) for rate in (0.01, 0.1, 0.3, 0.5, 0.9)]
        assert all(each == found[0] for each in found)


class TestFrozenEncoder:
    """What trains a head on features of a pretrained encoder."""

    @pytest.mark.parametrize("method", METHODS)
    def test_one_recipe_for_all_methods(self, method: str) -> None:
        settings = complete(RunConfig(network="timm:any", tune="head", method=method), features=True, sets_given=True)
        assert (settings.network, settings.head) == ("timm:any", "linear")
        assert (settings.epochs, settings.batch_size) == (50, 64)
        assert (settings.optim.optimizer, settings.optim.lr, settings.optim.weight_decay) == ("adam", 1e-3, 0.05)

    def test_papi_needs_no_alignment(self) -> None:
        settings = complete(RunConfig(network="timm:any", tune="head"), features=True, sets_given=True)
        assert (settings.options["alignment"], settings.options["confidence_momentum"]) == (False, (0.2, 0.0))
        assert settings.options["cloud_rounds"] == 3

    @pytest.mark.parametrize("tune", ["head", "all"])
    def test_sets_have_a_say_only_if_a_person_wants_it(self, tune: Literal["head", "all"]) -> None:
        config = RunConfig(network="timm:any", tune=tune)
        settings = complete(config, features=tune == "head", sets_given=True)
        assert (settings.options["set_prior"], settings.options["balance_weight"]) == ("off", 0.0)
        asked = complete(replace(config, option=("set_prior=auto",)), features=tune == "head", sets_given=True)
        assert asked.options["set_prior"] == "auto"

    def test_clouds_trust_the_sets(self) -> None:
        doubting = RunConfig(network="timm:any", tune="head", option=("noise_tolerance=auto",))
        assert complete(doubting, features=True, sets_given=True).options["cloud_rounds"] == 0
        tuned = RunConfig(network="timm:any", tune="all")
        assert complete(tuned, features=False, sets_given=True).options["cloud_rounds"] == 0

    def test_what_a_person_gives_stays(self) -> None:
        config = RunConfig(network="timm:any", tune="head", head="mlp", epochs=7, option=("alignment=on",))
        settings = complete(config, features=True, sets_given=True)
        assert (settings.head, settings.epochs, settings.options["alignment"]) == ("mlp", 7, True)

    def test_tables_of_features_are_trained_as_before(self) -> None:
        settings = complete(RunConfig(), features=True, sets_given=True)
        assert (settings.network, settings.head, settings.epochs) == ("mlp", None, 200)
        assert settings.options["alignment"]
        assert settings.options["cloud_rounds"] == 0

    @pytest.mark.parametrize("count", [-1, 65])
    def test_so_many_views_make_no_sense(self, count: int) -> None:
        with pytest.raises(UserError, match=r"--data\.views must be between 0 and 64"):
            RunConfig(data_views=count)


def test_an_encoder_that_goes_on_learning_does_so_slowly() -> None:
    settings = complete(RunConfig(network="timm:any", tune="all"), features=False, sets_given=True)
    assert (settings.network, settings.head) == ("timm:any", None)
    assert 0 < settings.optim.encoder_lr < settings.optim.lr
    assert settings.optim.clip_norm > 0
    assert settings.optim.schedule == "warmup-cosine"
