"""Debian's chromium, driven headless. Where it is missing, tests are skipped with the command that installs it."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from desk_pages import written
from papi.report import read_run
from papi.report.run import Run
from photo_runs import write_photo_run

ROOT = Path(__file__).parents[2]
AXE = ROOT / ".venv/npm/node_modules/axe-core/axe.min.js"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1280,900"
)


class Browser:
    """A chromium window and what it logged."""

    def __init__(self, driver: Any, downloads: Path) -> None:
        self.driver = driver
        self.downloads = downloads

    def open(self, page: Path | str, width: int = 1280, dark: bool = False) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": width < 600})
        self.driver.get(page if isinstance(page, str) else page.resolve().as_uri())

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def press(self, *keys: str) -> None:
        """Keys as a person presses them, wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def tap(self, selector: str) -> None:
        """A finger in the middle of an element."""
        box = self.run(f"""const each = document.querySelector({json.dumps(selector)});
            each.scrollIntoView({{block: 'center', behavior: 'instant'}});
            const box = each.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]""")
        point = {"x": box[0], "y": box[1]}
        self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
        self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def wait(self, script: str, seconds: float = 10) -> None:
        """Until a condition in the page holds."""
        deadline = time.monotonic() + seconds
        while not self.run(f"return {script}"):
            assert time.monotonic() < deadline, script
            time.sleep(0.05)

    def barriers(self, axe: str, *rules: str) -> list[str]:
        """What the accessibility checker finds serious, with the first place of each; by some rules, or by all."""
        if not self.run("return 'axe' in window"):
            self.run(axe)
        options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
        script = "axe.run(arguments[0]).then(({ violations }) => arguments[1](violations))"
        found = self.driver.execute_async_script(script, options)
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        return [f"{each['id']}: {each['nodes'][0]['html'][:120]}" for each in serious]

    def console(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that were asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    binary, driver_file = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver_file is None:
        pytest.skip("no chromium here: apt-get install -y chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium here: pip install selenium")
    from selenium.webdriver.chrome.service import Service

    downloads = tmp_path_factory.mktemp("downloads")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    os.environ["SE_OFFLINE"] = "true"  # the driver is at hand: nothing is looked up
    driver = webdriver.Chrome(options, Service(driver_file))
    driver.get("about:blank")  # the page of a new tab loads scripts
    try:
        yield Browser(driver, downloads)
    finally:
        driver.quit()


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """The window of all tests, with nothing left over from the last."""
    chromium.driver.get("about:blank")
    chromium.console()
    chromium.requests()
    for file in chromium.downloads.iterdir():
        file.unlink()
    return chromium


@pytest.fixture(scope="session")
def axe() -> str:
    """The accessibility checker, as text to run inside a page."""
    if not AXE.exists():
        pytest.skip(f"no axe-core here: npm install --no-save --prefix {AXE.parents[2].relative_to(ROOT)} axe-core@4")
    return AXE.read_text()


@pytest.fixture(scope="session")
def flowers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """A run on photos, and its page where `papi report` puts it."""
    run = read_run(write_photo_run(tmp_path_factory.mktemp("flowers") / "runs" / "beds").path)
    return run, written(run, run.path / "report.html")
