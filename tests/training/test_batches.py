import threading
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from piefs.core.objectives import Batch
from piefs.training import batches
from piefs.training.batches import (
    CHUNK_BYTES,
    CHUNK_STEPS,
    Samples,
    chunk_length,
    chunks,
    gather,
    prefetched,
    row_stream,
    some_rows,
)

N, D, K = 11, 3, 4


@pytest.fixture
def samples(rng):
    x = rng.normal(size=(N, D)).astype(np.float32)
    return Samples(x, np.arange(N), rng.uniform(size=N), rng.uniform(size=N))


@pytest.fixture
def frozen(rng):
    return rng.normal(size=(N, K)).astype(np.float32)


def feed(samples, frozen, first_step=0, n_steps=10, length=4, batch_size=5, k=1):
    return list(
        chunks(
            samples,
            frozen,
            seed=3,
            k=k,
            batch_size=batch_size,
            first_step=first_step,
            n_steps=n_steps,
            length=length,
        )
    )


def batches_in_use(fed):
    """The batches that steps will see, one after the other, without the surplus of the last."""
    return [[np.asarray(a)[i] for a in chunk] for chunk, _, n in fed for i in range(n)]


def assert_same_batches(left, right):
    assert len(left) == len(right) > 0
    for a, b in zip(left, right, strict=True):
        for u, v in zip(a, b, strict=True):
            np.testing.assert_array_equal(u, v)


def stretch(*about):
    """A stretch of the stream of rows."""
    return next(row_stream(*about))


# --- samples -----------------------------------------------------------------------------------


def test_samples_without_weights_or_targets_count_equally():
    samples = Samples(np.zeros((N, D), np.float32))
    assert len(samples) == N
    np.testing.assert_array_equal(samples.targets, np.zeros(N, int))
    for weight in (samples.weights, samples.label_weights):
        np.testing.assert_array_equal(weight, np.ones(N))
        assert weight.dtype == np.float32


def test_weights_take_the_dtype_of_the_inputs():
    weight = np.arange(N)
    samples = Samples(np.zeros((N, D), np.float32), weight=weight, label_weight=2 * weight)
    np.testing.assert_array_equal(samples.weights, weight)
    np.testing.assert_array_equal(samples.label_weights, 2 * weight)
    assert samples.weights.dtype == samples.label_weights.dtype == np.float32


# --- the stream of rows ------------------------------------------------------------------------


@given(n=st.integers(1, 12), start=st.integers(0, 60), size=st.integers(1, 40))
def test_any_stretch_of_rows_is_a_slice_of_the_long_stream(n, start, size):
    whole = stretch(7, 2, n, 0, 100)
    np.testing.assert_array_equal(stretch(7, 2, n, start, size), whole[start : start + size])


@given(n=st.integers(1, 30), epoch=st.integers(0, 5))
def test_every_epoch_is_a_permutation_of_all_rows(n, epoch):
    rows = stretch(0, 0, n, epoch * n, n)
    assert sorted(rows) == list(range(n))


def test_stream_is_determined_by_seed_map_and_epoch():
    base = stretch(0, 0, 50, 0, 100)
    np.testing.assert_array_equal(base, stretch(0, 0, 50, 0, 100))
    assert not np.array_equal(base, stretch(1, 0, 50, 0, 100))
    assert not np.array_equal(base, stretch(0, 1, 50, 0, 100))
    assert not np.array_equal(base[:50], base[50:])
    assert not np.array_equal(base[:50], np.arange(50))


# --- chunks ------------------------------------------------------------------------------------


def test_gathered_chunk_holds_the_rows_asked_for(samples, frozen):
    rows = np.array([3, 0, 10, 3, 7, 1])
    chunk = gather(samples, frozen, rows, (2, 3))
    assert chunk.x.shape == (2, 3, D)
    assert chunk.frozen.shape == (2, 3, K)
    for step in range(2):
        for place in range(3):
            row = rows[3 * step + place]
            np.testing.assert_array_equal(chunk.x[step, place], samples.x[row])
            np.testing.assert_array_equal(chunk.frozen[step, place], frozen[row])
            assert chunk.target[step, place] == row
            assert chunk.weight[step, place] == np.float32(samples.weight[row])
            assert chunk.label_weight[step, place] == np.float32(samples.label_weight[row])


def test_gathered_chunk_does_not_follow_later_changes_of_the_cache(samples, frozen):
    chunk = gather(samples, frozen, np.arange(6), (2, 3))
    before = np.array(chunk.frozen)
    frozen[:] = 0
    np.testing.assert_array_equal(chunk.frozen, before)


def test_steps_of_a_map_see_the_stream_in_order(samples, frozen):
    used = batches_in_use(feed(samples, frozen))
    stream = stretch(3, 1, N, 0, 50).reshape(10, 5)
    assert_same_batches(used, [list(Batch(*_rows(samples, frozen, rows))) for rows in stream])


def _rows(samples, frozen, rows):
    arrays = (samples.x, frozen, samples.targets, samples.weights, samples.label_weights)
    return [a[rows] for a in arrays]


