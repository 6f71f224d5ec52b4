import importlib.util

import numpy as np
import pytest

from piefs.data import load
from piefs.data.fetch import FILES, fetch
from piefs.errors import DataNotFoundError, InputError
from reproduction.embed import build_cifar10_r18, embed, save_splits

HAS_TORCHVISION = importlib.util.find_spec("torchvision") is not None


def test_before_it_is_built_the_command_that_builds_it_is_named(tmp_path):
    with pytest.raises(DataNotFoundError, match="piefs data build cifar10-r18"):
        load("cifar10-r18", tmp_path)


def test_fetching_it_names_that_command_too(tmp_path):
    with pytest.raises(InputError, match="piefs data build cifar10-r18"):
        fetch(FILES["cifar10-r18"], tmp_path)


@pytest.mark.skipif(HAS_TORCHVISION, reason="torchvision is installed here")
def test_without_torchvision_the_error_names_it(tmp_path):
    with pytest.raises(InputError, match="pip install torchvision"):
        build_cifar10_r18(tmp_path)
    assert not any(tmp_path.iterdir())


def test_what_was_built_is_read_with_the_papers_proportions(tmp_path):
    x = np.arange(1200 * 4, dtype=np.float32).reshape(1200, 4)
    y = (np.arange(1200) % 10).astype(np.uint8)
    save_splits(tmp_path / FILES["cifar10-r18"].path, x, y, n_test=200)
    data = load("cifar10-r18", tmp_path)
    assert [len(part) for part in data.splits.values()] == [900, 100, 200]
    np.testing.assert_array_equal(data.test.x, x[1000:])
    drawn = np.concatenate([data.train.x, data.validation.x])
    np.testing.assert_array_equal(np.sort(drawn, axis=0), x[:1000])
    np.testing.assert_array_equal(data.train.x[:, 0] / 4 % 10, data.train.y)


@pytest.mark.skipif(not HAS_TORCHVISION, reason="torchvision is not installed")
def test_embedding_is_what_the_last_layer_sees():
    import torch
    import torchvision

    network = torchvision.models.resnet18(weights=None)
    last, seen = network.fc, []
    images = np.random.default_rng(0).integers(0, 256, (70, 32, 32, 3), dtype=np.uint8)
    embedded = embed(network, images, side=64, report=lambda *counts: seen.append(counts))
    assert embedded.shape == (70, 512)
    assert embedded.dtype == np.float32
    assert seen == [(64, 70), (70, 70)]
    network.fc = last
    x = torch.from_numpy(images[:2]).permute(0, 3, 1, 2).float() / 255
    x = torch.nn.functional.interpolate(x, (64, 64), mode="bilinear", antialias=True)
    mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
    with torch.inference_mode():
        whole = network((x - mean) / std)
        by_parts = last(torch.from_numpy(embedded[:2]))
    np.testing.assert_allclose(by_parts, whole, rtol=1e-3, atol=1e-4)
