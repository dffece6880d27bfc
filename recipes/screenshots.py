"""Take the screenshots of the report for the docs, with Debian's chromium.

    papi train --candidates.flip-rate 0.7 --epochs 6 --out runs/hard
    python -m recipes.screenshots runs/hard --out docs/pictures

A few decisions are made first, so that the desk shows some progress. The run uses the demo images that come with the
package, because photos of other people do not belong in the docs.
"""

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image

from papi.report import read_run, run_page

FLAGS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --hide-scrollbars"
WIDTH, HEIGHT = 1180, 1110
COLOURS = 128  # per PNG: keeps files small without a visible difference
KEYS = "112111s1b1" * 10


def take(page: Path, out: Path) -> None:
    """Take screenshots of the desk, of its grid, and of the page on a phone in dark mode."""
    from selenium.webdriver.common.action_chains import ActionChains  # needed only here and in tests

    driver = _driver()
    try:
        _size(driver, WIDTH, HEIGHT)
        driver.get(page.resolve().as_uri())
        time.sleep(1)
        for key in KEYS:
            ActionChains(driver).send_keys(key).perform()
        driver.execute_script("document.getElementById('look').scrollIntoView({behavior: 'instant'})")
        _picture(driver, out / "report.png")
        driver.execute_script("desk.scrollIntoView({behavior: 'instant'})")
        time.sleep(0.5)
        ActionChains(driver).send_keys("g").perform()
        driver.execute_script("document.querySelectorAll('#desk-tiles button')[4].click()")
        _picture(driver, out / "report-grid.png")
        driver.execute_script("document.getElementById('desk-mode-one').click()")
        _size(driver, 390, 1200, dark=True)
        driver.execute_script("window.scrollTo({top: 0, behavior: 'instant'})")
        _picture(driver, out / "report-phone.png")
    finally:
        driver.quit()


def _driver() -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    os.environ["SE_OFFLINE"] = "true"  # the driver is installed, so nothing is downloaded
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in FLAGS.split():
        options.add_argument(flag)
    return webdriver.Chrome(options, Service(shutil.which("chromedriver") or "chromedriver"))


def _size(driver: Any, width: int, height: int, dark: bool = False) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": width < 600})
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def _picture(driver: Any, file: Path) -> None:
    time.sleep(0.7)  # until images are loaded
    driver.save_screenshot(str(file))
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(COLOURS).save(file, optimize=True)


def main() -> None:
    """Write the report of a run and take its screenshots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        page = Path(place, "report.html")
        page.write_text(run_page(read_run(given.run), page.parent), encoding="utf-8")
        take(page, given.out)


if __name__ == "__main__":
    main()
