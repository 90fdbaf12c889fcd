"""Numbered statements that are cited exist in the paper, and are what they are called."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def _kinds(**numbers: str) -> dict[str, str]:
    return {number: kind for kind, listed in numbers.items() for number in listed.split()}


# As far as our texts have them. MH25 and LS26 number their statements in one sequence; of EGKZ22 we have the main ones.
STATEMENTS = {
    "edelman2022": _kinds(
        Definition="2.1 3.1 3.2",
        Lemma="2.2 4.3 4.6",
        Assumption="4.1",
        Theorem="4.2 4.7",
        Proposition="4.4",
        Corollary="4.5",
    ),
    "mousavi2025": {
        **{str(number): "Lemma" for number in range(1, 43)},
        **_kinds(
            Theorem="1 3 5 7 9 10",
            Definition="2 8",
            Proposition="4 6 17 21 26 28 35",
            Corollary="19 27 31 33",
        ),
    },
    "lintilhac2026": _kinds(
        Definition="1",
        Theorem="2 5 6 7 8 9 10 11 12 13 14 16 17 18 24 29 30 31",
        Remark="3 4 23",
        Lemma="15 19 20 21 22 25 26 27 28",
    ),
}
PLACES = {
    "edelman2022": {"Section": "1 2 3 4 5 6 7", "Figure": "1 2 3 4", "Appendix": "", "Equation": ""},
    "mousavi2025": {
        "Section": "1 1.1 1.2 2 3 3.1 3.2 4 4.1 4.2 5 6",
        "Figure": "1 1a 1b 2 3",
        "Table": "1",
        "Appendix": "A A.1 A.2 A.3 B B.1 B.2 B.3 B.4 B.5 B.6 C D E",
        "Assumption": "1 2 3",
    },
    "lintilhac2026": {
        "Section": "1 1.1 1.2 2 2.1 2.2 2.3 2.4 3 4 4.1 4.2",
        "Figure": "1 2 3 4 5 6 7 8",
        "Appendix": "A B B.1 B.2 B.3 B.4 B.5 C D E E.1 E.2 E.3 F F.1 F.2 G H I J K L M",
        "Equation": "(1) (2) (3) (4) (5) (6) (7) (8) (9) (10) (11) (12) (13) (14) (15)",
    },
}
NUMBER = r"(?:\(\d+\)|[A-Z](?:\.\d+)*|\d+(?:\.\d+)*[ab]?)(?![\w(])"
CITED = re.compile(rf"\b([A-Z][a-z]+?)(s|ies|ces)? ((?:{NUMBER}(?:, | and | to )?)+)")
SINGULAR = {"Corollar": "Corollary", "Appendi": "Appendix"}
# Where the words about one paper end: a stop, a bracket that holds no number of an equation, another source.
END = re.compile(r"""[;:"|]|\n\n|\.\n|\((?!\d)|(?<!\(\d)(?<!\(\d\d)\)|\b[a-z]+\d{4}\b|, which is""")


def citations(key: str) -> list[tuple[str, str, str]]:
    """Where a paper is cited, the kind of statement, and its number."""
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("tests/**/*.toml")]
    found = []
    for file in [*files, *ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.md"), ROOT / "README.md"]:
        text = file.read_text(encoding="utf-8")
        for match in re.finditer(rf"\b{key}, ", text):
            words = END.split(text[match.end() : match.end() + 300])[0].replace("\n", " ")
            for kind, ending, numbers in CITED.findall(words):
                whole = SINGULAR.get(kind, kind) if ending else kind
                found += [(file.name, whole, number) for number in written_out(numbers)]
    return found


def written_out(numbers: str) -> list[str]:
    """The numbers of `26 to 28`, `7, 8 and 16`, one by one."""
    listed = re.findall(NUMBER, numbers)
    for first, last in re.findall(r"\b(\d+) to (\d+)\b", numbers):
        listed += [str(number) for number in range(int(first) + 1, int(last))]
    return listed


@pytest.mark.parametrize("key", STATEMENTS)
def test_cited_statements_exist(key):
    listed = citations(key)
    assert len(listed) > 50
    places = {(kind, number) for kind, numbers in PLACES[key].items() for number in numbers.split()}
    known = {(kind, number) for number, kind in STATEMENTS[key].items()} | places
    assert [each for each in listed if each[1:] not in known] == []


def test_a_citation_is_read_as_it_is_written():
    (whole,) = re.findall(CITED, "Theorems 7, 8 and 16")
    assert (whole[0], re.findall(NUMBER, whole[2])) == ("Theorem", ["7", "8", "16"])
    assert CITED.findall("Appendix E.3, after")[0][0] == "Appendix"
    assert written_out("26 to 28") == ["26", "28", "27"]
    assert written_out("1a and 2") == ["1a", "2"]
