"""Who asks, where a server's users are others than its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asker:
    """Who runs a query or a statement.

    Args:
        name: His name; None for the user of the Spark application itself, empty where nobody can
            tell.
        vouched: Somebody has authenticated the name. In a Thrift server without authentication and
            in a Connect server it is what the client says.
    """

    name: str | None = None
    vouched: bool = True

    def believed(self, trusts_names: bool) -> Asker:
        """The same, where the server's configuration says that its clients' names are right."""
        return Asker(self.name) if trusts_names and self.name else self

    def principal(self, own: str) -> str:
        """The name that grants are looked up by; `own` is that of the application's user."""
        return own if self.name is None else self.name


OWN_USER = Asker()
