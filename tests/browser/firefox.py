"""Firefox, driven by WebDriver BiDi, which it speaks itself.

What `visit.Visit` uses of selenium's drivers is here by the same names; geckodriver, which selenium
needs, is not in Debian.
"""

import json
import os
import re
import subprocess
from threading import Timer

import websocket

# Otherwise Firefox opens pages of its own, and asks its makers for news.
PREFERENCES = {
    "app.update.auto": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}
REQUEST_SENT = "network.beforeRequestSent"
PRINTED = "log.entryAdded"
CALLED = "(given) => JSON.stringify((function () {%s}).apply(null, JSON.parse(given)))"
AWAITED = (
    "(given) => new Promise((done) => (function () {%s})"
    ".apply(null, [...JSON.parse(given), (it) => done(JSON.stringify(it))]))"
)


# The most seconds until it can be driven.
START_S = 120


class NotStartedError(Exception):
    """Firefox is here and cannot be driven."""


class Firefox:
    """A headless Firefox with an empty profile, and one tab of its own."""

    def __init__(self, program, folder, width, height):
        lines = [f"user_pref({json.dumps(n)}, {json.dumps(v)});" for n, v in PREFERENCES.items()]
        (folder / "user.js").write_text("\n".join(lines) + "\n")
        command = [program, "--headless", "--no-remote", "--profile", folder]
        self._process = subprocess.Popen(
            [*command, "--remote-debugging-port", "0", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # It refuses to run in another user's home.
            env={**os.environ, "HOME": str(folder)},
        )
        self._events, self._number = [], 0
        self._socket = websocket.create_connection(
            f"{self._address()}/session", timeout=180, suppress_origin=True
        )
        self._do("session.new", capabilities={})
        self._do("session.subscribe", events=[REQUEST_SENT, PRINTED])
        # Without a screen, the first tab does not get the keyboard.
        made = self._do("browsingContext.create", type="tab", background=False)
        self._tab = made["context"]
        self._of_tab("browsingContext.activate")
        self._of_tab("browsingContext.setViewport", viewport={"width": width, "height": height})
        self.width = width

    def _address(self):
        late = Timer(START_S, self._process.kill)
        late.start()
        try:
            printed = []
            for line in self._process.stderr:
                printed.append(line)
                if found := re.search(r"WebDriver BiDi listening on (ws://\S+)", line):
                    return found[1]
        finally:
            late.cancel()
        self._process.stderr.close()
        raise NotStartedError("".join([*printed[-3:], f"it ended with {self._process.wait()}"]))

    def _do(self, method, **params):
        """Send a command, and wait for its result; what happens meanwhile is kept."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while (message := json.loads(self._socket.recv())).get("id") != self._number:
            self._events.append(message)
        if "result" not in message:
            raise AssertionError(f"{method}: {message}")
        return message["result"]

    def _of_tab(self, method, **params):
        return self._do(method, context=self._tab, **params)

    def _called(self, function, given):
        result = self._do(
            "script.callFunction",
            functionDeclaration=function,
            arguments=[{"type": "string", "value": json.dumps(given)}],
            target={"context": self._tab},
            awaitPromise=True,
        )
        if result["type"] == "exception":
            raise AssertionError(result["exceptionDetails"]["text"])
        value = result["result"].get("value")
        return None if value is None else json.loads(value)

    def _happened(self, kind):
        """What of a kind happened since the last question."""
        self._do("session.status")
        found = [e["params"] for e in self._events if e["method"] == kind]
        self._events = [e for e in self._events if e["method"] != kind]
        return found

    def get(self, address):
        self._of_tab("browsingContext.navigate", url=address, wait="complete")

    def execute_script(self, script, *given):
        return self._called(CALLED % script, given)

    def execute_async_script(self, script, *given):
        return self._called(AWAITED % script, given)

    def console(self):
        return [f"{e['level']}: {e['text']}" for e in self._happened(PRINTED)]

    def requests(self):
        return [e["request"]["url"] for e in self._happened(REQUEST_SENT)]

    def press(self, *keys):
        presses = [{"type": t, "value": k} for k in keys for t in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": presses}
        self._of_tab("input.performActions", actions=[source])

    @property
    def current_url(self):
        return self.execute_script("return location.href")

    def quit(self):
        self._socket.close()
        self._process.terminate()
        self._process.wait(60)
        self._process.stderr.close()
