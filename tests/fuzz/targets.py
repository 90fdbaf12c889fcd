"""The readers of what comes from elsewhere: files, texts of users, addresses of stores, requests of browsers."""

import contextlib
import functools
import io
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax.random as jr
import numpy as np
import safetensors.numpy

from genscope.checkpoints import layer_norms, open_model
from genscope.checkpoints.capacity import theorem_layer
from genscope.checkpoints.reader import read_tensors
from genscope.cli._construct_fourier import parse_components
from genscope.cli._model_data import load_data
from genscope.explorer import bounds_room, function_room, learn_room, studies_room
from genscope.fourier.expression import parse
from genscope.jsonable import jsonable
from genscope.lab import Store
from genscope.lab.results import browsing
from genscope.lab.storage import database
from genscope.models import BitClassifier, file
from genscope.models.edelman2022 import Transformer
from genscope.models.encoding import Bag
from tests.checkpoints.files import LAYOUTS, config, draw, header_of, pack, save
from tests.explorer.stores import manifest, records
from tests.fuzz.guided import Target
from tests.fuzz.requests import Requests

TENSORS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([1.5, -2.0], np.float16),
    "c": np.zeros((0, 4), np.float64),
    "d": np.array(7, np.int64),
}
EXPRESSIONS = ["x0 & x1", "~x3 ^ (x1 | 0)", "maj(x0,x1,x2)", "thr(2; x0, x1, x4)", "table(0x96; x0, x1, x2)", "and(x1)"]


@contextlib.contextmanager
def opened(place: Path) -> Iterator[list[Target]]:
    """All of them; `place` is a directory of their own."""
    url = f"sqlite:///{place / 'filled.db'}"
    with Store(url) as store:
        store.put_manifest("plain", 1, manifest("plain"))
        store.add(list(records("plain")))
    requests = Requests(f"sqlite:///{place / 'none.db'}")
    with Store(url, read_only=True) as store, contextlib.closing(requests):
        request = Target("request", Requests.EXAMPLES, requests.read, words=Requests.WORDS, share=10_000)
        yield [*_files(place), *_texts(store), request, *_questions(url)]


def _files(place: Path) -> list[Target]:
    data = b"".join(tensor.tobytes() for tensor in TENSORS.values())
    whole = pack(header_of(TENSORS), data)
    kinds = (b"F64", b"F32", b"BF16", b"BOOL", b"__metadata__", b"dtype", b"shape", b"data_offsets")
    header = json.dumps(header_of(TENSORS)).encode()
    index = json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}).encode()
    shards = _directory(place / "shards")
    for name, held in (("1.safetensors", "a"), ("2.safetensors", "b")):
        tensors = {held: TENSORS[held]}
        (shards / name).write_bytes(pack(header_of(tensors), TENSORS[held].tobytes()))
    plain = io.BytesIO()
    np.savez(plain, x=np.zeros((3, 2), np.float32), y=np.array([0, 1, 1]))
    arrays = safetensors.numpy.save({"x": np.zeros((3, 2), np.float32), "y": np.array([0.0, 1.0, 2.0])})
    models = [
        file.encode(BitClassifier(3, dim=4, heads=2, key=jr.key(0))),
        file.encode(Transformer.draw(jr.key(0), encoding=Bag.orthonormal(context_length=2), head_dim=2)),
    ]
    return [
        Target("checkpoint", [whole], _through(place / "x.safetensors", _read_all), words=kinds, share=12_000),
        Target(
            "checkpoint-header",
            [header],
            lambda text: _through(place / "h.safetensors", _read_all)(pack(text, data)),
            words=kinds,
            is_json=True,
            share=12_000,
        ),
        Target("checkpoint-index", [index], _through(shards / "m.index.json", read_tensors), is_json=True, share=5_000),
        *_configs(place),
        Target("model", models, _through(place / "model.safetensors", file.load), words=kinds, share=5_000),
        Target(
            "model-header",
            [json.dumps(_header(model)).encode() for model in models],
            functools.partial(_load_model, place / "headed.safetensors", models),
            words=[name.encode() for name in file.CLASSES],
            is_json=True,
            share=5_000,
        ),
        Target("arrays-npz", [plain.getvalue()], _through(place / "data.npz", load_data), share=5_000),
        Target("arrays-safetensors", [arrays], _through(place / "data.safetensors", load_data), share=4_000),
    ]


def _configs(place: Path) -> list[Target]:
    """Descriptions beside the weights of one model of every layout."""
    keys = ("model_type", "rope_scaling", "num_key_value_heads", "text_config", "hidden_size", "query_pre_attn_scalar")
    made = []
    for number, (name, layout) in enumerate(LAYOUTS.items()):
        directory = _directory(place / f"layout-{number}")
        save(directory / "model.safetensors", layout(draw(layers=1)))
        seeds = [config(name), config(name, num_key_value_heads=2, rope_scaling={"rope_type": "yarn", "factor": 2.0})]
        made.append(
            Target(
                f"config-{number}",
                [json.dumps(seed).encode() for seed in seeds],
                functools.partial(_measure, directory),
                words=[key.encode() for key in keys],
                is_json=True,
                share=500,
            )
        )
    return made


