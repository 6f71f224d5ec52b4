"""A real browser for tests: Chromium without a window, driven over a pipe by its own protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
WHY_NONE = "no Chromium on this machine (Debian: apt-get install chromium)"


class Browser:
    """One page: what it says on the console and asks of the network is kept; input is real."""

    def __init__(self, profile: Path, *, width: int = 1400, height: int = 1000) -> None:
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        # The protocol wants file descriptors 3 and 4; a shell puts ours there.
        flags = "--headless --no-sandbox --disable-gpu --remote-debugging-pipe --hide-scrollbars"
        call = f'exec "$0" {flags} "$@" 3<&{to_read} 4>&{to_write}'
        options = [f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", call, str(BROWSER), *options],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._count, self._session = b"", 0, None
        self.console: list[str] = []
        self.requests: list[str] = []
        self.loaded = False
        (page,) = [
            target
            for target in self.call("Target.getTargets")["targetInfos"]
            if target["type"] == "page"
        ]
        attach = {"targetId": page["targetId"], "flatten": True}
        self._session = self.call("Target.attachToTarget", **attach)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and wait for its result."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(60)
            if answer is not None and answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _receive(self, seconds: float) -> dict[str, Any] | None:
        """The next message, noted if it is an event; None if none comes in time."""
        deadline = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return None
            self._buffer += os.read(self._from, 2**20)
        text, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, parameters: dict[str, Any]) -> None:
        if method == "Runtime.consoleAPICalled":
            self.console.append(str(parameters["args"]))
        elif method == "Runtime.exceptionThrown":
            self.console.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.console.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def open(self, page: Path) -> float:
        """Load a file and give the seconds until its script has run."""
        self.loaded, self.console[:], self.requests[:] = False, [], []
        start = time.perf_counter()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not self.loaded:
            assert self._receive(60) is not None, "the page does not load"
        return time.perf_counter() - start

    def run(self, script: str) -> Any:
        """The value of an expression on the page."""
        done = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def painted(self) -> None:
        """Wait until the page has drawn what it was going to draw."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def place(self, selector: str) -> tuple[float, float, float, float]:
        """Left, top, width and height of an element, scrolled into view."""
        script = f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: "center", behavior: "instant"}});
            const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; }})()"""
        left, top, width, height = self.run(script)
        return left, top, width, height

    def mouse(self, kind: str, x: float, y: float) -> None:
        """A mouse event: mouseMoved, mousePressed or mouseReleased."""
        button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def click(self, selector: str) -> None:
        """Click the middle of an element."""
        left, top, width, height = self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, left + width / 2, top + height / 2)
        self.painted()

    def drag(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """Press, move and release."""
        self.mouse("mousePressed", x0, y0)
        for part in (0.5, 1.0):
            x, y = x0 + part * (x1 - x0), y0 + part * (y1 - y0)
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="left")
        self.mouse("mouseReleased", x1, y1)
        self.painted()

    def tap(self, x: float, y: float) -> None:
        """Touch with a finger, and let go."""
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.painted()

    def screenshot(self, path: Path, *, width: int, dark: bool = False) -> None:
        """The whole page as a picture, at a width."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)
        sizes = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **sizes)
        self.painted()
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """End the browser."""
        os.close(self._to)
        os.close(self._from)
        self._process.terminate()
        self._process.wait(20)
