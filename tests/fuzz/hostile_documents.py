"""Damage within documents: XML, TOML and spreadsheets."""

import io
import re
import zipfile
from pathlib import Path
from random import Random

from hostile_values import DEPTH, DIGITS, NUMBERS, TEXTS

_TOML_VALUES = (
    "", "nan", "inf", "-inf", "[]", "{}", "[1, 'a']", "1979-05-27T07:32:00Z", "true", "'''\n'''", '"\\u0000"',
    "7" * 5000, "[" * 50_000, "0x" + "f" * 400, "1e400", "{a = {b = {c = {d = 1}}}}",
)  # fmt: skip
_TOML_LINES = (
    'network = "trap_network:build"', 'method = "trap:Trap"', 'candidates.annotator = "trap:Trap"', "[data]",
    "[[optim]]", 'option = ["temperature=0.5", "x"]', "option = {temperature = nan}", "a." * 500 + "b = 1",
    "tensorboard = 3",
    'candidates.file = "../outside/private.txt"', 'data = "../outside"', 'data-dir = "../outside"', "\x1b[31m = 1",
    'weights = "../outside/private.txt"',
)  # fmt: skip


def change_toml(file: Path, chance: Random) -> tuple[bytes, str]:
    """A line dropped, doubled, of another value, or put in."""
    lines = file.read_text().splitlines()
    at = chance.randrange(len(lines))
    kind = chance.randrange(6)
    if kind == 0:
        lines[at : at + 1] = chance.choice([[], [lines[at]] * 2])
        done = f"line {at} dropped or doubled"
    elif kind == 1:
        lines.insert(chance.choice([0, at, len(lines)]), line := chance.choice(_TOML_LINES))
        done = f"{line[:60]!r} put in"
    else:
        texts = [f'"{text}"' for text in TEXTS if text.isprintable() and text != DIGITS]
        value = chance.choice([*_TOML_VALUES, *texts, *map(str, NUMBERS)])
        key = lines[at].partition("=")[0]
        lines[at], done = f"{key}= {value}", f"{key}is {value[:40]!r}"
    return "\n".join([*lines, ""]).encode(), done


_ENTITIES = (
    '<!DOCTYPE a [<!ENTITY e SYSTEM "../outside/private.txt">]>',
    '<!DOCTYPE a [<!ENTITY % e SYSTEM "../outside/private.txt"> %e;]>',
    '<!DOCTYPE a SYSTEM "../outside/private.txt">',
    '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb">'
    + "".join(f'<!ENTITY b{k} "{f"&b{k - 1 or str()};" * 10}">' for k in range(1, 12))
    + '<!ENTITY e "&b11;">]>',
)


def change_xml(file: Path, chance: Random) -> tuple[bytes, str]:
    """Another tag, attribute or text, entities, or far too deep."""
    content, done = _other_xml(file.read_text(), chance)
    return content.encode(chance.choice(["utf-8"] * 8 + ["utf-16", "latin-1"]), "xmlcharrefreplace"), done


def _other_xml(text: str, chance: Random) -> tuple[str, str]:
    kind = chance.randrange(6)
    if kind == 0:
        head, mark, rest = text.rpartition("?>")
        used = re.sub('(label|name)="', r"\g<0>&e;", rest, count=1)
        return f"{head}{mark}{chance.choice(_ENTITIES)}{used}", "entities"
    if kind == 1:
        deep = chance.choice([DEPTH, 100_000])
        return text.replace("</annotations>", "<a>" * deep + "</a>" * deep + "</annotations>"), f"{deep} deep"
    found = chance.choice(list(re.finditer(r'[\w-]+="[^"]*"|</?\w+', text)))
    if kind == 2:
        new = chance.choice(["", "<box", "<a", "</a", 'x="1"', 'label=""', found[0] * 2, "<![CDATA[", "<!--", "&#0;"])
    else:
        value = chance.choice([*TEXTS, *map(str, NUMBERS), "&amp;", "&lt;", "&#27;[31m"]).replace(DIGITS, "7" * 5000)
        new = f'{found[0].partition("=")[0]}="{value}"'
    return text[: found.start()] + new + text[found.end() :], f"{new[:40]!r} for {found[0]!r}"


def change_xlsx(file: Path, chance: Random) -> tuple[bytes, str]:
    """Another cell, or another part of the archive."""
    if chance.random() < 0.5:
        return _other_cell(file, chance)
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice([each for each in parts if "sheet" in each or "workbook" in each] + list(parts))
    kind = chance.randrange(3)
    if kind == 0:
        del parts[name]
        done = f"{name} dropped"
    elif kind == 1:
        parts[name], done = chance.choice([b"", b"<", bytes(2**20), b"<a>" * 100_000]), f"{name} is no XML"
    else:
        changed, done = _other_xml(parts[name].decode(), chance)
        parts[name], done = changed.encode("utf-8", "replace"), f"{name}: {done}"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        for each, content in parts.items():
            made.writestr(each, content)
    return stream.getvalue(), done


def _other_cell(file: Path, chance: Random) -> tuple[bytes, str]:
    import openpyxl

    book = openpyxl.load_workbook(file)
    sheet = book.worksheets[0]
    row, column = chance.randint(1, sheet.max_row), chance.randint(1, sheet.max_column)
    if chance.random() < 0.2:
        row, column = chance.choice([(2**20, 1), (1, 2**14), (2, 2**14)])
    value = chance.choice([None, True, 1.5, 3, 1e300, "=1+1", "=A1", "#N/A", *(t for t in TEXTS if t.isprintable())])
    sheet.cell(row, column).value = value
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue(), f"{str(value)[:40]!r} in row {row}, column {column}"
