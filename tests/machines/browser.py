"""Chromium without a window, driven over its DevTools pipe."""
import fcntl
import json
import os
import subprocess
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--remote-debugging-pipe"]


class Browser:
    """One tab. `pins`: base64 SHA-256 digests of the public keys of servers whose certificates it takes without their CA."""

    def __init__(self, profile, pins=()):
        (low_down, self.down), (self.up, low_up) = os.pipe(), os.pipe()
        down, up = (fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in (low_down, low_up))  # it wants 3 and 4, which may be these
        command = ["chromium", *FLAGS, f"--user-data-dir={profile}", f"--ignore-certificate-errors-spki-list={','.join(pins)}", "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{down} 4>&{up} {down}<&- {up}>&-', "bash", *command], pass_fds=(down, up), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (low_down, low_up, down, up):
            os.close(fd)
        self.number, self.left, self.session = 0, b"", None
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]

    def answer(self):
        while b"\0" not in self.left:
            data = os.read(self.up, 1 << 16)
            assert data, "the browser has ended"
            self.left += data
        text, self.left = self.left.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        question = {"id": self.number, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        os.write(self.down, json.dumps(question).encode() + b"\0")
        while (found := self.answer()).get("id") != self.number:  # events
            pass
        assert "error" not in found, found
        return found["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)

    def js(self, text):
        """The value of an expression; None while the page changes."""
        return self.call("Runtime.evaluate", expression=text, returnByValue=True)["result"].get("value")

    def see(self, selector, seconds=300):
        end = time.monotonic() + seconds
        while not self.js(f"!!document.querySelector({json.dumps(selector)})"):
            assert time.monotonic() < end, f"no {selector} on the page: " + str(self.js("document.location.href + ' ' + document.body.innerText"))
            time.sleep(0.2)

    def click(self, selector):
        self.see(selector)
        self.js(f"document.querySelector({json.dumps(selector)}).click()")

    def type(self, selector, text):
        """As a keyboard would."""
        self.see(selector)
        self.js(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        os.close(self.down)
        os.close(self.up)
