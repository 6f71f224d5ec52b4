"""Downloads, from a real server on loopback: only verified content takes its place."""

import hashlib
import io
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from piefs.data.fetch import FILES, DataFile, fetch
from piefs.errors import InputError

TABLE = np.arange(6.0).reshape(2, 3)
TEXT = "0,1,2\n3,4,5\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path):
    """A folder of files and the address it is served under."""
    served = tmp_path / "served"
    served.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=served)) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield served, f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()


def data_file(url=""):
    digest = hashlib.sha256(TABLE.astype("<f8").tobytes()).hexdigest()
    return DataFile("toy", "toy/toy.csv", {"table": digest}, url)


def zipped(name, text):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, text)
    return buffer.getvalue()


def test_a_good_file_takes_its_place(server, tmp_path):
    served, address = server
    (served / "a.csv").write_text(TEXT)
    path = fetch(data_file(f"{address}/a.csv"), tmp_path / "data")
    assert path == tmp_path / "data" / "toy" / "toy.csv"
    assert path.read_text() == TEXT


def test_a_file_inside_an_archive_is_taken_out(server, tmp_path):
    served, address = server
    (served / "a.zip").write_bytes(zipped("toy.csv", TEXT))
    assert fetch(data_file(f"{address}/a.zip"), tmp_path / "data").read_text() == TEXT


@pytest.mark.parametrize("name", ["bad.csv", "bad.zip", "other.zip", "missing.csv"])
def test_a_wrong_file_leaves_nothing_and_says_where_to_put_a_right_one(server, tmp_path, name):
    served, address = server
    (served / "bad.csv").write_text("9,9\n")
    (served / "bad.zip").write_text("no archive")
    (served / "other.zip").write_bytes(zipped("other.csv", TEXT))
    with pytest.raises(InputError, match=r"toy\.csv by hand"):
        fetch(data_file(f"{address}/{name}"), tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_no_connection_is_said_in_a_word(tmp_path):
    with pytest.raises(InputError, match=r"no connection.*toy\.csv by hand"):
        fetch(data_file("http://127.0.0.1:9/toy.csv"), tmp_path / "data")


def test_what_has_no_source_cannot_be_fetched(tmp_path):
    with pytest.raises(InputError, match="cannot be downloaded"):
        fetch(data_file(), tmp_path)


def test_what_is_larger_than_the_data_can_be_is_not_stored(server, tmp_path):
    served, address = server
    (served / "a.csv").write_text(TEXT)
    with pytest.raises(InputError, match="more than 5 bytes"):
        fetch(replace(data_file(f"{address}/a.csv"), most_bytes=5), tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_what_unpacks_to_more_than_the_data_can_be_is_not_unpacked(server, tmp_path):
    served, address = server
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("toy.csv", "0" * 1_000_000)
    (served / "a.zip").write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match="unpacks to more than"):
        fetch(replace(data_file(f"{address}/a.zip"), most_bytes=10_000), tmp_path / "data")


def test_data_come_over_https_or_not_at_all(tmp_path):
    with pytest.raises(InputError, match="is not https"):
        fetch(data_file("http://data.invalid/a.csv"), tmp_path / "data")


def test_an_address_that_leads_to_one_without_https_is_not_followed_to_the_end(tmp_path):
    class Leading(Quiet):
        def do_GET(self):
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.2:{self.server.server_address[1]}/b.csv")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Leading) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{http.server_address[1]}"
        with pytest.raises(InputError, match="could not be downloaded"):
            fetch(data_file(f"{address}/a.csv"), tmp_path / "data")
        http.shutdown()


def test_every_known_source_is_https():
    assert all(file.url.startswith("https://") for file in FILES.values() if file.url)
