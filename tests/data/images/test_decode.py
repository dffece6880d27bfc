"""Image files of all kinds come out upright, with eight bits, and in one shape."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image

from papi.data.images.decode import FORMATS, MAX_PIXELS, ImageError, Target, decode, probe, readable_formats

RGB = Target(8, 8, 3)
GREY = Target(8, 8, 1)


def gradient(side: int = 8) -> np.ndarray:
    """Dark at the left, light at the right."""
    return np.tile(np.linspace(0, 255, side).astype(np.uint8), (side, 1))


def test_greyscale_and_colour(tmp_path: Path) -> None:
    Image.fromarray(gradient()).save(tmp_path / "a.png")
    assert decode(tmp_path / "a.png", GREY).tolist() == [gradient().tolist()]
    assert decode(tmp_path / "a.png", RGB).tolist() == [gradient().tolist()] * 3
    assert probe(tmp_path / "a.png") == (8, 8, True)


def test_sixteen_bits_keep_their_upper_eight(tmp_path: Path) -> None:
    wide = gradient().astype(np.uint16) * 257
    Image.fromarray(wide).save(tmp_path / "a.png")
    Image.fromarray(wide).save(tmp_path / "a.tif")
    for name in ("a.png", "a.tif"):
        assert probe(tmp_path / name).grey
        assert decode(tmp_path / name, GREY)[0].tolist() == gradient().tolist()


def test_transparent_pixels_are_white(tmp_path: Path) -> None:
    pixels = np.zeros((8, 8, 4), np.uint8)
    pixels[:, :4, 3] = 255  # black at the left, transparent at the right
    Image.fromarray(pixels).save(tmp_path / "a.png")
    decoded = decode(tmp_path / "a.png", RGB)
    assert (decoded[:, :, :4] == 0).all()
    assert (decoded[:, :, 4:] == 255).all()
    Image.fromarray(pixels).convert("LA").save(tmp_path / "la.png")
    assert (decode(tmp_path / "la.png", GREY)[0, :, 4:] == 255).all()


def test_palettes_and_two_colours(tmp_path: Path) -> None:
    Image.fromarray(gradient()).convert("P").save(tmp_path / "a.gif")
    assert np.abs(decode(tmp_path / "a.gif", RGB)[0].astype(int) - gradient()).max() <= 2
    Image.fromarray(gradient() > 127).save(tmp_path / "b.png")
    assert set(decode(tmp_path / "b.png", GREY).ravel().tolist()) == {0, 255}


def test_cmyk(tmp_path: Path) -> None:
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "a.jpg")  # red ink
    red, green, blue = decode(tmp_path / "a.jpg", RGB).mean((1, 2))
    assert red > 200
    assert max(green, blue) < 60


def test_turned_cameras(tmp_path: Path) -> None:
    image = Image.fromarray(np.tile(gradient(16), (1, 1))[:8])  # 16 wide, 8 high
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees to see it upright
    image.save(tmp_path / "a.png", exif=exif)
    assert probe(tmp_path / "a.png") == (16, 8, True)
    upright = decode(tmp_path / "a.png", Target(16, 8, 1))[0]
    assert upright[0].max() < 20 < 230 < upright[-1].min()


def test_the_middle_is_kept(tmp_path: Path) -> None:
    wide = np.zeros((8, 24), np.uint8)
    wide[:, 8:16] = 200
    Image.fromarray(wide).save(tmp_path / "a.png")
    assert (decode(tmp_path / "a.png", GREY) == 200).all()


def test_centre_before_resizing(tmp_path: Path) -> None:
    pixels = np.zeros((64, 64), np.uint8)
    pixels[24:40, 24:40] = 100
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert (decode(tmp_path / "a.png", Target(8, 8, 1, centre=16)) == 100).all()


@pytest.mark.parametrize(("width", "height"), [(23, 21), (24, 22), (25, 20), (40, 31)])
def test_the_centre_is_torchvisions(width: int, height: int, tmp_path: Path) -> None:
    """CenterCrop rounds margins, half a pixel to the even number; Resize is bilinear. Both are written out again."""
    image = Image.fromarray(np.random.default_rng(width).integers(0, 256, (height, width), np.uint8))
    image.save(tmp_path / "a.png")
    top, left = round((height - 20) / 2.0), round((width - 20) / 2.0)
    expected = image.crop((left, top, left + 20, top + 20)).resize((8, 8), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(decode(tmp_path / "a.png", Target(8, 8, 1, centre=20))[0], np.asarray(expected))


@pytest.mark.parametrize("side", [5, 31, 300])
def test_any_size_becomes_one(side: int, tmp_path: Path) -> None:
    Image.fromarray(gradient(side)).save(tmp_path / "a.jpg", quality=95)
    decoded = decode(tmp_path / "a.jpg", GREY)[0].mean(0)
    assert (np.diff(decoded) > 5).all()


def unclipped(image: Image.Image, height: int, width: int) -> Image.Image:
    """The middle part resized, with a box in plain floating point: Pillow refuses it where it is rounded outwards."""
    scale = min(image.width / width, image.height / height)
    across, down = scale * width, scale * height
    left, top = (image.width - across) / 2, (image.height - down) / 2
    box = (left, top, left + across, top + down)
    return image.resize((width, height), Image.Resampling.BICUBIC, box, reducing_gap=3.0)


sides = st.integers(1, 700)
targets = st.sampled_from([(8, 8), (28, 28), (32, 32), (64, 64), (84, 84), (224, 224), (299, 299), (37, 53), (53, 37)])


@given(sides, sides, targets)
@example(225, 225, (224, 224))  # 225 / 224 * 224 is a little more than 225
@example(225, 400, (224, 224))
@example(400, 225, (224, 224))
@example(1, 700, (299, 299))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_no_size_is_taken_for_damage(tmp_path: Path, height: int, width: int, target: tuple[int, int]) -> None:
    """Where Pillow takes the box as computed, the pixels are those of that box."""
    pixels = np.random.default_rng(height * 1000 + width).integers(0, 256, (height, width), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.bmp")
    decoded = decode(tmp_path / "a.bmp", Target(*target, 1))[0]
    assert decoded.shape == target
    if (height, width) == target:
        np.testing.assert_array_equal(decoded, pixels)
        return
    try:
        expected = unclipped(Image.fromarray(pixels), *target)
    except ValueError:
        return
    np.testing.assert_array_equal(decoded, np.asarray(expected))


@pytest.mark.parametrize("target", [64, 224])
def test_every_square_photo_can_be_resized(target: int, tmp_path: Path) -> None:
    """Rounding errors come and go with the size, so that all of them are tried."""
    for side in range(1, 301):
        Image.new("L", (side, side), 77).save(tmp_path / "a.bmp")
        assert (decode(tmp_path / "a.bmp", Target(target, target, 1)) == 77).all(), side


def png_announcing(width: int, height: int) -> bytes:
    """A tiny png whose header announces a huge image."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 10)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [10_001, 20_000, 60_000])
