"""Take the README's picture of a report: ``python docs/picture.py reports/out/report.html [docs/report.png]``.

Needs Chromium or Google Chrome on the PATH; draws the top of the page in the light theme at twice the resolution.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Error, sync_playwright

WIDTH, HEIGHT = 1200, 1240
NAMES = ("chromium", "chromium-browser", "google-chrome")


def main() -> int:
    """Read the command line, draw, and return the exit status."""
    parser = argparse.ArgumentParser(description="Take a picture of a report.html.")
    parser.add_argument("report", type=Path, nargs="?", default=Path("reports/out/report.html"))
    parser.add_argument("picture", type=Path, nargs="?", default=Path("docs/report.png"))
    parser.add_argument("--dark", action="store_true", help="in the dark theme")
    parser.add_argument("--language", choices=["en", "fa"], default="en")
    parser.add_argument("--claim", help="open the evidence card of this claim")
    parser.add_argument("--height", type=int, default=HEIGHT)
    asked = parser.parse_args()
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        print(f"no browser to draw with: none of {', '.join(NAMES)} is on the PATH", file=sys.stderr)
        return 1
    if not asked.report.is_file():
        print(f"there is no report at {asked.report}; make one with: pytest -n 4", file=sys.stderr)
        return 1
    theme = "dark" if asked.dark else "light"
    address = f"{asked.report.resolve().as_uri()}?theme={theme}&lang={asked.language}"
    if asked.claim:
        address += f"#claim-{asked.claim}"
    try:
        draw(browser, address, asked.picture, asked.height)
    except Error as error:
        print(f"{browser} could not draw {asked.report}: {error}", file=sys.stderr)
        return 1
    print(f"{asked.picture} shows {asked.report}")
    return 0


def draw(browser: str, address: str, picture: Path, height: int) -> None:
    """Open the address and save what the window shows as PNG."""
    with sync_playwright() as playwright:
        # The page is our own and has no network: the sandbox, which root cannot have, is not missed.
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(
            viewport={"width": WIDTH, "height": height}, device_scale_factor=2, reduced_motion="reduce"
        )
        page.goto(address)
        page.wait_for_function("document.getElementById('shown').textContent !== ''")
        page.screenshot(path=picture)
        chromium.close()


if __name__ == "__main__":
    sys.exit(main())
