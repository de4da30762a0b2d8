"""A headless Chromium that a test drives through its DevTools protocol: open a page, run JavaScript in it, wait, take a picture."""

import base64
import json
import re
import shutil
import subprocess
import time
from contextlib import contextmanager
from itertools import count

from websocket import create_connection

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--remote-debugging-port=0", "--remote-allow-origins=*"),
)


class Page:
    """A page that is open in a browser."""

    def __init__(self, socket):
        self._socket, self._numbers = socket, count(1)

    def call(self, method, **parameters):
        """Call a method of the protocol; its result."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def run(self, script):
        """What a JavaScript expression gives; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script, seconds=60):
        """Until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.run(f"!!({script})"):
                    return
            except AssertionError:  # the page is still being built
                pass
            time.sleep(0.2)
        raise AssertionError(f"after {seconds} s still not: {script}; the page says: {self.run('document.body.innerText')[:2000]}")

    def click(self, element):
        """Press and release the mouse in the middle of what a JavaScript expression gives."""
        at = self.run(f"(one => {{ one.scrollIntoView({{block: 'center'}}); const r = one.getBoundingClientRect(); "
                      f"return {{x: r.x + r.width / 2, y: r.y + r.height / 2}}; }})({element})")  # fmt: skip
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    def open(self, url):
        """Go to an address."""
        self.call("Page.enable")
        self.call("Page.navigate", url=url)

    def picture(self, path, width=1500, height=1100):
        """A screenshot (PNG)."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        time.sleep(0.3)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browsing(folder, width=1500, height=1100):
    """A page of a browser whose profile lies in `folder`; the browser ends with the block."""
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}/profile", f"--window-size={width},{height}", "about:blank"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = (re.search(r"ws://\S+", line) for line in process.stderr)
            address = next(match[0] for match in lines if match)
            browser = Page(create_connection(address, timeout=120))
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            root = address.split("/devtools/")[0]
            yield Page(create_connection(f"{root}/devtools/page/{target}", timeout=120))
        finally:
            process.terminate()
