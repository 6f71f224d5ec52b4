import jax
import jax.numpy as jnp
import numpy as np
import pytest

from piefs.core.losses import init_readout
from piefs.core.maps import init_map, stack
from piefs.core.metric import Off, init_metric
from piefs.core.model import Model, Scaling
from piefs.core.networks import generator
from piefs.core.trees import filled, named_arrays, structure_of, tree_of
from piefs.errors import ModelFileError

D, K = 3, 2


def model(metric="trotter", **options):
    keys = [generator(k) for k in range(K)]
    maps = stack([init_map(key, D, (4,), "tanh") for key in keys])
    scaling = Scaling(np.zeros(D), np.ones(D))
    field = init_metric(metric, keys[0], D, (4,), **options)
    return Model(scaling, maps, np.eye(K), field, init_readout(2, K))


METRICS = ["off", "diag", "trotter", "cayley", "agop"]


@pytest.mark.parametrize("metric", METRICS)
def test_a_model_is_rebuilt_from_its_structure_and_arrays(metric):
    original = model(metric)
    arrays, structure = named_arrays(original), structure_of(original)
    assert "maps.net.weights.0" in arrays
    rebuilt = tree_of(structure, arrays)
    assert jax.tree.structure(rebuilt) == jax.tree.structure(original)
    assert all(map(np.array_equal, jax.tree.leaves(rebuilt), jax.tree.leaves(original)))
    assert structure_of(rebuilt) == structure


def test_composed_metrics_and_their_depths_are_part_of_the_structure():
    original = model("cayley", scope="composed", depth=4, constraint="trace", bound=2.0)
    rebuilt = tree_of(structure_of(original), named_arrays(original))
    assert rebuilt.metric.rotation.depth == 4
    assert rebuilt.metric.scales.constraint == "trace"
    assert rebuilt.metric.scales.bound == 2.0


def test_names_are_the_paths_that_jax_gives():
    tree = model()
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    paths = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    assert set(named_arrays(tree)) == set(paths)


def spoiled_structure(change):
    structure = structure_of(model("cayley"))
    change(structure)
    return structure


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s: s["maps"].update(kind="Popen"), "unknown kind 'Popen'"),
        (lambda s: s["maps"]["net"]["weights"].pop(), "do not fit.*maps.net.weights.1"),
        (lambda s: s["maps"]["net"]["weights"].append(s["mixing"]), "do not fit"),
        (lambda s: s["mixing"].update(shape=[3, 3]), r"mixing is float64\[2, 2\]"),
        (lambda s: s["metric"]["rotation"].update(depth=10**9), "more than any"),
        (lambda s: s["maps"]["net"].update(activation="cubic"), "unknown activation"),
    ],
)
def test_a_structure_that_does_not_fit_is_refused(change, says):
    arrays = named_arrays(model("cayley"))
    with pytest.raises((ModelFileError, ValueError), match=says):
        tree_of(spoiled_structure(change), arrays)


def test_objects_of_other_classes_have_no_structure():
    class MyMetric(Off):
        pass

    with pytest.raises(ModelFileError, match="MyMetric cannot be written"):
        structure_of(MyMetric())


def test_a_tree_is_filled_with_arrays_by_their_names():
    tree = {"a": [jnp.arange(3.0), jnp.ones((2, 2))], "b": jnp.zeros(())}
    arrays = named_arrays(tree)
    assert set(arrays) == {"a.0", "a.1", "b"}
    back = filled(jax.eval_shape(lambda: tree), arrays)
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    assert all(map(np.array_equal, jax.tree.leaves(back), jax.tree.leaves(tree)))
    with pytest.raises(ModelFileError, match="do not fit"):
        filled(tree, arrays | {"c": np.zeros(1)})
    with pytest.raises(ModelFileError, match="b is float32"):
        filled(tree, arrays | {"b": np.zeros(1, np.float32)})
