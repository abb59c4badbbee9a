"""A report in a real browser, without a network."""

import shutil
from dataclasses import replace

import pytest

from gpusched_operations.html_report import ReportData, folder_report, report_html
from report_pages import comparison, ran
from standings_page import standings_folder

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="NO CHROMIUM: report pages were not opened in a browser (scripts/install_chromium.sh)"
)
sync_api = pytest.importorskip("playwright.sync_api", reason="NO PLAYWRIGHT: report pages were not opened in a browser")

RANGE = "name => document.querySelector(`[data-figure=${name}] .chart`)._fullLayout.xaxis.range"
# Where a point of a figure is on the screen: its data's coordinates in pixels.
PLACE = """([name, x, y]) => {
    const plot = document.querySelector(`[data-figure=${name}] .chart`), at = plot.getBoundingClientRect();
    const { xaxis, yaxis } = plot._fullLayout;
    return [at.left + xaxis._offset + xaxis.d2p(x), at.top + yaxis._offset + yaxis.d2p(y)];
}"""
FIGURES = ["cost", "savings", "usage", "completion", "gantt"]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("html_report") / "report.html"
    path.write_text(report_html(comparison()), encoding="utf-8")
    return path.as_uri()


class Opened:
    """A page, what was asked for over the network, and what went wrong."""

    def __init__(self, browser, address, width=1200, **settings):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        self.context.set_default_timeout(300_000)
        self.asked, self.wrong = [], []
        self.context.route("**/*", self._only_files)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.wrong.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("requestfailed", lambda request: self.wrong.append(request.url[:80]))
        self.page.goto(address)
        self.until("() => [...document.querySelectorAll('.chart')].every((chart) => chart.querySelector('.main-svg'))")

    def until(self, condition, argument=None):
        """Wait for it; the driver's own way is one that the page's policy forbids (eval)."""
        for _ in range(12_000):
            if self.page.evaluate(condition, argument):
                return
            self.page.wait_for_timeout(25)
        pytest.fail(f"waited in vain for {condition}")

    def _only_files(self, route):
        if route.request.url.startswith(("file:", "data:", "blob:")):
            route.continue_()
        else:
            self.asked.append(route.request.url)
            route.abort()

    def place(self, name, x, y):
        self.page.locator(f"[data-figure={name}]").scroll_into_view_if_needed()
        return self.page.evaluate(PLACE, [name, x, y])

    def first_column(self):
        return self.page.locator("table").first.locator("tbody th").all_text_contents()


@pytest.fixture(scope="module")
def opened(browser, address):
    page = Opened(browser, address)
    yield page
    page.context.close()


def test_it_opens_and_draws_every_figure_without_an_error_or_a_request(opened):
    drawn = opened.page.locator("figure[data-figure]:has(.js-plotly-plot .main-svg)")
    assert drawn.evaluate_all("all => all.map((each) => each.dataset.figure)") == FIGURES
    assert (opened.asked, opened.wrong) == ([], [])


def test_dragging_over_a_gantt_chart_zooms_and_a_button_goes_back(opened):
    before = opened.page.evaluate(RANGE, "gantt")
    mouse = opened.page.mouse
    mouse.move(*opened.place("gantt", 0.5, 0.1))
    mouse.down()
    mouse.move(*opened.place("gantt", 1.0, 1.9), steps=4)
    mouse.up()
    opened.until(f"before => ({RANGE})('gantt')[1] < before", before[1])
    assert opened.page.evaluate(RANGE, "gantt") == pytest.approx([0.5, 1.0], abs=0.02)
    opened.page.locator("[data-figure=gantt] .modebar-btn[data-title='Reset axes']").click(force=True)
    opened.until(f"before => ({RANGE})('gantt')[1] >= before", before[1])


def test_pointing_at_a_bar_shows_its_job_and_beside_it_nothing(opened):
    tip = opened.page.locator(".tip")
    opened.page.mouse.move(*opened.place("gantt", 0.9, 1.7))
    assert tip.locator("div").all_text_contents() == [
        "job 1", "1 x V on node 0 (GPU 1)", "from 0 s to 1 h (1 h)", "due at 30 min, ended 30 min late",
    ]  # fmt: skip
    opened.page.mouse.move(*opened.place("gantt", 1.6, 1.7))  # the GPU is free then
    assert tip.is_hidden()


def test_pointing_at_a_line_shows_its_policy(opened):
    opened.page.mouse.move(*opened.place("completion", 7200.0, 1.0))
    hover = opened.page.locator("[data-figure=completion] .hoverlayer .hovertext")
    hover.first.wait_for()
    assert "100% of the jobs within 2 h" in hover.first.text_content()


def test_a_bar_with_room_carries_its_jobs_number(opened):
    texts = opened.page.locator("[data-figure=gantt] .textpoint text").all_text_contents()
    assert sorted(texts) == ["0", "1"]


def test_another_policy_can_be_chosen(opened):
    choice = opened.page.locator("[data-figure=savings] select")
    choice.select_option("edf")
    opened.until("() => document.querySelector('[data-figure=savings] .xtitle').textContent === 'saved against edf'")
    assert opened.page.locator("[data-figure=savings] .ytick").first.text_content().startswith("sept")


