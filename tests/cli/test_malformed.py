"""Thousands of malformed requests: a status of 0, 1 or 2, and never a traceback."""

import os
import shutil

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.cli.program import TOYS, invoke

# What a shell can pass: no NUL; bytes that are no UTF-8 arrive as lone surrogates.
texts = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30),
    st.text(st.sampled_from("\udc80\udcffa=,-0é"), max_size=8),
)
numbers = st.one_of(
    st.integers(-(10**25), 10**25).map(str),
    st.integers(-3, 5).map(str),
    st.floats().map(str),
    st.sampled_from(["1_0", "0x10", "1e3", "٣", " 1", "+1", "--1", "9" * 5000, "1e999", "-0", "NaN", "Infinity"]),
)
words = st.sampled_from(
    ["size", "kind", "good", "odd", "rate", "toy", "study", "failed", "quick", ".py", "~", "*", "[/b]"]
)
pieces = st.one_of(numbers, words, st.sampled_from(list("=,:;/\\'\"()[]{}&|^~!? \t\n%$#@.-")))
near_misses = st.lists(pieces, max_size=8).map("".join)
values = st.one_of(texts, numbers, words, near_misses)
assignments = st.one_of(
    values,
    st.tuples(st.sampled_from(["size", "kind", "seed", "rate"]), st.lists(values, max_size=4).map(",".join)).map(
        "=".join
    ),
)
# Relative files only: a test as root must not litter the machine, nor look for servers.
urls = st.one_of(
    st.sampled_from(["sqlite:///genscope.db", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite://host/x", ""]),
    values.map(lambda text: "sqlite:///" + text.lstrip("/")),
    values.filter(lambda text: "postgres" not in text and "sqlite" not in text),
)
options = st.one_of(
    st.tuples(st.just("--where"), assignments),
    st.tuples(st.sampled_from(["--seeds", "--seed"]), numbers),
    st.tuples(st.sampled_from(["--seeds", "--seed", "--budget", "--retry"]), values),
    st.tuples(st.just("--store"), urls),
    st.tuples(st.just("--json")),
    st.tuples(values),
).map(list)

# Some milliseconds each: hundreds of requests in make test, always the same; twenty thousand new ones in make test-all.
EXAMPLES = 100 if os.environ.get("GENSCOPE_FRESH_SEEDS") is None else 3000
many = settings(
    max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def survives(*arguments):
    result = invoke(*arguments)
    assert result.exit_code in (0, 1, 2)
    assert "Traceback" not in result.output
    if result.exit_code == 2:
        assert result.output.strip()
    return result


@many
@given(st.lists(options, max_size=4))
@example([["--where", "size=" + "9" * 5000]])
@example([["--seeds", str(10**30)]])
@example([["--where", "size=1,2,1"], ["--seed", "0"]])
def test_options_of_a_run(chosen):
    survives("run", f"{TOYS}:study", "--dry-run", *(word for option in chosen for word in option))


@many
@given(assignments)
def test_axes_of_a_run(text):
    result = survives("run", f"{TOYS}:study", "--dry-run", "--where", text)
    assert result.exit_code in (0, 2)


@settings(many, max_examples=EXAMPLES // 6)
@given(st.lists(assignments, max_size=2), st.sampled_from([[], ["--seed", "3"], ["--seeds", "2"]]))
def test_runs_that_are_not_dry(where, seeds):
    survives("run", f"{TOYS}:study", *seeds, *(word for text in where for word in ("--where", text)))


@many
@given(values)
@example("study_file.py:")
@example(":study")
@example("a.py:b:c")
def test_names_of_studies(name):
    survives("run", "--dry-run", "--", name)


@many
@given(urls)
def test_addresses_of_stores(url):
    survives("run", f"{TOYS}:study", "--dry-run", f"--store={url}")


@settings(many, max_examples=EXAMPLES // 2)
@given(urls, values.map(lambda text: text.lstrip("/")))
def test_reports_and_exports(url, file):
    survives("export", f"--store={url}", f"--out={file}", "--", "toy")
    survives("report", f"--store={url}", f"--out={file}")
    survives("figure", f"--store={url}", f"--out={file}", "--", "toy")


@settings(many, max_examples=EXAMPLES // 2)
@given(urls, urls)
def test_copies(source, target):
    survives("store", "copy", "--", source, target)


@settings(many, max_examples=EXAMPLES // 2)
@given(values, values)
def test_claims_and_directories(claim, directory):
    survives("reproduce", f"--only={claim}", f"--out={directory}")


@many
@given(st.lists(values, max_size=4))
def test_anything_at_all(words):
    survives(*words)


@pytest.fixture(autouse=True)
def a_store(toy_store, directory):
    shutil.copy(toy_store("--budget", "quick"), directory / "genscope.db")
