"""Drives a headless browser over its DevTools protocol, using only the standard library."""
import base64
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


class Socket:
    """Client end of a WebSocket (RFC 6455) for text messages. Masks sent messages, and joins fragments of received ones."""

    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port), timeout=120)
        self.read = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((
            "GET %s HTTP/1.1\r\nHost: %s:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n" % (path, host, port, key)).encode())
        first = self.read.readline()
        assert b" 101 " in first, first
        while self.read.readline() not in (b"\r\n", b""):
            pass

    def send(self, text, opcode=1):
        data, mask = text.encode(), os.urandom(4)
        n = len(data)
        head = bytes([0x80 | opcode])
        head += bytes([0x80 | n]) if n < 126 else struct.pack("!BH", 0x80 | 126, n) if n < 65536 \
            else struct.pack("!BQ", 0x80 | 127, n)
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self):
        data = b""
        while True:
            first, second = self.read.read(2)
            n = second & 127
            n = struct.unpack("!H", self.read.read(2))[0] if n == 126 else struct.unpack("!Q", self.read.read(8))[0] \
                if n == 127 else n
            part = self.read.read(n)
            if first & 15 == 9:
                self.send(part.decode(), 10)
            elif first & 15 in (0, 1, 2):
                data += part
                if first & 0x80:
                    return data.decode()
            elif first & 15 == 8:
                raise ConnectionError("the browser has gone")


class Page:
    """One page of the browser. Errors and warnings of the page are collected in `complaints`."""

    def __init__(self, port, target):
        path = target["webSocketDebuggerUrl"].split("/", 3)[3]
        self.socket, self.n, self.complaints = Socket("127.0.0.1", port, "/" + path), 0, []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def heard(self, message):
        params = message.get("params", {})
        if message["method"] == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif message["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])
        elif message["method"] == "Page.javascriptDialogOpening":
            self.complaints.append("a dialog: " + params["message"])

    def call(self, method, **params):
        self.n += 1
        self.socket.send(json.dumps({"id": self.n, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.n:
                assert "error" not in message, (method, message)
                return message["result"]
            if "method" in message:
                self.heard(message)

    def js(self, text):
        """Returns the value of a JavaScript expression, converted from JSON."""
        r = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in r, (text, r["exceptionDetails"])
        return r["result"].get("value")

    def until(self, text, seconds):
        """Waits until a JavaScript expression is true. Returns False after `seconds`."""
        end = time.time() + seconds
        while not self.js(text):
            if time.time() > end:
                return False
            time.sleep(0.1)
        return True

    def open(self, url):
        """Opens a page and waits until it is loaded."""
        self.call("Page.navigate", url=url)
        there = """document.readyState === "complete" && location.href === %s""" % json.dumps(url)
        assert self.until(there, 120), url

    def media(self, **features):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": k.replace("_", "-"), "value": v} for k, v in features.items()])

    def size(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 600)

    def key(self, name, text=""):
        codes = {"Tab": 9, "Enter": 13, "Home": 36, "End": 35, "ArrowLeft": 37, "ArrowRight": 39}
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=codes[name], **more)

    def shot(self, path, clip=None):
        more = {"clip": dict(clip, scale=1)} if clip else {"captureBeyondViewport": True}
        data = self.call("Page.captureScreenshot", format="png", **more)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))


class Browser:
    """A browser process with a temporary profile, which is deleted at the end. Used as a context manager (`with`)."""

    def __init__(self, program):
        self.home = tempfile.mkdtemp(prefix="hearsay-browser-")
        args = [program, "--headless=new", "--remote-debugging-port=0", "--user-data-dir=" + self.home, "--no-first-run",
                "--disable-gpu", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
                "--disable-sync", "--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb", "about:blank"]
        if os.getuid() == 0:
            args.insert(1, "--no-sandbox")
        self.process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True, env=dict(os.environ, HOME=self.home))

    def __enter__(self):
        try:
            said, end = os.path.join(self.home, "DevToolsActivePort"), time.time() + 120
            while not (os.path.exists(said) and open(said, encoding="utf-8").read().count("\n") >= 1):
                assert self.process.poll() is None, "the browser ended with %d" % self.process.returncode
                assert time.time() < end, "the browser says no port"
                time.sleep(0.1)
            self.port = int(open(said, encoding="utf-8").readline())
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *why):
        os.killpg(self.process.pid, signal.SIGKILL)  # The process group contains only the browser.
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def page(self):
        request = urllib.request.Request("http://127.0.0.1:%d/json/new?about:blank" % self.port, method="PUT")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return Page(self.port, json.load(answer))
