"""Encoders with weights by name: of libraries, as far as they are installed, and of factories."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import lite0
import tiny_encoder
from outside_networks import NETWORK, new_module
from papi.errors import UserError
from papi.networks.preparation import Preparation
from papi.networks.pretrained import Pretrained, is_pretrained, load_pretrained, rebuild
from papi.networks.sources import made
from torchvision_operators import require

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No hub can be reached, whatever this machine is connected to, and nothing is in its cache."""
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


def assert_usable(found: Pretrained) -> None:
    """It gives vectors of the width it names, is frozen, and can be built again and get the same weights."""
    photos = torch.randn(3, *found.preparation.shape)
    features = found.encoder(photos)
    assert features.shape == (3, found.width)
    assert not any(parameter.requires_grad for parameter in found.encoder.parameters())
    assert not found.encoder.training
    again = rebuild(found.reference, found.preparation, json.loads(json.dumps(found.config)))
    again.load_state_dict(found.encoder.state_dict())
    assert again(photos).equal(features)


class TestFactories:
    def test_the_module_says_how_photos_are_prepared(self) -> None:
        found = load_pretrained(tiny_encoder.NAME)
        assert found.preparation == Preparation(16, (0.5,) * 3, (0.25,) * 3, "bilinear")
        assert found.checksum == load_pretrained(tiny_encoder.NAME).checksum
        assert not found.provided
        assert_usable(found)

    def test_without_a_word_as_for_imagenet(self) -> None:
        assert load_pretrained(NETWORK).preparation == Preparation()

    def test_another_size(self) -> None:
        assert load_pretrained(tiny_encoder.NAME, size=24).preparation.size == 24

    def test_weights_of_a_file(self, tmp_path: Path) -> None:
        changed = tiny_encoder.encoder((3, 16, 16))
        nn.init.zeros_(changed[0].weight)
        torch.save(changed.state_dict() | {"fc.weight": torch.zeros(2, 2)}, tmp_path / "weights.pth")
        found = load_pretrained(tiny_encoder.NAME, str(tmp_path / "weights.pth"))
        assert not found.encoder[0].weight.any()
        assert any("fc.weight" in note for note in found.notes)

    def test_what_is_pretrained(self) -> None:
        assert is_pretrained(tiny_encoder.NAME)
        assert is_pretrained("timm:resnet18")
        assert not is_pretrained("small")
        assert not is_pretrained(NETWORK)

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ("return nn.Conv2d(3, 4, 3)", "pool"),
            ("class M(nn.Module):\n        def forward(self, x): return None\n    return M()", "NoneType"),
            ("return None", "NoneType"),
            (
                "m = nn.Linear(588, 2)\n    m.bias.data += float('nan')\n    return nn.Sequential(nn.Flatten(), m)",
                "finite",
            ),
        ],
    )
    def test_encoders_that_cannot_be_used(
        self, body: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        code = f"from torch import nn\ninput_size = 14\ndef make(shape):\n    {body}\n"
        with pytest.raises(UserError, match=said):
            load_pretrained(f"{new_module(tmp_path, code, monkeypatch)}:make")

    def test_what_a_module_says_must_make_sense(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        code = "std = (0, 0, 0)\ndef make(shape): pass\n"
        with pytest.raises(UserError, match="std"):
            load_pretrained(f"{new_module(tmp_path, code, monkeypatch)}:make")

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="does not exist"):
            load_pretrained(tiny_encoder.NAME, str(tmp_path / "missing.pth"))


def test_a_real_encoder() -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    found = load_pretrained(lite0.NAME, size=64)  # smaller, to be quick
    assert found.width == 1280
    assert found.encoder(torch.randn(1, 3, 64, 64)).std() > 0.01


def vit(**others: int) -> dict[str, Any]:
    return {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 32, "patch_size": 16,
            "intermediate_size": 16} | others  # fmt: skip


def text() -> dict[str, Any]:
    return {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
            "vocab_size": 9, "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip


MODELS: dict[str, Callable[[Any], Any]] = {
    "dinov2": lambda hf: hf.Dinov2Model(hf.Dinov2Config(**vit(mlp_ratio=1))),
    "dinov3": lambda hf: hf.DINOv3ViTModel(hf.DINOv3ViTConfig(**vit())),
    "vit": lambda hf: hf.ViTModel(hf.ViTConfig(**vit())),
    "vit-classifier": lambda hf: hf.ViTForImageClassification(hf.ViTConfig(**vit(num_labels=7))),
    "convnext": lambda hf: hf.ConvNextV2Model(
        hf.ConvNextV2Config(depths=[1] * 4, hidden_sizes=[4, 4, 4, 8], image_size=32)
    ),
    "clip": lambda hf: hf.CLIPModel(hf.CLIPConfig(text_config=text(), vision_config=vit(), projection_dim=8)),
    "siglip": lambda hf: hf.SiglipVisionModel(hf.SiglipVisionConfig(**vit())),
}
PROCESSOR = {"size": {"shortest_edge": 40}, "crop_size": {"height": 32, "width": 32}, "do_center_crop": True,
             "image_mean": [0.5, 0.5, 0.5], "image_std": [0.2, 0.2, 0.2], "resample": 2}  # fmt: skip


def saved(kind: str, folder: Path) -> Path:
    """A tiny model with random weights, as transformers writes it."""
    require("transformers")
    import transformers

    transformers.utils.logging.disable_progress_bar()
    MODELS[kind](transformers).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    return folder


class TestTransformers:
    @pytest.mark.parametrize("kind", MODELS)
    def test_a_folder(self, kind: str, tmp_path: Path) -> None:
        found = load_pretrained(f"hf:{saved(kind, tmp_path)}")
        assert found.preparation == Preparation(32, (0.5,) * 3, (0.2,) * 3, "bilinear")
        assert_usable(found)
        assert load_pretrained(found.reference).checksum == found.checksum
        assert not found.provided  # a folder can go away

    def test_a_classifier_is_left_out_and_its_class_token_used(self, tmp_path: Path) -> None:
        found = load_pretrained(f"hf:{saved('vit-classifier', tmp_path)}")
        assert any("classifier" in note for note in found.notes)
        photos = torch.randn(2, 3, 32, 32)
        hidden = found.encoder.model(photos).last_hidden_state
        assert found.encoder(photos).equal(hidden[:, 0])  # its pooler would be random

    def test_another_size(self, tmp_path: Path) -> None:
        assert_usable(load_pretrained(f"hf:{saved('vit', tmp_path)}", size=48))

    def test_random_weights_and_those_of_a_file(self, tmp_path: Path) -> None:
        folder = saved("vit-classifier", tmp_path)
        default, random = load_pretrained(f"hf:{folder}"), load_pretrained(f"hf:{folder}", "none")
        assert random.checksum != default.checksum
        again = load_pretrained(f"hf:{folder}", str(folder / "model.safetensors"))
        assert again.checksum == default.checksum
        assert any("classifier" in note for note in again.notes)

    @pytest.mark.parametrize(
        ("size", "side"), [(40, 40), ({"height": 48, "width": 48}, 48), ({"shortest_edge": 36}, 36), (None, 32)]
    )
    def test_sizes_as_processors_write_them(self, size: object, side: int, tmp_path: Path) -> None:
        folder = saved("convnext", tmp_path)
        (folder / "preprocessor_config.json").write_text(json.dumps({"size": size}))
        assert load_pretrained(f"hf:{folder}").preparation == Preparation(side)

    def test_pixels_on_another_scale(self, tmp_path: Path) -> None:
        folder = saved("convnext", tmp_path)
        values = {"rescale_factor": 1.0, "image_mean": [127, 127, 127], "image_std": [128, 128, 128]}
        (folder / "preprocessor_config.json").write_text(json.dumps(values))
        found = load_pretrained(f"hf:{folder}").preparation
        assert found.mean == pytest.approx((127 / 255,) * 3)
        assert found.std == pytest.approx((128 / 255,) * 3)

    def test_no_code_of_a_folder_is_run(self, tmp_path: Path) -> None:
        folder = saved("vit", tmp_path)
        settings = json.loads((folder / "config.json").read_text())
        settings |= {"model_type": "strange", "auto_map": {"AutoConfig": "code.C", "AutoModel": "code.M"}}
        (folder / "config.json").write_text(json.dumps(settings))
        (folder / "code.py").write_text("import os\nos.mkdir('trace')\n")
        os.chdir(tmp_path)
        with pytest.raises(UserError, match="cannot be built"):
            load_pretrained(f"hf:{folder}")
        assert not list(tmp_path.rglob("trace"))

    @pytest.mark.parametrize(
        ("file", "content"),
        [
            ("config.json", "{"),
            ("config.json", "[]"),
            ("config.json", '{"model_type": "vit", "hidden_size": 17}'),
            ("model.safetensors", "short"),
            ("preprocessor_config.json", '{"image_std": [0, 0, 0]}'),
            ("preprocessor_config.json", '{"image_mean": "grey"}'),
            ("preprocessor_config.json", '{"resample": 77}'),
        ],
    )
    def test_damaged_folders(self, file: str, content: str, tmp_path: Path) -> None:
        folder = saved("vit", tmp_path)
        (folder / file).write_text(content)
        with pytest.raises(UserError, match=r"\w"):
            load_pretrained(f"hf:{folder}")

    def test_folders_without_a_file(self, tmp_path: Path) -> None:
        folder = saved("vit", tmp_path)
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
        with pytest.raises(UserError, match="safetensors"):
            load_pretrained(f"hf:{folder}")
        (folder / "config.json").unlink()
        with pytest.raises(UserError, match=r"config\.json"):
            load_pretrained(f"hf:{folder}")

    def test_links_do_not_lead_out(self, tmp_path: Path) -> None:
        folder = saved("vit", tmp_path / "model")
        (folder / "config.json").rename(tmp_path / "elsewhere.json")
        (folder / "config.json").symlink_to(tmp_path / "elsewhere.json")
        with pytest.raises(UserError, match="leads out"):
            load_pretrained(f"hf:{folder}")

    def test_the_hub_is_asked_once(self) -> None:
        require("transformers")
        with pytest.raises(UserError, match="cannot be reached"):
            load_pretrained("hf:facebook/dinov2-small")
        with pytest.raises(UserError, match="if only a file names"):
            load_pretrained("hf:facebook/dinov2-small", fetch=False)
        with pytest.raises(UserError, match="neither a folder nor a name"):
            load_pretrained("hf:no/such/folder")


class TestTimm:
    def test_an_encoder_without_its_head(self, tmp_path: Path) -> None:
        require("timm")
        found = load_pretrained("timm:resnet10t", "none", 32)
        assert found.preparation == Preparation(32)
        assert_usable(found)
        file = tmp_path / "weights.pth"
        torch.save(found.encoder.state_dict() | {"fc.weight": torch.zeros(1000, 512)}, file)
        again = load_pretrained("timm:resnet10t", str(file), 32)
        assert again.checksum == found.checksum
        assert any("fc.weight" in note for note in again.notes)
        assert not again.provided

    def test_position_embeddings_of_another_size(self, tmp_path: Path) -> None:
        require("timm")
        import timm

        model = timm.create_model("vit_tiny_patch16_224", depth=1, num_classes=0)
        kept = {key: value for key, value in model.state_dict().items() if "blocks" not in key}
        torch.save(kept, tmp_path / "weights.pth")
        with pytest.raises(UserError, match="blocks"):  # what is resized comes through: the blocks alone are missing
            load_pretrained("timm:vit_tiny_patch16_224", str(tmp_path / "weights.pth"), 96)

    def test_unknown_names(self) -> None:
        require("timm")
        with pytest.raises(UserError, match=r"did you mean timm:resnet10t\?"):
            load_pretrained("timm:resnet10tt")
        with pytest.raises(UserError, match="no encoder"):
            load_pretrained("timm:hf-hub:somebody/model")

    def test_a_hub_that_cannot_be_reached(self) -> None:
        require("timm")
        with pytest.raises(UserError, match="cannot be reached"):
            load_pretrained("timm:resnet10t")

    def test_weights_from_the_cache_of_the_hub(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """As a library left them there: no connection is needed."""
        require("timm")
        from safetensors.torch import save_file

        random = load_pretrained("timm:resnet10t", "none")
        snapshot = tmp_path / "hub" / "models--timm--resnet10t.c3_in1k" / "snapshots" / ("a" * 40)
        snapshot.mkdir(parents=True)
        (snapshot.parents[1] / "refs").mkdir()
        (snapshot.parents[1] / "refs" / "main").write_text("a" * 40)
        save_file(random.encoder.state_dict(), snapshot / "model.safetensors")
        found = load_pretrained("timm:resnet10t", fetch=False)
        assert found.checksum == random.checksum
        assert found.provided


class TestTorchvision:
    def test_an_encoder_without_its_head(self, tmp_path: Path) -> None:
        require("torchvision")
        found = load_pretrained("torchvision:mobilenet_v3_small", "none", 32)
        assert found.preparation.interpolation == "bilinear"
        assert_usable(found)

    def test_unknown_names(self) -> None:
        require("torchvision")
        with pytest.raises(UserError, match="did you mean torchvision:resnet18"):
            load_pretrained("torchvision:resnet181")


def test_libraries_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "find_spec", lambda name: None)
    for name in ("timm:resnet18", "hf:facebook/dinov2-small", "torchvision:resnet18"):
        with pytest.raises(UserError, match="pip install"):
            load_pretrained(name)