def _texts(store: Store) -> list[Target]:
    components = ["0,1:0.6;2,3:0.8", ":0.5; 1:-2e-3"]
    filters = ["length=300 success=no seconds>2 error~memory", "word!='a b' loss<=1e9 length>=nan"]
    urls = [
        "sqlite:///a.db",
        "postgresql+psycopg://me:secret@host:5432/name?sslmode=require&connect_timeout=3",
        "postgresql://host/name?host=a,b&port=1,2",
        "mysql://me:secret@host/name",
    ]
    return [
        Target(
            "expression",
            [text.encode() for text in EXPRESSIONS],
            _tabulate,
            words=[
                b"x0",
                b"x11",
                b"~",
                b"&",
                b"^",
                b"|",
                b"maj(",
                b"thr(2;",
                b"parity(",
                b"table(0x",
                b";",
                b",",
                b"1",
            ],
            share=15_000,
        ),
        Target(
            "components",
            [text.encode() for text in components],
            lambda data: parse_components(_text(data), 6),
            words=[b"0,", b":", b";", b"1e", b".5", b"-"],
            share=4_000,
        ),
        Target(
            "store-url",
            [text.encode() for text in urls],
            _open_engine,
            words=[
                b"://",
                b"sqlite",
                b"postgresql",
                b"+psycopg",
                b"@",
                b":",
                b"?",
                b"&",
                b"=",
                b"plugin",
                b"host",
                b"port",
            ],
            share=10_000,
        ),
        Target(
            "filter",
            [text.encode() for text in filters],
            lambda data: _filter(store, _text(data)),
            words=[b"length", b"kind", b"success", b"loss", b"=", b"!=", b"~", b"<=", b"nan", b"yes"],
            share=3_000,
        ),
    ]


def _questions(url: str) -> list[Target]:
    bound = bounds_room.example({"name": "head"})
    studies = [
        {"study": "plain", "filter": "length=10", "first": 0, "order": "length", "descending": True},
        {"study": "plain", "format": "csv", "filter": ""},
        {"study": "plain", "id": "0", "selection": ""},
    ]

    def study(ask: Mapping[str, Any]) -> list[Any]:
        if "format" in ask:
            return [len(bytes(studies_room.download(url, ask).body))]
        return [(studies_room.trial if "id" in ask else studies_room.trials)(url, ask), studies_room.progress(url, ask)]

    return [
        Target(
            "ask-function",
            [json.dumps({"expression": "x0 ^ x1", "values": "bits"}).encode()],
            _asked(function_room.analyse),
            is_json=True,
            share=1_000,
        ),
        Target(
            "ask-bounds",
            [json.dumps({"bounds": [bound["bound"]], "axis": bound["axes"][0]["name"], "span": "10:1000"}).encode()],
            _asked(bounds_room.view),
            is_json=True,
            share=2_000,
        ),
        Target(
            "ask-learn",
            [
                json.dumps({"kind": "run", "expression": "x0 & x1", "networks": ["mlp"], "context_length": 9}).encode(),
                json.dumps({"kind": "threshold", "expression": "x0", "networks": ["gru"], "noise": 0.1}).encode(),
            ],
            _asked(learn_room.request),
            is_json=True,
            share=1_000,
        ),
        Target("ask-studies", [json.dumps(ask).encode() for ask in studies], _asked(study), is_json=True, share=2_000),
    ]


def _directory(path: Path) -> Path:
    path.mkdir()
    return path


def _through(path: Path, read):
    """A reader of files as a reader of bytes."""

    def through(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return through


def _read_all(path: Path) -> None:
    for tensor in read_tensors(path).values():
        tensor.tobytes()  # lies inside the file


def _header(model: bytes) -> object:
    (length,) = struct.unpack("<Q", model[:8])
    return json.loads(json.loads(model[8 : 8 + length])["__metadata__"]["genscope"])


def _load_model(path: Path, models: list[bytes], text: bytes) -> object:
    """The description changed, the tensors as they were in the model whose class it names."""
    model = models[b'"Transformer"' in text[:60]]
    (length,) = struct.unpack("<Q", model[:8])
    header = json.loads(model[8 : 8 + length])
    header["__metadata__"]["genscope"] = text.decode(errors="replace")
    path.write_bytes(pack(header, model[8 + length :]))
    return file.load(path)


def _measure(directory: Path, config: bytes) -> str:
    """All that `genscope checkpoint` takes from a config, up to the arithmetic of the bounds."""
    (directory / "config.json").write_bytes(config)
    model = open_model(directory)
    norms = layer_norms(model.heads(0), "layer 0")
    facts = [model.embedding_norms(), model.context_length(), list(model.left_out()), list(model.doubts())]
    facts += [model.score_scale(0), model.input_norm(0)]
    if not model.doubts():
        facts.append(theorem_layer(model, 0, norms, input_norm=1.0))
    return repr(facts)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")  # as a command line gives it


def _tabulate(data: bytes) -> None:
    expression = parse(_text(data))
    needed = 1 + max(expression.variables, default=0)
    if len(expression.variables) <= 8 and needed <= 10_000:
        assert len(expression.reduced[1]) == 2 ** len(expression.support)
        expression(np.zeros((2, needed), bool))


def _open_engine(data: bytes) -> None:
    """Up to the moment of connecting; a SQLite file is not looked for."""
    url = database.parse(_text(data))
    database.shown(url)
    if url.get_backend_name() == "postgresql":
        engine = database.engine(url, read_only=True)
        engine.dialect.create_connect_args(engine.url)
        engine.dispose()


def _filter(store: Store, text: str) -> None:
    browsing.trials(store, "plain", ["length", "kind", "sample_size"], 1).where(text).count(store)


def _asked(question):
    def asked(data: bytes) -> None:
        try:
            ask = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(ask, dict):
            _answer(question, ask)

    return asked


def _answer(question, ask) -> None:
    json.dumps(jsonable(question(ask)), allow_nan=False)
