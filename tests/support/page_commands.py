"""The commands of `gpusched` that README.md, the pages and CONTRIBUTING.md show."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`gpusched(?= [a-z-])([^`]+)`")
LABEL = re.compile(r"\w+=")  # `gpusched app=...` is the comment of a job, no command
PLACEHOLDER = re.compile(r"…|\b[A-Z]{1,9}\b(?![-:.\d])")


@dataclass(frozen=True, order=True)
class PageCommand:
    """A command of a page.

    Attributes:
        text: Its words after `gpusched`, as the page has them, without a redirection.
        page: The page, from the root of the repository.
        inline: Whether it stands in a sentence, where arguments may be left out or be capitals, such as DIR.
        into: The file that gets its output, if the page says so.
    """

    text: str
    page: str
    inline: bool
    into: str | None = None

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)


def page_commands() -> list[PageCommand]:
    """Return each command of the pages, in their order; a command that a page repeats stands once."""
    found: dict[PageCommand, None] = {}
    for page in PAGES:
        text, name = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))
        for language, block in BLOCK.findall(text):
            if language in ("console", "sh", "bash"):
                found.update(dict.fromkeys(_commands(block, name)))
        for words in INLINE.findall(BLOCK.sub("", text)):
            if not LABEL.match(words.strip()):
                found[PageCommand(" ".join(words.split()), name, inline=True)] = None
    return list(found)


def _commands(block: str, page: str) -> list[PageCommand]:
    lines = re.sub(r"\\\n\s*", "", block).splitlines()
    shown = [re.fullmatch(r"(?:\$ )?(?:\.venv/bin/)?gpusched (.*?)(?: +# .*)?", line) for line in lines]
    parts = [match[1].partition(" > ") for match in shown if match]
    return [PageCommand(command.strip(), page, inline=False, into=into.strip() or None) for command, _, into in parts]


SLURM = "needs a Slurm cluster: tests/slurm, tests/operations/live"
TRAINS = "trains: tests/examples/test_train_commands.py, tests/experiments/cli/test_train.py"
SERVES = "starts a server: tests/operations/service"
DATA = "needs data that is no part of the project: tests/reproductions"
MINUTES = "minutes: its tests run it smaller"
NOT_RUN = {
    r"warm-up|serve --compile-only": "compiles: tests/operations/cli/test_warm_up.py",
    r"(train|study) (?!--help).*": TRAINS,
    r"tune .*": "minutes: tests/experiments/cli/test_tune.py",
    r"(reproduce|leaderboard|certify|worlds) .*": MINUTES,
    r"conform .*": DATA,
    r"serve .*": SERVES,
    r"slurm (?!snapshot --out now --(squeue|kueue)).*": SLURM,
    r"progress 12": "runs in a job: tests/operations/live/test_progress.py",
    r"forecast now.*": "needs a snapshot: tests/operations/live/test_snapshot.py",
    r".* yesterday .*": "needs a journal: tests/operations/live/test_watch_report.py",
    r"compare --track day-ahead --policies .*agent:runs/day-ahead/agent": "needs an agent of prices",
    r"compare --seeds s": "s stands for a number",
}
"""Patterns of complete commands that the tests of pages parse and do not run, with the reason."""
SLOW = (
    r".*sb3:.*|.*--gif.*|.*--track (failures|philly|colocation|mixture|pairs).*|.*--pictures.*",
    r"compare --policies edf,sts,gavel:cost|.*guaranteed-and-opportunistic.*|compare --prices .*|limits .*",
    r"slurm snapshot --out now --squeue .*|forecast request.json .*|tracks|.*two-prices.*|.*day-ahead.*|compare",
)
"""Patterns of commands that take longer than a test of the core lane may."""
BEFORE = {
    "compare --track mine.toml --policies edf,sts-x --seeds 20000-20019": "tracks busy > mine.toml",
    "audit run": "simulate --policy edf --scenario tiny --out run",
    "audit results/run": "simulate --policy sts --scenario tiny --seed 3 --out results/run",
}
"""What a page supposes to have been run."""
GALLERY = "docs/results/gallery.md"
"""The page with one command for each track, which differ by the track alone: they are parsed and not run."""


def reason_not_run(command: PageCommand) -> str | None:
    """Return why a command is not run; None for one that is."""
    return next((why for pattern, why in NOT_RUN.items() if re.fullmatch(pattern, command.text)), None)


def is_complete(command: PageCommand) -> bool:
    """Return whether a command can be run as it stands: one of a block, or one in a sentence without capitals."""
    bare = len(command.words) == 1 and command.text not in ("tracks", "policies", "scenarios", "compare")
    cut = re.search(r"( --\w+|^slurm \w+|^conform \w+)$", command.text)
    return not command.inline or not (bare or cut or PLACEHOLDER.search(command.text))


def quick_commands(*, slow: bool) -> list[PageCommand]:
    """Return the commands that the core lane runs, or the slow one, each text once."""
    texts: dict[str, PageCommand] = {}
    for command in page_commands():
        if command.page != GALLERY and is_complete(command) and not reason_not_run(command):
            texts.setdefault(command.text, command)
    patterns = "|".join(SLOW)
    return [each for each in texts.values() if bool(re.fullmatch(patterns, each.text)) == slow]
