"""Chromium, driven by selenium and chromedriver."""

import json

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


class Chromium:
    """A headless Chromium with an empty profile; `driver` is selenium's."""

    def __init__(self, program, driver, folder, width, height):
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = program
        for flag in (*FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        self.get, self.quit = self.driver.get, self.driver.quit
        self.execute_script = self.driver.execute_script
        self.execute_async_script = self.driver.execute_async_script
        self.command = self.driver.execute_cdp_cmd
        self.driver.set_script_timeout(180)
        self.resize(width, height)

    def resize(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.command("Emulation.setDeviceMetricsOverride", metrics)
        self.width, self.height = width, height

    def console(self):
        return [f"{e['level']}: {e['message']}" for e in self.driver.get_log("browser")]

    def requests(self):
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        return [
            e["params"]["request"]["url"]
            for e in events
            if e["method"] == "Network.requestWillBeSent"
        ]

    def press(self, *keys):
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    @property
    def current_url(self):
        return self.driver.current_url