def test_all_chunks_have_one_shape_and_their_steps_add_up(samples, frozen):
    fed = feed(samples, frozen)
    assert [(first, n) for _, first, n in fed] == [(0, 4), (4, 4), (8, 2)]
    assert {chunk.x.shape for chunk, _, _ in fed} == {(4, 5, D)}


@pytest.mark.parametrize("first_step", [4, 8])
def test_feed_resumed_at_a_chunk_is_the_tail_of_the_whole_feed(first_step, samples, frozen):
    resumed, whole = feed(samples, frozen, first_step), feed(samples, frozen)
    tail = whole[first_step // 4 :]
    assert [entry[1:] for entry in resumed] == [entry[1:] for entry in tail]
    for (chunk, _, _), (expected, _, _) in zip(resumed, tail, strict=True):
        assert_same_batches([chunk], [expected])


@given(first_step=st.integers(0, 9), length=st.integers(1, 11))
def test_steps_do_not_depend_on_where_a_run_resumed_nor_on_the_chunk_length(first_step, length):
    rng = np.random.default_rng(1)
    samples, frozen = Samples(rng.normal(size=(N, D))), rng.normal(size=(N, K))
    samples, frozen = Samples(samples.x.astype("f4")), frozen.astype("f4")
    resumed = batches_in_use(feed(samples, frozen, first_step, length=length))
    assert_same_batches(resumed, batches_in_use(feed(samples, frozen))[first_step:])


def test_finished_map_has_nothing_left_to_feed(samples, frozen):
    assert feed(samples, frozen, first_step=10) == []


@pytest.mark.parametrize("shape", [(1, 1), (256, 784), (2048, 784), (10**6, 1000)])
def test_chunks_stay_within_their_bounds(shape):
    length = chunk_length(*shape, itemsize=4, interval=10**6 + 3)
    assert 1 <= length <= CHUNK_STEPS
    assert length == 1 or length * shape[0] * shape[1] * 4 <= CHUNK_BYTES
    room_for_more = (length + 1) * shape[0] * shape[1] * 4 <= CHUNK_BYTES
    assert length == CHUNK_STEPS or not room_for_more


@pytest.mark.parametrize("interval", [250, 100, 60, 1])
def test_intervals_of_steps_end_where_chunks_do(interval):
    assert interval % chunk_length(2048, 512, 4, interval) == 0


# --- prefetching -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 7])
def test_prefetching_keeps_all_items_in_order(n):
    assert list(prefetched(iter(range(n)))) == list(range(n))


def test_prefetching_prepares_the_next_item_while_one_is_in_use():
    prepared = threading.Event()

    def items():
        yield "in use"
        prepared.set()
        yield "next"

    feed = prefetched(items())
    assert next(feed) == "in use"
    assert prepared.wait(timeout=10)
    assert next(feed) == "next"


def test_prefetching_stays_one_item_ahead():
    drawn = []
    feed = prefetched(drawn.append(i) or i for i in count())
    for _ in range(3):
        next(feed)
    feed.close()
    assert drawn == [0, 1, 2, 3]


def test_prefetching_passes_exceptions_on_after_the_items_before_them():
    def items():
        yield 1
        raise OSError("disk gone")

    feed, seen = prefetched(items()), []
    with pytest.raises(OSError, match="disk gone"):
        seen.extend(iter(feed.__next__, None))
    assert seen == [1]


@given(n=st.integers(1, 1000), window=st.integers(1, 1001), epoch=st.integers(0, 3))
def test_an_epoch_of_windows_has_every_row_once(n, window, epoch):
    assert sorted(stretch(1, 2, n, epoch * n, n, window)) == list(range(n))


def test_windows_can_be_entered_anywhere():
    whole = stretch(0, 0, 1000, 0, 3000, 64)
    for start, size in ((0, 10), (63, 3), (990, 40), (1999, 1001)):
        np.testing.assert_array_equal(
            stretch(0, 0, 1000, start, size, 64), whole[start : start + size]
        )


def test_rows_of_a_window_lie_in_few_blocks_and_in_no_order():
    rows = stretch(0, 0, 100_000, 0, 1600, 1600)
    assert len(np.unique(rows // 100)) == 16
    assert not np.all(np.diff(rows) > 0)
    assert not np.array_equal(rows, stretch(0, 0, 100_000, 100_000, 1600, 1600))


def test_the_order_of_an_epoch_is_drawn_once_for_all_its_chunks(rng, monkeypatch):
    drawn, draw = [], batches._epoch

    def counted(seed, k, n, epoch, window):
        drawn.append(epoch)
        return draw(seed, k, n, epoch, window)

    monkeypatch.setattr(batches, "_epoch", counted)
    samples = Samples(rng.normal(size=(32, 2)))
    feed = chunks(
        samples, np.zeros((32, 1)), seed=0, k=0, batch_size=4, first_step=0, n_steps=16, length=2
    )
    assert len(list(feed)) == 8
    assert drawn == [0, 1]


def test_some_rows_of_very_many_are_distinct_and_take_no_list_of_all():
    assert len(set(some_rows(0, 2**40, 1000))) == 1000
    np.testing.assert_array_equal(
        some_rows([3, 50], 50, 7), np.random.default_rng([3, 50]).permutation(50)[:7]
    )
