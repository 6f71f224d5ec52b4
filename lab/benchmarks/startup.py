"""What a user waits for before the first step: imports and compilation, cold and kept."""

import json
import tempfile
from statistics import median

from lab.benchmarks.machine import fresh_python

IMPORTS = {
    "import piefs": "import piefs",
    "from piefs import PIEFSClassifier": "from piefs import PIEFSClassifier",
    "import sklearn.neural_network": "import sklearn.neural_network",
    "import torch": "import torch",
    "import umap": "import umap",
}
COMPILE = """
import json, time
import jax
from lab.benchmarks.descent import Descent
found = {{}}
for d, batch, metric in {shapes}:
    work = Descent(d, batch, metric, 1)
    jax.block_until_ready(work.chunk)
    start = time.perf_counter(); work(); first = time.perf_counter() - start
    start = time.perf_counter(); work(); again = time.perf_counter() - start
    found[f"d={{d}}, batch {{batch}}, {{metric}}"] = first - again
print(json.dumps(found))
"""
SHAPES = [(2, 256, "off"), (8, 2048, "diag"), (784, 2048, "off"), (784, 2048, "trotter")]


def import_seconds(statement: str) -> float:
    """The median over fresh processes, the interpreter's own start not counted."""
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    return median(float(fresh_python(code)) for _ in range(5))


def compile_seconds(cache: str) -> dict[str, float]:
    """Seconds by which the first call of the training loop is longer than the second."""
    environment = {
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    }
    return json.loads(fresh_python(COMPILE.format(shapes=SHAPES), **environment))


def run() -> dict[str, object]:
    """Imports; then the compilation of the training loop, new and from the cache."""
    with tempfile.TemporaryDirectory() as cache:
        new, *seen = (compile_seconds(cache) for _ in range(4))
    return {
        "import_seconds": {name: round(import_seconds(code), 3) for name, code in IMPORTS.items()},
        "compile_seconds": {
            name: {
                "new shape": round(new[name], 2),
                "seen before": round(median(run[name] for run in seen), 2),
            }
            for name in new
        },
    }
