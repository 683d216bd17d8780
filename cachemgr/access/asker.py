"""Who asks, where a server's users are others than its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asker:
    """Who runs a query or a statement.

    Args:
        name: His name; None for the user of the Spark application itself.
        vouched: Somebody has authenticated the name. In a Thrift server without authentication and
            in a Connect server it is what the client says.
    """

    name: str | None = None
    vouched: bool = True

    def trusted(self) -> Asker:
        """The same, where the server's configuration says that its clients' names are right."""
        return Asker(self.name)


OWN_USER = Asker()
