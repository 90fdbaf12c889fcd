"""`from_torch`: outputs, traces and Hessian products against PyTorch itself, and every mistake with its advice."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import genscope as gs
from genscope.measure import certify, gradient_trace, hessian_trace, mean_loss
from genscope.measure._curvature import Curvature
from genscope.models import outputs
from genscope.precision import float64
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.train import IGNORED, Draws, GaussianPosterior, adam, cross_entropy, error, fit

torch = pytest.importorskip("torch", reason="needs genscope[torch]: run make test-torch")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # PyTorch's own calls


def perceptron():
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))


def convolutional():
    """With dropout and batch normalisation, whose statistics are not those of a fresh one."""
    module = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Dropout(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    )
    for _ in range(3):
        module(torch.randn(16, 1, 8, 8) + 1)
    return module


class Encoder(nn.Module):
    """The encoder of PyTorch with a class token's worth of pooling."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.encoder(x).mean(dim=1))


class Tied(nn.Module):
    """A language model with one matrix for words in and out, and an integer buffer."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(7, 5), nn.Linear(5, 7, bias=False)
        self.out.weight = self.words.weight
        self.register_buffer("order", torch.tensor([2, 1, 0]))

    def forward(self, ids):
        return self.out(torch.tanh(self.words(ids[:, self.order])))


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x, scale=None):
        found = self.linear(x if scale is None else x * scale)
        return {"hidden": found + 1, "logits": found}


CASES = {
    "perceptron": (perceptron, lambda: torch.randn(5, 4)),
    "convolutional": (convolutional, lambda: torch.randn(5, 1, 8, 8)),
    "encoder": (Encoder, lambda: torch.randn(5, 4, 8)),
    "tied": (Tied, lambda: torch.randint(0, 7, (5, 3))),
}


@pytest.fixture(params=CASES)
def case(request):
    torch.manual_seed(0)
    make, draw = CASES[request.param]
    module, x = make(), draw()
    classes = 7 if request.param == "tied" else 3
    y = torch.randint(0, classes, (5, 3) if request.param == "tied" else (5,))
    return module, x, y


def eager_loss(module, x, y):
    found = module.eval()(x).detach()
    return float(nn.functional.cross_entropy(found.reshape(-1, found.shape[-1]), y.reshape(-1)))


def test_outputs_loss_and_a_product_are_those_of_pytorch(case):
    module, x, y = case
    model = gs.from_torch(module)
    assert module.training  # the given one stays as it was
    batch = Batch(jnp.asarray(x.numpy()), jnp.asarray(y.numpy()))
    model.check(x.numpy())
    expected = module.eval()(x).detach().numpy()
    np.testing.assert_allclose(outputs(model, batch.x), expected, atol=2e-6)
    np.testing.assert_allclose(jax.vmap(model)(batch.x), expected, atol=2e-6)
    assert mean_loss(model, batch, cross_entropy) == pytest.approx(eager_loss(module, x, y), rel=1e-5)
    # One product with the Hessian, by double backward, in double precision.
    weights = {name: each.double().detach().requires_grad_() for name, each in module.named_parameters()}
    vector = {name: torch.randn_like(each) for name, each in weights.items()}
    fixed = {name: each.double() if each.is_floating_point() else each for name, each in module.named_buffers()}
    inputs = x.double() if x.is_floating_point() else x
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        found = torch.func.functional_call(module.eval(), {**weights, **fixed}, (inputs,))
        loss = nn.functional.cross_entropy(found.reshape(-1, found.shape[-1]), y.reshape(-1))
        slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        directional = sum((slope * vector[name]).sum() for slope, name in zip(slopes, weights, strict=True))
        products = torch.autograd.grad(directional, list(weights.values()))
    expected = dict(zip(weights, products, strict=True))
    curvature = Curvature(model, batch, cross_entropy, chunk=2, predict=None)
    assert {group.name for group in curvature.groups} == {*weights}
    row = np.concatenate([vector[group.name].numpy().reshape(-1) for group in curvature.groups])
    ours = curvature.products(row[None])[0]
    for group in curvature.groups:
        theirs = expected[group.name].numpy().reshape(-1)
        np.testing.assert_allclose(ours[group.start : group.stop], theirs, atol=2e-5 * np.abs(row).max(), rtol=2e-4)


def test_what_does_not_require_a_gradient_is_no_weight():
    torch.manual_seed(0)
    module = perceptron()
    module[0].requires_grad_(False)
    model = gs.from_torch(module)
    assert list(model.weights) == ["2.bias", "2.weight"]
    batch = Batch(jr.normal(jr.key(0), (6, 4)), jnp.array([0, 1, 2, 0, 1, 2]))
    hidden = np.asarray(torch.tanh(module[0](torch.tensor(np.asarray(batch.x)))).detach())
    chance = np.asarray(jax.nn.softmax(outputs(model, batch.x)))
    trace = np.mean((1 - np.sum(chance**2, axis=1)) * (1 + np.sum(hidden**2, axis=1)))
    assert gradient_trace(model, batch, cross_entropy).mean == pytest.approx(trace, rel=1e-4)
    trained = fit(model, Draws(batch, jr.key(1), 6), cross_entropy, 5, optimizer=adam(0.1)).model
    np.testing.assert_array_equal(trained.fixed["inside.0.weight"], model.fixed["inside.0.weight"])
    assert not np.allclose(trained.weights["2.weight"], model.weights["2.weight"])
    trained.check(np.asarray(batch.x))  # with the weights that it has now


def test_double_precision_stays():
    torch.manual_seed(0)
    module = perceptron().double()
    x, y = torch.randn(5, 4).double(), torch.tensor([0, 1, 2, 2, 1])
    model = gs.from_torch(module)
    model.check(x.numpy())
    with float64():
        batch = Batch(jnp.asarray(x.numpy()), jnp.asarray(y.numpy()))
        assert outputs(model, batch.x).dtype == jnp.float64
    assert mean_loss(model, batch, cross_entropy) == pytest.approx(eager_loss(module, x, y), rel=1e-12)


def test_one_of_several_outputs_and_several_inputs():
    module = Several()
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    logits = module.linear(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(outputs(gs.from_torch(module), jnp.asarray(x)), logits, atol=1e-6)
    for output in ("hidden", 0):
        np.testing.assert_allclose(outputs(gs.from_torch(module, output=output), jnp.asarray(x)), logits + 1, atol=1e-6)
    named = {"x": jnp.asarray(x / 2), "scale": 2 * jnp.ones((5, 4))}
    np.testing.assert_allclose(outputs(gs.from_torch(module), named), logits, atol=1e-6)
    recurrent = gs.from_torch(nn.LSTM(4, 3, batch_first=True), output=0)
    assert outputs(recurrent, jnp.zeros((2, 5, 4))).shape == (2, 5, 3)


def test_tokens_that_do_not_count():
    torch.manual_seed(0)
    module, ids = Tied(), torch.randint(0, 7, (5, 3))
    y = torch.randint(0, 7, (5, 3))
    y[1, 2] = y[3, 0] = IGNORED
    counts = (y != IGNORED).sum(dim=1)
    batch = Batch(jnp.asarray(ids.numpy()), jnp.asarray(y.numpy()), jnp.asarray(counts.numpy(), "float32"))
    found = module(ids).detach()
    expected = nn.functional.cross_entropy(found.reshape(-1, 7), y.reshape(-1))  # its own convention for padding
    assert mean_loss(gs.from_torch(module), batch, cross_entropy) == pytest.approx(float(expected), rel=1e-5)


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(x) + torch.rand(3)


def test_a_module_that_is_not_deterministic():
    with pytest.raises(Refusal, match="Remove randomness from forward"):
        gs.from_torch(Noisy()).check(np.zeros((2, 4)))


def test_a_module_that_refuses_its_inputs():
    model = gs.from_torch(perceptron())
    with pytest.raises(Refusal, match=r"failed on inputs of shape \(5,\) and type torch.float32"):
        model.check(np.zeros((2, 5)))
    with pytest.raises(Refusal, match=r"inputs of shape ids \(4,\) and type torch.int64 from 0 to 0 \(TypeError"):
        model.check({"ids": np.zeros((2, 4), int)})
    with pytest.raises(Refusal, match="in JAX for the same input"):
        gs.from_torch(Liar()).check(np.ones((2, 4)))


class Branching(nn.Module):
    """PyTorch runs it; the value that it branches on is not known when it is traced."""

    def __init__(self, test):
        super().__init__()
        self.linear, self.test = nn.Linear(4, 3), test

    def forward(self, x):
        return self.linear(x) if self.test(x) else self.linear(-x)


@pytest.mark.parametrize("test", [lambda x: x.sum() > 0, lambda x: x.detach().numpy().sum() > 0])
def test_a_module_that_looks_at_values(test):
    with pytest.raises(
        Refusal, match=r"runs in PyTorch but not in JAX .* without NumPy and without branches on values"
    ):
        gs.from_torch(Branching(test)).check(np.zeros((2, 4)))


def test_outputs_that_are_not_finite():
    module = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    module[1].running_mean[1] = torch.nan
    with pytest.raises(Refusal, match=r"returns nan in PyTorch.*buffers that are not finite"):
        gs.from_torch(module).check(np.zeros((2, 4)))


def test_a_compiled_module_is_the_one_that_was_given():
    torch.manual_seed(0)
    module, x = perceptron(), torch.randn(5, 4)
    model = gs.from_torch(torch.compile(module))
    model.check(x.numpy())
    assert set(model.weights) == {name for name, _ in module.named_parameters()}


def test_statistics_of_the_sample_have_no_certificate():
    """Running statistics are no weights, whose distance from the prior is paid for: they must be the prior's."""

    def normalised():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))

    x = torch.randn(64, 4)
    batch = Batch(jnp.asarray(x.numpy()), jnp.asarray(x.numpy()[:, :3].argmax(axis=1)))
    start, moved = normalised(), normalised()
    moved(x)
    prior, model = gs.from_torch(start), gs.from_torch(moved)

    def certified(model):
        posterior = GaussianPosterior.around(model, 0.1)
        return certify(posterior, batch, error, prior=prior, key=jr.key(0), draws=20, predict=outputs)

    with pytest.raises(Refusal, match="running statistics of batch normalization"):
        certified(model)
    moved[1].running_mean.copy_(start[1].running_mean)
    moved[1].running_var.copy_(start[1].running_var)  # its counter of batches, which has no effect, still differs
    assert "were fixed without the sample" in certified(gs.from_torch(moved)).assumptions[-1]