def test_image_bombs(side: int, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png_announcing(side, side))
    with pytest.raises(ImageError, match=f"pixels.*the limit is {MAX_PIXELS:,}"):
        probe(tmp_path / "a.png")


def test_unusable_files(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="does not exist"):
        probe(tmp_path / "a.png")
    (tmp_path / "a.png").write_bytes(b"not an image")
    with pytest.raises(ImageError, match="is not an image that can be read"):
        decode(tmp_path / "a.png", RGB)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)).save(tmp_path / "b.jpg")
    content = (tmp_path / "b.jpg").read_bytes()
    (tmp_path / "b.jpg").write_bytes(content[: len(content) // 2])
    with pytest.raises(ImageError, match=r"is damaged .*truncated"):
        decode(tmp_path / "b.jpg", RGB)
    Image.fromarray(np.full((8, 8), 0.5, np.float32)).save(tmp_path / "f.tif")
    with pytest.raises(ImageError, match="floating-point pixels"):
        decode(tmp_path / "f.tif", GREY)
    Image.fromarray(np.full((8, 8), 2**20, np.int32)).save(tmp_path / "i.tif")
    with pytest.raises(ImageError, match="32 bits per pixel"):
        decode(tmp_path / "i.tif", GREY)


@pytest.mark.parametrize("kind", [name for name in FORMATS if name in readable_formats()])
def test_every_admitted_format_is_read_whatever_its_name_is(kind: str, tmp_path: Path) -> None:
    Image.fromarray(gradient(16)).convert("RGB").save(tmp_path / "a.txt", format=kind)
    assert probe(tmp_path / "a.txt")[:2] == (16, 16)
    assert np.abs(decode(tmp_path / "a.txt", Target(16, 16, 3))[0].astype(int) - gradient(16)).mean() < 10


@pytest.mark.parametrize("kind", ["EPS", "PCX", "TGA", "ICO", "SGI", "DDS", "PDF"])
def test_other_formats_are_refused(kind: str, tmp_path: Path) -> None:
    Image.fromarray(gradient(16)).convert("RGB").save(tmp_path / "a.png", format=kind)
    for read in (probe, lambda path: decode(path, RGB)):
        with pytest.raises(ImageError, match="is not an image that can be read"):
            read(tmp_path / "a.png")


def test_the_first_frame_counts(tmp_path: Path) -> None:
    frames = [Image.new("L", (8, 8), value) for value in (40, 200)]
    for name in ("a.gif", "a.tif", "a.webp"):
        frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:], duration=100)
        assert abs(int(decode(tmp_path / name, RGB).mean()) - 40) < 3


def test_links_to_themselves_and_pipes(tmp_path: Path) -> None:
    (tmp_path / "a.png").symlink_to("a.png")
    with pytest.raises(ImageError, match=r"cannot be read \(Too many levels of symbolic links\)"):
        probe(tmp_path / "a.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ImageError, match="is not a regular file"):
        decode(tmp_path / "folder.png", RGB)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "TIFF", "PPM", "GIF", "AVIF"])
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@pytest.mark.filterwarnings("ignore")
def test_wrong_bytes_are_decoded_or_refused(kind: str, tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    if kind not in readable_formats():
        pytest.skip("this Pillow does not read it")
    Image.fromarray(gradient(12)).convert("RGB").save(tmp_path / "a.png", format=kind)
    content = bytearray((tmp_path / "a.png").read_bytes())
    for place, value in changes:
        content[place % len(content)] = value
    (tmp_path / "a.png").write_bytes(content)
    try:
        probe(tmp_path / "a.png")
        assert decode(tmp_path / "a.png", RGB).shape == (3, 8, 8)
    except ImageError:
        pass
