"""A page in a browser: what a reader sees and does."""

import time

DEADLINE_S = 20.0


class Visit:
    def __init__(self, browser, address):
        self.browser = browser
        browser.get("about:blank")
        self.console()
        self.requests()
        browser.get(address)
        self.until("return document.documentElement.dataset.ready === 'true'")

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def until(self, script, *arguments):
        """Wait until a script returns something true; gives what it returned."""
        end = time.monotonic() + DEADLINE_S
        while not (found := self.run(script, *arguments)):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {script}")
            time.sleep(0.02)
        return found

    def console(self):
        """What the console printed since the last call."""
        return self.browser.console()

    def requests(self):
        """The addresses requested since the last call; Firefox tells of no file's."""
        return [a for a in self.browser.requests() if not a.startswith("data:")]

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def texts(self, selector):
        script = (
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText.trim())"
        )
        return self.run(script, selector)

    def exists(self, selector):
        return self.run("return document.querySelector(arguments[0]) !== null", selector)

    def click(self, selector, number=0):
        script = "document.querySelectorAll(arguments[0])[arguments[1]].click()"
        self.run(script, selector, number)

    def filter(self, **values):
        """Set filters as a reader would, by what their options say."""
        for name, said in values.items():
            self.run(
                """
                const field = document.getElementById("filters").elements[arguments[0]];
                if (field.tagName === "SELECT") {
                  const option = [...field.options].find((o) => o.text === arguments[1]);
                  field.value = option.value;
                } else field.value = arguments[1];
                field.dispatchEvent(new Event("input", {bubbles: true}));
                """,
                name,
                said,
            )
        time.sleep(0.3 if "text" in values else 0)

    def open(self, listing, number=0):
        """Open an attempt of a list, and wait for its source."""
        self.click(f"[data-listing={listing}] .open-row", number)
        self.sheet()

    def sheet(self):
        """Wait until the open attempt is whole."""
        self.until(
            "const sheet = document.getElementById('sheet');"
            "return sheet.open && /(candidates\\/|this page;)/.test(sheet.innerText)"
        )

    def keys(self, *keys):
        self.browser.press(*keys)
