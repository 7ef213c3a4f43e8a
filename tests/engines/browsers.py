"""Browsers that readers have, each with one way to open a page and to run JavaScript in it.

Chromium is driven by Playwright, Firefox by WebDriver BiDi, WebKit (Debian's webkit2gtk-driver) by Selenium: the last
two are the browsers of the system, which Playwright cannot drive.
"""

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from glob import glob
from pathlib import Path

SECONDS = 240  # for one script: a model may be loaded in it
MINI_BROWSER = next(iter(sorted(glob("/usr/lib/*/webkit2gtk-4.*/MiniBrowser"), reverse=True)), None)
WEBKIT_DRIVER = shutil.which("WebKitWebDriver")
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
# nobody answers at port 9: no request can leave this machine
PREFERENCES = [("network.proxy.type", 1)]
PREFERENCES += [(f"network.proxy.{kind}", "127.0.0.1") for kind in ("http", "ssl")]
PREFERENCES += [(f"network.proxy.{kind}_port", 9) for kind in ("http", "ssl")]
# what a script gives, or why it failed; the last argument of an asynchronous script of WebDriver is its callback
WRAPPED = """const [given, done] = [arguments[0], arguments[arguments.length - 1]];
(async (given) => {{ {body} }})(given).then(
  (value) => done(JSON.stringify({{ value: value ?? null }})),
  (error) => done(JSON.stringify({{ error: `${{error}} ${{error?.stack}}` }})),
);"""


class Chromium:
    """A page of the browser that the other tests of a worker share: two Playwrights in a process do not go together."""

    def __init__(self, browser):
        self.page = browser.new_page()
        self.page.set_default_timeout(1000 * SECONDS)

    def goto(self, url):
        self.page.goto(url, wait_until="load")

    def run(self, body, given=None):
        """What the body of an async function returns, as JSON; ``given`` is its argument."""
        return self.page.evaluate(f"async (given) => {{ {body} }}", given)


class Driven:
    """A browser that speaks WebDriver: `script` runs an asynchronous one."""

    def __init__(self, goto, script):
        self.goto, self._script = goto, script

    def run(self, body, given=None):
        """As `Chromium.run`.

        Raises:
            RuntimeError: the script has failed.
        """
        told = json.loads(self._script(WRAPPED.format(body=body), given))
        if "error" in told:
            raise RuntimeError(told["error"])
        return told["value"]


@contextmanager
def firefox():
    """By WebDriver BiDi, which Firefox speaks itself: Selenium asks for geckodriver, which Debian does not have."""
    import websocket

    with tempfile.TemporaryDirectory() as profile:
        Path(profile, "user.js").write_text(
            "".join(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in PREFERENCES)
        )
        command = [FIREFOX, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"]
        program = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        address = next(line.split()[-1] for line in program.stderr if "WebDriver BiDi listening on" in line)
        threading.Thread(target=program.stderr.read, daemon=True).start()  # or a full pipe would stop it
        line = websocket.create_connection(f"{address}/session", timeout=SECONDS, suppress_origin=True)
        numbers = itertools.count()

        def ask(method, **params):
            number = next(numbers)
            line.send(json.dumps({"id": number, "method": method, "params": params}))
            while (told := json.loads(line.recv())).get("id") != number:
                pass  # an event
            if told["type"] == "error":
                raise RuntimeError(f"{method}: {told['message']}")
            return told["result"]

        ask("session.new", capabilities={})
        context = ask("browsingContext.getTree")["contexts"][0]["context"]

        def script(text, given):
            body = f"(text) => new Promise((done) => new Function({json.dumps(text)})(JSON.parse(text), done))"
            argument = {"type": "string", "value": json.dumps(given)}
            told = ask(
                "script.callFunction", functionDeclaration=body, arguments=[argument], awaitPromise=True,
                target={"context": context},
            )  # fmt: skip
            return told["result"]["value"]

        try:
            yield Driven(lambda url: ask("browsingContext.navigate", context=context, url=url, wait="complete"), script)
        finally:
            line.close()
            program.terminate()
            program.wait()


@contextmanager
def webkit():
    from selenium import webdriver
    from selenium.webdriver.webkitgtk.options import Options
    from selenium.webdriver.webkitgtk.service import Service

    options = Options()
    options.binary_location = MINI_BROWSER
    options.add_argument("--automation")
    options.set_capability("browserName", "MiniBrowser")
    with screen() as display:
        environment = {**os.environ, "DISPLAY": display, "http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
        service = Service(executable_path=WEBKIT_DRIVER, env=environment)
        browser = webdriver.WebKitGTK(options=options, service=service)
        browser.set_script_timeout(SECONDS)
        try:
            yield Driven(browser.get, browser.execute_async_script)
        finally:
            browser.quit()


@contextmanager
def screen():
    """A screen that nobody sees. Gives: its name."""
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x1200x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as told:
        number = told.readline().strip()
    if not number:
        raise RuntimeError("Xvfb did not start")
    try:
        yield f":{number}"
    finally:
        server.terminate()
        server.wait()


# how the others are opened, and what of the system they need
ENGINES = {
    "firefox": (firefox, {"firefox-esr": FIREFOX}),
    "webkit": (webkit, {"webkit2gtk-driver": WEBKIT_DRIVER and MINI_BROWSER, "xvfb": shutil.which("Xvfb")}),
}
