"""Results show themselves: plain text fits 80 columns, HTML holds escaped text alone, both say what the result says."""

import html.parser

import pytest

from genscope import bounds, constructions, measure
from genscope.display import WIDTH, Card, Displayed, Table, as_html, plain
from genscope.estimate import Estimate
from genscope.fourier import WalshFunction
from genscope.lab import Search, Verdict
from genscope.lab.results.verdict import Part
from genscope.lab.statistics.estimation import estimate
from genscope.probe import probe

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=y>',
    "\x1b[31mred\x07",
    "a\nb\tc",
    "x" * 300,
    "&amp; ‮",
    "",
]


class Reader(html.parser.HTMLParser):
    """The elements and the text of a document; attributes that are not ours are an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], set(), []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert {name for name, _ in attrs} <= {"class", "style"}
        self.open.append(tag)
        self.elements.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


ALLOWED = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text):
    card = Card(text, [(text, text)], [Table([text, "b"], [[text, {text: text}]])], [text])
    assert Reader(as_html(card)).elements <= ALLOWED
    told = plain(card)
    assert all(len(line) <= WIDTH for line in told.splitlines())
    assert all(each.isprintable() or each == "\n" for each in told)


def test_the_escape_is_needed():
    """The reader above does see what is not escaped."""
    assert "script" in Reader("<script>alert(1)</script>").elements


def _threshold():
    counts = {8: (1, 20), 16: (6, 20), 32: (17, 20), 64: (20, 20)}
    return estimate(Search(lowest=8, highest=64), counts)


def _certificate():
    return measure.Certificate(
        0.4, 0.2, 12.0, {"empirical risk": 0.2, "divergence": 0.2}, 0.95, 1.0, 0.5, False, {"w": 0.1}, ("independent",)
    )


def _construction():
    function = constructions.SparseFunction.parse("x1 & x4", context_length=8)
    return constructions.any_function(function)


SHOWN = {
    "Bound": (lambda: bounds.head(
        value_21=2.0, value_spectral=1.0, query_key_21=3.0, input_norm=1.0, context_norm=1.0, epsilon=0.5, width=64,
        dimension=64, points=1e5,
    ), ["head: at most", "edelman2022"]),
    "Threshold": (_threshold, ["sample_size:", "80 %", "trials"]),
    "Findings": (lambda: probe(lambda x: 3.0 * (x[0] ^ x[5]), 8), ["degree", "x0 x5", "-1.5"]),
    "WalshFunction": (lambda: WalshFunction(3, ((0, 1), (2,)), (1.0, 0.5)), ["function of 3 bits", "x0 x1", "0.5"]),
    "Certificate": (_certificate, ["Risk at most 0.4", "Informative", "if: - independent."]),
    "Operator norm": (lambda: measure.OperatorNorm(-5.25, 1e-6, -5.25, 2.0), ["at least 5.25", "lowest value seen"]),
    "Verdict": (lambda: Verdict("A1", "It holds", "edelman2022, Lemma 4.3", "fails", "No ratio above 1",
                                [Part("no ratio above 1", "fails", {"ratio": 1.25})], "quick"),
                ["A1 fails", "ratio 1.25", "Lemma 4.3"]),
    "Construction": (_construction, ["explicit weights", "W_Q", "at most"]),
    "Fourier construction": (lambda: constructions.fourier_components(
        WalshFunction(6, ((0, 1), (2, 3)), (0.6, 0.8)), ), ["degree 2, 2 components", "squared norm", "total"]),
    "Chain construction": (lambda: constructions.parity_chain(4), ["chain of thought", "squared norm"]),
    "Verification": (lambda: constructions.Verification(0.0, 256, True, True, True), ["exact", "all 256 inputs"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_a_result_shows_itself(name):
    make, words = SHOWN[name]
    thing = make()
    assert isinstance(thing, Displayed)
    told = str(thing)
    assert all(len(line) <= WIDTH for line in told.splitlines()), told
    page = Reader(thing._repr_html_())
    assert page.elements <= ALLOWED
    flat = " ".join(" ".join(page.text).split())
    for word in words:
        assert word in " ".join(told.split()), told
        assert word in flat


def test_a_trace_shows_its_groups_and_prints_as_a_number():
    trace = measure.Trace(3.0, 0.5, {"w <b>": Estimate(1.0, 0.1)}, 64)
    assert str(trace) == "3.00 ± 0.50"
    page = Reader(trace._repr_html_())
    assert "w <b>" in page.text
    assert page.elements <= ALLOWED


def test_an_exact_trace_has_no_error():
    exact = measure.Trace(3.0, 0.0, {"w": Estimate(3.0, 0.0)}, 64).card()
    assert exact.title == "Trace of the Hessian: 3 (exact)"
    assert exact.tables[0].rows == [("w", "3 (exact)")]


def test_a_list_is_indented():
    assert plain(Card("title", notes=["- " + 30 * "word "])).splitlines()[2].startswith("  word")


def test_ipython_prints_the_plain_form():
    said = []
    printer = type("Printer", (), {"text": lambda self, text: said.append(text)})()
    WalshFunction(2, ((0, 1),), (1.0,))._repr_pretty_(printer, False)
    assert said == [str(WalshFunction(2, ((0, 1),), (1.0,)))]