def test_the_legend_of_a_gantt_chart_names_every_look_once(opened):
    legend = opened.page.locator("[data-figure=gantt] .legendtext").all_text_contents()
    assert legend == ["due date", "jobs", "after the due date", "late job"]


def test_a_figure_can_be_saved_and_not_sent_anywhere(opened):
    titles = opened.page.locator("[data-figure=cost] .modebar-btn").evaluate_all(
        "all => all.map((each) => each.dataset.title)"
    )
    assert titles == ["Download plot as a PNG", "Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"]
    with opened.page.expect_download() as saved:
        opened.page.locator("[data-figure=cost] .modebar-btn").first.click(force=True)
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")


def test_a_click_on_a_heading_sorts_the_table_and_the_next_one_the_other_way_round(opened):
    assert opened.first_column() == ["edf", "fifo", "sept"]
    head = opened.page.locator("thead th", has_text="total")
    head.locator("button").click()
    assert opened.first_column() == ["edf", "sept", "fifo"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert opened.first_column() == ["fifo", "sept", "edf"]


def test_nothing_is_wider_than_a_wide_window_or_a_telephone(browser, address, opened):
    width = "document.documentElement.scrollWidth"
    assert opened.page.evaluate(width) == 1200
    narrow = Opened(browser, address, width=400)
    assert narrow.page.evaluate(width) == 400
    assert narrow.wrong == []
    narrow.context.close()


@pytest.fixture
def dark(browser, address):
    page = Opened(browser, address, color_scheme="dark")
    yield page
    page.context.close()


GROUND = "() => getComputedStyle(document.documentElement).backgroundColor"
INK = "() => document.querySelector('[data-figure=cost] .xtitle').style.fill"


def test_dark_and_light_are_the_readers_choice_and_on_paper_it_is_light(dark):
    ground, ink = dark.page.evaluate(GROUND), dark.page.evaluate(INK)
    dark.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    dark.until(f"() => ({INK})() === 'rgb(34, 38, 43)'")
    dark.page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    dark.until(f"ink => ({INK})() === ink", ink)
    dark.page.emulate_media(color_scheme="light")
    dark.until(f"() => ({INK})() === 'rgb(34, 38, 43)'")
    assert dark.page.evaluate(GROUND) == "rgb(255, 255, 255)" != ground


def test_names_with_html_in_them_are_shown_as_they_are(browser, tmp_path):
    evil = "<b>x</b><img src=x onerror='document.title=1'>"
    data = comparison()
    runs = tuple(replace(run, policy=evil) if run.policy == "edf" else run for run in data.runs)
    path = tmp_path / "evil.html"
    evil_data = ReportData(title="t", question="q", runs=runs, reference="fifo", recorded=(ran(),))
    path.write_text(report_html(evil_data), encoding="utf-8")
    page = Opened(browser, path.as_uri())
    assert page.page.title() == "t"
    assert evil in page.page.locator("[data-figure=cost] .yaxislayer-above").text_content()
    assert (page.asked, page.wrong) == ([], [])
    page.context.close()


def test_the_browser_itself_refuses_to_load_anything(browser, tmp_path):
    path = tmp_path / "loads.html"
    html = report_html(ReportData(title="t", question="q"))
    path.write_text(html.replace("</main>", '<img src="https://example.org/x.png"></main>'), encoding="utf-8")
    page = Opened(browser, path.as_uri())
    assert page.asked == []  # refused before it is asked for
    assert any("Content Security Policy" in text for text in page.wrong)
    page.context.close()


def test_a_leaderboard_draws_every_track_marks_the_best_and_sorts(browser, tmp_path):
    path = tmp_path / "board.html"
    path.write_text(report_html(folder_report(standings_folder(tmp_path / "board"))), encoding="utf-8")
    board = Opened(browser, path.as_uri())
    for track, first in (("track-0", "sts"), ("track-1", "edf")):
        names = board.page.locator(f"[data-figure={track}] .ytick").all_text_contents()
        assert (names[0], names.count("mine")) == (first, 1)
    board.page.mouse.move(*board.place("track-1", 1.095, 1))
    hover = board.page.locator("[data-figure=track-1] .hoverlayer .hovertext")
    hover.first.wait_for()
    assert "mine: rank 2" in hover.first.text_content()
    assert board.first_column() == ["sts", "mine", "edf", "fifo"]
    assert board.page.locator("tr.best th").first.text_content() == "sts"
    for expected in ("sts", "fifo"):
        board.page.locator("thead th", has_text="mean rank").locator("button").click()
        assert board.first_column()[0] == expected
    board.page.set_viewport_size({"width": 400, "height": 900})
    board.page.emulate_media(color_scheme="dark")
    board.until("() => document.documentElement.scrollWidth === 400")
    board.until("() => document.querySelector('[data-figure=track-0] .xtitle').style.fill === 'rgb(230, 233, 237)'")
    assert (board.asked, board.wrong) == ([], [])
    board.context.close()