class Liar(nn.Module):
    """Different on JAX, like an operation that the bridge gets wrong."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(x) * (1 if type(x) is torch.Tensor else 2)


def broken(change):
    module = perceptron()
    with torch.no_grad():
        change(module)
    return module


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: perceptron().half(), r"module.float\(\)"),
        (lambda: nn.Linear(3, 2, device="meta"), r"module.to\('cpu'\)"),
        (
            lambda: broken(lambda module: module[0].weight.fill_(torch.nan)),
            "0.weight holds numbers that",
        ),
        (lambda: nn.LazyLinear(3), "Call it once on a batch"),
        (lambda: nn.Linear(4, 3, dtype=torch.complex64), "must be real"),
        (lambda: torch.jit.script(perceptron()), "before torch.jit"),
        (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), "remove_parametrizations"),
        (lambda: perceptron, "Give the module itself"),
    ],
)
def test_modules_that_are_refused(make, advice):
    with pytest.raises(Refusal, match=advice):
        gs.from_torch(make())


@pytest.mark.parametrize(("output", "advice"), [(None, "none is chosen"), ("last", "output 'last'"), (5, "output 5")])
def test_outputs_that_are_not_there(output, advice):
    with pytest.raises(Refusal, match=f"{advice}.*Choose it by name or index"):
        gs.from_torch(nn.LSTM(4, 3, batch_first=True), output=output).check(np.zeros((2, 5, 4)))


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Refusal, match=r"pip install '\.\[torch\]'"):
        gs.from_torch(perceptron())


def test_hessian_traces_agree_with_a_dense_one():
    torch.manual_seed(0)
    module = perceptron()
    x, y = torch.randn(7, 4), torch.tensor([0, 1, 2, 0, 1, 2, 0])
    names = [name for name, _ in module.named_parameters()]
    weights = tuple(each.detach() for each in module.parameters())

    def loss(*weights):
        found = torch.func.functional_call(module, dict(zip(names, weights, strict=True)), (x,))
        return nn.functional.cross_entropy(found, y)

    dense = torch.autograd.functional.hessian(loss, weights)
    expected = {name: float(dense[i][i].reshape(weights[i].numel(), -1).trace()) for i, name in enumerate(names)}
    batch = Batch(jnp.asarray(x.numpy()), jnp.asarray(y.numpy()))
    found = hessian_trace(gs.from_torch(module), batch, cross_entropy, method="exact")
    for name, trace in expected.items():
        assert found.groups[name].mean == pytest.approx(trace, rel=1e-4, abs=1e-6)
