"""The records of a study: a line of JSON for each run, and all training histories in one table.

`STUDY.jsonl` holds `{"name": …, "record": …}` on each line, `STUDY.parquet` the rows of the
histories under the same names. Lines are sorted by name. Both files are replaced as a whole while
a lock is held, so several processes may add to one study and none leaves half a record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from filelock import FileLock

from piefs.data.files import bounded_text, parse_json, reading, write_bytes, write_with
from piefs.errors import StorageError

Rows = list[dict[str, float]]

REMEDY = "restore it, or remove it and run the study again"
COUNTS = ("step", "map")
"""Columns of a history that hold whole numbers."""


class Study(Mapping[str, dict[str, Any]]):
    """Records by name, and the training history of those that have one.

    `path` is that of both files without its suffix.
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        self.file = path.with_name(f"{path.name}.jsonl")
        self.table = path.with_name(f"{path.name}.parquet")
        self._records: tuple[Any, dict[str, dict[str, Any]]] = (None, {})
        self._histories: tuple[Any, dict[str, Any]] = (None, {})

    def __getitem__(self, name: str) -> dict[str, Any]:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def history(self, name: str) -> Rows:
        """The training history of a run, without the values that a row lacks; empty without one."""
        table = self._tables().get(name)
        if table is None:
            return []
        with reading(self.table, REMEDY):
            rows = table.drop_columns("name").to_pylist()
            return [{key: float(v) for key, v in row.items() if v is not None} for row in rows]

    def add(
        self, name: str, record: Mapping[str, Any], history: Sequence[Mapping[str, float]] = ()
    ) -> None:
        """Keep a record, in place of the one of that name if there is one."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.file.with_name(f".{self.file.name}.lock")):
                if history:  # first, so that whoever finds the record finds its history too
                    self._write_histories({**self._tables(), name: _table(name, history)})
                self._write_records({**self._all(), name: _finite(record)})
        except StorageError:
            raise
        except OSError as error:
            raise StorageError(
                f"{self.file} cannot be written ({error.strerror or error})"
            ) from error

    def _all(self) -> dict[str, dict[str, Any]]:
        version = _version(self.file)
        if version != self._records[0]:
            self._records = version, dict(_lines(self.file) if version else ())
        return self._records[1]

    def _tables(self) -> dict[str, Any]:
        version = _version(self.table)
        if version != self._histories[0]:
            self._histories = version, _by_name(self.table) if version else {}
        return self._histories[1]

    def _write_records(self, records: Mapping[str, Mapping[str, Any]]) -> None:
        lines = (
            json.dumps({"name": name, "record": records[name]}, ensure_ascii=False)
            for name in sorted(records, key=_order)
        )
        write_bytes(self.file, "".join(f"{line}\n" for line in lines).encode())

    def _write_histories(self, tables: Mapping[str, Any]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        ordered = [tables[name] for name in sorted(tables, key=_order)]
        whole = pa.concat_tables(ordered, promote_options="default")
        exact = [name for name in whole.column_names if pa.types.is_floating(whole[name].type)]
        write_with(
            self.table,
            lambda path: parquet.write_table(
                whole,
                path,
                compression="zstd",
                compression_level=19,
                use_dictionary=[name for name in whole.column_names if name not in exact],
                use_byte_stream_split=exact,
            ),
        )


def _order(name: str) -> list[str]:
    return name.split("/")


def _version(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is replaced; None without the file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _finite(record: Mapping[str, Any]) -> dict[str, Any]:
    """What is written of a record: NaN and infinity become null."""
    return json.loads(json.dumps(record), parse_constant=lambda constant: None)


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with reading(path, REMEDY):
        lines = bounded_text(path).split("\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        with reading(path, f"remove line {number}, and its run can be made again"):
            found = parse_json(line)
            name, record = found["name"], found["record"]
            if not isinstance(name, str) or not isinstance(record, dict):
                raise ValueError("a line is a name and a record")
        yield name, record


def _by_name(path: Path) -> dict[str, Any]:
    """The rows of each run, as tables."""
    import pyarrow as pa
    from pyarrow import parquet

    with reading(path, REMEDY):
        try:
            whole = parquet.read_table(path)
        except pa.ArrowException as error:
            raise ValueError(str(error)) from error
        names, start, found = whole["name"].to_pylist(), 0, {}
        for name, rows in groupby(names):
            n_rows = len(list(rows))
            found[name] = whole.slice(start, n_rows)
            start += n_rows
        return found


def _table(name: str, history: Sequence[Mapping[str, float]]) -> Any:
    import pyarrow as pa

    columns = dict.fromkeys(column for row in history for column in row)
    return pa.table(
        {"name": pa.array([name] * len(history)).dictionary_encode()}
        | {
            column: pa.array(
                [row.get(column) for row in history],
                pa.int32() if column in COUNTS else pa.float64(),
            )
            for column in columns
        }
    )
