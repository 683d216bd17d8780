"""What git says of this checkout; nothing where there is no git, or not the history asked for."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# written by the runs themselves, so that they do not make a tree another one
WRITTEN = ("tests/passed.txt", "tests/covered.txt")


@dataclass(frozen=True)
class History:
    """The git of a checkout.

    Args:
        root: The checkout's folder.
    """

    root: Path

    def head(self) -> str:
        """The commit that is checked out; empty where there is none."""
        return (self._git("rev-parse", "--verify", "--quiet", "HEAD") or "").strip()

    def is_clean(self) -> bool:
        """Whether the files are those of `head`, but for what runs write."""
        told = self._git("status", "--porcelain", "--", ".", *(f":!{path}" for path in WRITTEN))
        return told == ""

    def commits_since(self, commit: str) -> int | None:
        """How many commits `head` is ahead of another; None if that is not known here."""
        told = (
            self._git("rev-list", "--count", f"{commit}..HEAD") if self._is_known(commit) else None
        )
        return None if told is None else int(told)

    def changed_paths(self, commit: str) -> list[str] | None:
        """The files that differ from those of a commit, new ones included; None if the commit is
        not known here."""
        if not self._is_known(commit):
            return None
        changed = self._git("diff", "--name-only", "--no-renames", "-z", commit, "--")
        new = self._git("ls-files", "--others", "--exclude-standard", "-z")
        return sorted(
            {path for told in (changed, new) for path in (told or "").split("\0") if path}
        )

    def texts_at(self, commit: str, paths: list[str]) -> Mapping[str, str]:
        """The texts of files at a commit; those that it did not have are left out."""
        asked = "".join(f"{commit}:{path}\n" for path in paths).encode()
        done = subprocess.run(
            ["git", "-C", str(self.root), "cat-file", "--batch"], input=asked, capture_output=True
        )
        texts, rest = {}, done.stdout
        for path in paths:
            head, _, rest = rest.partition(b"\n")
            if not head.endswith(b" missing"):
                size = int(head.split()[-1])
                texts[path], rest = rest[:size].decode(errors="replace"), rest[size + 1 :]
        return texts

    def _is_known(self, commit: str) -> bool:
        return self._git("cat-file", "-e", f"{commit}^{{commit}}") is not None

    def _git(self, *words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(self.root), *words], capture_output=True, text=True
            )
        except OSError:
            return None
        return done.stdout if done.returncode == 0 else None
