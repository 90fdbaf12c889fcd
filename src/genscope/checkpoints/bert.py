"""BERT, RoBERTa and their kin, with or without a prefix.

Source: the names of Hugging Face's `BertModel` and `RobertaModel`. RoBERTa counts positions from the one after that of
padding, so that of 514 rows 512 are used.
Guarantee: exact.
"""

from collections.abc import Iterator

from genscope.checkpoints._layout import LEFT_OUT, Config, HeadWeights, Kind, Layout, Stack, cut_rows

_SELF = "encoder.layer.{}.attention.self."


def _cut(stack: Stack, layer: int) -> HeadWeights:
    base = _SELF.format(layer)
    return HeadWeights(
        *(cut_rows(stack.matrix(f"{base}{part}.weight"), stack.heads) for part in ("query", "key", "value"))
    )


def _input_norms(layer: int) -> tuple[str]:
    # The norm stands after the sum: a layer reads what the one before has normalized.
    return (f"encoder.layer.{layer - 1}.output.LayerNorm" if layer else "embeddings.LayerNorm",)


def _doubts(config: Config) -> Iterator[str]:
    positions = config.get("position_embedding_type", "absolute")
    if positions != "absolute":
        yield f"positions enter its scores (position_embedding_type is {positions!r:.40}), in a way not known here"


_ROBERTA = Kind(heads=12, padding=1)
LAYOUT = Layout(
    architecture="BERT",
    kinds={"bert": Kind(heads=12), "roberta": _ROBERTA, "xlm-roberta": _ROBERTA, "camembert": _ROBERTA},
    signs=tuple(f"{_SELF}{part}.weight" for part in ("query", "key", "value")),
    names=r"attention\.self\.(query|key|value)\.(weight|bias)|intermediate\.dense\.(weight|bias)"
    r"|(attention\.)?output\.(dense|LayerNorm)\.(weight|bias|gamma|beta)",
    cut=_cut,
    input_norms=_input_norms,
    embeddings={
        "token": "embeddings.word_embeddings.weight",
        "position": "embeddings.position_embeddings.weight",
        "segment": "embeddings.token_type_embeddings.weight",
    },
    left_out=LEFT_OUT,
    doubts=_doubts,
)
