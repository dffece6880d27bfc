import torch

from papi.networks import build
from papi.networks.mlp import MLP


def test_one_hidden_layer() -> None:
    encoder = MLP((5,), width=7)
    assert [tuple(p.shape) for p in encoder.parameters()] == [(7, 5), (7,), (7,)]
    features = encoder(torch.randn(6, 5))
    assert features.shape == (6, 7)
    assert (features >= 0).all()


def test_dropout_counts_in_training_alone() -> None:
    torch.manual_seed(0)
    network = build("mlp", (5,), 3, project=False)
    rows = torch.randn(8, 5)
    with torch.no_grad():
        assert not network.train()(rows).features.equal(network(rows).features)
        assert network.eval()(rows).features.equal(network(rows).features)
