"""What anybody may have written: which files are opened, how much of them, and what JSON may say."""

import json
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.files.reading import (
    JSON_BYTES,
    JSON_DEPTH,
    is_unicode,
    memory_bytes,
    opened,
    parse_json,
    plain_file,
    read_bytes,
    read_json,
    reason,
)

MOST = 1000
values = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.integers(-(2**63), 2**63)
    | st.text("aé漢🦊\n", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=10,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(b"content")
    return folder / "file"


class TestPlainFiles:
    def test_are_read(self, file: Path) -> None:
        assert read_bytes(file, MOST) == b"content"
        assert read_bytes(file, MOST, inside=file.parent) == b"content"
        with opened(file, MOST) as stream:
            assert stream.readline() == b"content"

    def test_of_the_largest_size(self, file: Path) -> None:
        assert read_bytes(file, 7) == b"content"
        with pytest.raises(OSError, match="MB"):
            read_bytes(file, 6)

    def test_a_size_that_only_the_system_knows(self, file: Path) -> None:
        """A sparse file takes no room, and reading it would take all memory."""
        os.truncate(file, 2**40)
        with pytest.raises(OSError, match="at most"):
            read_bytes(file, memory_bytes())

    def test_that_are_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            read_bytes(tmp_path / "missing", MOST)


class TestWhatIsNoFile:
    """Nothing here may wait: a pipe without a writer would do so for ever."""

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(IsADirectoryError):
            read_bytes(tmp_path, MOST)

    def test_a_pipe(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="a pipe"):
            read_bytes(tmp_path / "pipe", MOST)

    @pytest.mark.parametrize("name", ["/dev/zero", "/dev/null"])
    def test_a_device(self, name: str) -> None:
        with pytest.raises(OSError, match="a device"):
            read_bytes(Path(name), MOST)

    def test_a_socket(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)  # names of sockets are short
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("socket")
            with pytest.raises(OSError, match="a socket"):
                read_bytes(Path("socket"), MOST)

    def test_what_becomes_a_pipe_after_the_first_look(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pipe = file.with_name("pipe")
        os.mkfifo(pipe)
        monkeypatch.setattr("papi.files.reading.plain_file", lambda *_: pipe)
        with pytest.raises(OSError, match="a pipe"):
            read_bytes(file, MOST)


class TestLinks:
    def test_a_person_may_name_one(self, file: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(file)
        assert read_bytes(tmp_path / "link", MOST) == b"content"
        assert plain_file(tmp_path / "link", MOST) == file.resolve()

    def test_within_the_folder(self, file: Path) -> None:
        (file.parent / "link").symlink_to("file")
        assert read_bytes(file.parent / "link", MOST, inside=file.parent) == b"content"

    def test_the_folder_may_be_one(self, file: Path, tmp_path: Path) -> None:
        (tmp_path / "latest").symlink_to(file.parent)
        assert read_bytes(tmp_path / "latest" / "file", MOST, inside=tmp_path / "latest") == b"content"

    @pytest.mark.parametrize("target", ["../secret", "../folder2/secret", "inner/../../secret"])
    def test_out_of_the_folder(self, file: Path, target: str) -> None:
        root = file.parent.parent
        for name in ("secret", "folder2/secret"):  # one that begins like the folder itself
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text("private")
        (file.parent / "inner").mkdir()
        (file.parent / "link").symlink_to(target)
        with pytest.raises(OSError, match="out of its folder"):
            read_bytes(file.parent / "link", MOST, inside=file.parent)

    def test_through_a_folder_that_is_one(self, file: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "secret").write_text("private")
        (file.parent / "inner").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(OSError, match="out of its folder"):
            read_bytes(file.parent / "inner" / "secret", MOST, inside=file.parent)

    def test_to_itself(self, file: Path) -> None:
        (file.parent / "link").symlink_to("link")
        with pytest.raises(OSError, match="symbolic links"):
            read_bytes(file.parent / "link", MOST)

    def test_to_nothing(self, file: Path) -> None:
        (file.parent / "link").symlink_to("nothing")
        with pytest.raises(FileNotFoundError):
            read_bytes(file.parent / "link", MOST)


class TestJson:
    @given(values)
    def test_there_and_back(self, value: object) -> None:
        assert parse_json(json.dumps(value)) == value

    def test_a_file(self, file: Path) -> None:
        file.write_text('{"a": [1, "ü"]}', encoding="utf-8")
        assert read_json(file) == {"a": [1, "ü"]}

    @pytest.mark.parametrize("content", [b"\xff\xfe{}", b"", b"{", b"{'a': 1}", b'{"a": 01}'])
    def test_what_is_none(self, content: bytes, file: Path) -> None:
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r".*"):
            read_json(file)

    def test_too_large(self, file: Path) -> None:
        os.truncate(file, JSON_BYTES + 1)
        with pytest.raises(OSError, match="at most"):
            read_json(file)

    @pytest.mark.parametrize("depth", [JSON_DEPTH + 1, 900, 5_000, 500_000])
    @pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
    def test_nested(self, depth: int, begin: str, end: str) -> None:
        with pytest.raises(ValueError, match="nested"):
            parse_json(begin * depth + "1" + end * depth)

    def test_nested_as_deeply_as_it_may_be(self) -> None:
        found = parse_json("[" * (JSON_DEPTH - 1) + "]" * (JSON_DEPTH - 1))
        assert isinstance(found, list)

    @pytest.mark.parametrize("digits", [26, 400, 4_300, 5_000, 100_000])
    def test_long_numbers(self, digits: int) -> None:
        for text in ("9" * digits, f'{{"a": [-{"9" * digits}]}}'):
            with pytest.raises(ValueError, match="digits"):
                parse_json(text)

    def test_large_fractions_are_infinite(self) -> None:
        assert parse_json("1e999") == float("inf")
        assert parse_json("0." + "1" * 10_000) == pytest.approx(1 / 9)

    @pytest.mark.parametrize("text", [r'"\ud800"', r'{"\udc7f": 1}', r'["a", "b\u0000c"]', r'{"a": {"b\u0000": 1}}'])
    def test_texts_that_cannot_be_written(self, text: str) -> None:
        with pytest.raises(ValueError, match="cannot be written"):
            parse_json(text)

    def test_names_of_files_that_are_not_utf_8(self) -> None:
        name = b"caf\xe9".decode(errors="surrogateescape")
        assert parse_json(json.dumps([name])) == [name]
        assert not is_unicode(name)
        assert is_unicode("café 漢🦊")

    def test_pairs_of_surrogates_are_one_character(self) -> None:
        assert parse_json(r'"\ud83e\udd8a"') == "🦊"


class TestReason:
    def test_of_the_system(self, tmp_path: Path) -> None:
        with pytest.raises(OSError, match=r".*") as raised:
            read_bytes(tmp_path / "missing", MOST)
        assert reason(raised.value) == "No such file or directory"

    def test_is_one_short_line(self) -> None:
        said = reason(ValueError("a\nb " + "long " * 10_000))
        assert said.startswith("a b long")
        assert len(said) <= 300

    def test_is_never_empty(self) -> None:
        assert reason(MemoryError()) == "MemoryError"
