"""BERT, RoBERTa and their kin, with or without a prefix.

Source: the names of Hugging Face's `BertModel` and `RobertaModel`.
Departures: None.
Guarantee: exact.
"""

from genscope.checkpoints._layout import BIASES, MLP, NORMS, OUTPUT, RESIDUALS, Heads, Layout, Stack, cut_rows

_SELF = "encoder.layer.{}.attention.self."


def _cut(stack: Stack, layer: int) -> Heads:
    base = _SELF.format(layer)
    return Heads(*(cut_rows(stack.matrix(f"{base}{part}.weight"), stack.heads) for part in ("query", "key", "value")))


def _input_norms(layer: int) -> tuple[str]:
    # The norm stands after the sum: a layer reads what the one before has normalised.
    return (f"encoder.layer.{layer - 1}.output.LayerNorm" if layer else "embeddings.LayerNorm",)


LAYOUT = Layout(
    architecture="BERT",
    model_types=frozenset({"bert", "roberta", "xlm-roberta", "camembert"}),
    signs=tuple(f"{_SELF}{part}.weight" for part in ("query", "key", "value")),
    cut=_cut,
    input_norms=_input_norms,
    embeddings={
        "token": "embeddings.word_embeddings.weight",
        "position": "embeddings.position_embeddings.weight",
        "segment": "embeddings.token_type_embeddings.weight",
    },
    left_out=(BIASES, NORMS, RESIDUALS, OUTPUT, MLP),
)
