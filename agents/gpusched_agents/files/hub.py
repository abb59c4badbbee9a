"""An agent's folder in a public repository of the Hugging Face hub (extra `hub`): its two files, never code."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError, MissingExtraError

HUB = "hf://"
MOST_BYTES = 64 * 2**20
"""Most bytes of a file that is downloaded."""
_WORD = r"\w[\w.-]*"
NAME = re.compile(rf"{HUB}({_WORD}/{_WORD})(?:@(refs/pr/\d+|{_WORD}))?(?:/({_WORD}(?:/{_WORD})*))?", re.ASCII)
PLACE = f"{HUB}OWNER/REPO[@REVISION][/SUBFOLDER]"


@cache
def hub_folder(text: str, files: tuple[str, ...]) -> Path:
    """Download these files of a folder, if they are not in the local cache, and return the folder in that cache.

    A branch is read once in a process. The files are of one commit. No token is sent, so the repository must be public.

    Args:
        text: `hf://OWNER/REPO[@REVISION][/SUBFOLDER]`; the revision is a branch (default `main`), a tag or a commit.

    Raises:
        InputError: The text has another form, there is no such repository, revision or file, a file is larger than
            `MOST_BYTES`, or the hub cannot be reached and the files are not in the cache.
    """
    allowed = f"{PLACE}, a public folder with {' and '.join(files)}, each of at most {MOST_BYTES >> 20} MiB"
    named = NAME.fullmatch(text)
    if named is None:
        raise InputError("agent", text, allowed)
    try:
        hub = import_module("huggingface_hub")
    except ModuleNotFoundError as error:
        raise MissingExtraError("huggingface_hub", "hub", f"agents of {HUB}") from error
    repository, revision, folder = named[1], named[2] or "main", named[3]
    places = []
    commit = revision
    for file in files:
        try:
            place, commit = _download(hub, file, repo_id=repository, revision=commit, subfolder=folder, token=False)
        except (hub.errors.HTTPError, OSError, RuntimeError, ValueError) as error:
            where = f"repository {repository}, revision {revision}, {f'{folder}/' if folder else ''}{file}"
            raise InputError("agent", text, f"{allowed} ({where}: {_reason(hub.errors, error)})") from error
        places.append(place)
    return places[0].parent


def _download(hub: Any, file: str, **where: Any) -> tuple[Path, str]:
    found = hub.hf_hub_download(filename=file, dry_run=True, **where)
    if found.file_size is None or found.file_size > MOST_BYTES:
        raise OSError(f"{found.file_size or 'an unknown number of'} bytes")
    path = Path(hub.hf_hub_download(filename=file, **{**where, "revision": found.commit_hash}))
    if path.stat().st_size > MOST_BYTES:
        raise OSError(f"{path.stat().st_size} bytes")
    return path, found.commit_hash


def _reason(errors: Any, error: Exception) -> str:
    if isinstance(error, errors.LocalEntryNotFoundError | errors.OfflineModeIsEnabled):
        return "the hub cannot be reached, and the file is not in the local cache"
    if isinstance(error, errors.RepositoryNotFoundError):
        return "there is no such public repository"
    if isinstance(error, errors.RevisionNotFoundError):
        return "there is no such revision"
    if isinstance(error, errors.EntryNotFoundError):
        return "there is no such file"
    return (str(error).splitlines() or [type(error).__name__])[0]
