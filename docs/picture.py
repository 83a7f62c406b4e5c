"""Take the pictures of a report that README and docs show.

``python docs/picture.py`` runs what they show (a few minutes) and draws all of them; ``python docs/picture.py REPORT``
draws them from a report.html that is there, and ``python docs/picture.py REPORT PICTURE`` only one, as the options say.
Needs Chromium or Google Chrome on the PATH.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Error, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT = 1200, 1240
NAMES = ("chromium", "chromium-browser", "google-chrome")
FOLDER = "reports/out/pictures"  # from the root: the picture shows the command
DRAWN = "document.getElementById('shown').textContent !== ''"
IMPLS = ("reference", "torch", "impls/mutants/ddp_divides_by_two.py")
CLAIMS = ("loop.*", "collectives.*", "zero.memory.*", "pipeline.bubble-growth.*", "trouble.missing-broadcast")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One look at the page: what the window shows, or one part of it."""

    path: Path
    language: str = "en"
    theme: str = "light"
    claim: str | None = None
    part: str | None = None  # the id of a section
    height: int = HEIGHT

    def address(self, report: Path) -> str:
        """Where the page shows it."""
        card = f"#claim-{self.claim}" if self.claim else ""
        return f"{report.resolve().as_uri()}?theme={self.theme}&lang={self.language}{card}"


PICTURES = (
    Picture(path=ROOT / "docs" / "report.png"),
    Picture(path=ROOT / "docs" / "report.fa.png", language="fa"),
    Picture(path=ROOT / "docs" / "figures.png", part="pictures"),
)


def main() -> int:
    """Read the command line, draw, and return the exit status."""
    parser = argparse.ArgumentParser(description="Take pictures of a report.html.")
    parser.add_argument("report", type=Path, nargs="?", help="without one, what the pictures show is run first")
    parser.add_argument("picture", type=Path, nargs="?", help="draw this one alone, as the options say")
    parser.add_argument("--dark", action="store_true", help="in the dark theme")
    parser.add_argument("--language", choices=["en", "fa"], default="en")
    parser.add_argument("--claim", help="open the evidence card of this claim")
    parser.add_argument("--height", type=int, default=HEIGHT)
    asked = parser.parse_args()
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        print(f"no browser to draw with: none of {', '.join(NAMES)} is on the PATH", file=sys.stderr)
        return 1
    theme = "dark" if asked.dark else "light"
    pictures = PICTURES
    if asked.picture:
        how = Picture(path=asked.picture, language=asked.language, theme=theme, claim=asked.claim, height=asked.height)
        pictures = (how,)
    report: Path = asked.report or run()
    if not report.is_file():
        print(f"there is no report at {report}; make one with: pytest -n 4", file=sys.stderr)
        return 1
    try:
        draw(browser, report, pictures)
    except Error as error:
        print(f"{browser} could not draw {report}: {error}", file=sys.stderr)
        return 1
    for picture in pictures:
        print(f"{picture.path} is drawn")
    return 0


def run() -> Path:
    """Run what the pictures show; where the report lies. Its broken implementation makes pytest end with 1."""
    chosen = [f"--impl={impl}" for impl in IMPLS] + [f"--claim={claim}" for claim in CLAIMS]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "4", *chosen, f"--report={FOLDER}"]
    subprocess.run(command, cwd=ROOT, check=False)
    return ROOT / FOLDER / "report.html"


def draw(browser: str, report: Path, pictures: tuple[Picture, ...]) -> None:
    """Open the page for each picture and save what it shows as PNG, at twice the resolution."""
    with sync_playwright() as playwright:
        # The page is our own and has no network: the sandbox, which root cannot have, is not missed.
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for picture in pictures:
            size = {"width": WIDTH, "height": picture.height}
            page = chromium.new_page(viewport=size, device_scale_factor=2, reduced_motion="reduce")
            page.goto(picture.address(report))
            page.wait_for_function(DRAWN)
            if picture.claim:
                page.locator(f"[id='claim-{picture.claim}'] .card").wait_for()
            if picture.part:
                page.evaluate("document.querySelector('.top').hidden = true")  # it would lie across the picture
                page.locator(f"#{picture.part}").screenshot(path=picture.path)
            else:
                page.screenshot(path=picture.path)
            page.close()
        chromium.close()


if __name__ == "__main__":
    sys.exit(main())
