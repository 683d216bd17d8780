"""The shop's rows: the same ones each time, with NULLs where the tables allow them.

Every key finds its row where a foreign key says so. There are test orders, failed payments,
customers who never ordered, orders without items and months without sales, since the models filter
and join by these.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

Row = tuple[Any, ...]

_COUNTRIES: Final = [
    ("DE", "Germany", "EMEA", "EUR"),
    ("FR", "France", "EMEA", "EUR"),
    ("GB", "United Kingdom", "EMEA", "GBP"),
    ("US", "United States", "AMER", "USD"),
    ("CA", "Canada", "AMER", "CAD"),
    ("JP", "Japan", "APAC", "JPY"),
]
_CATEGORIES: Final = [
    (1, "Shoes", "Fashion"),
    (2, "Shirts", "Fashion"),
    (3, "Lamps", "Home"),
    (4, "Chairs", "Home"),
    (5, "Headphones", "Electronics"),
]
_CHANNELS: Final = ("paid_search", "social", "email", "affiliate")
_FIRST: Final = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", None)
_LAST: Final = ("Berg", "Cole", "Diaz", "Endo", "Frey", None)
_BEGIN: Final = datetime(2023, 10, 1)
_DAYS: Final = 500


def make(seed: int = 7) -> dict[str, list[Row]]:
    """The rows of each source table, in the order of its columns."""
    return _Shop(Random(seed)).tables()


class _Shop:
    def __init__(self, random: Random) -> None:
        self.r = random
        self.orders: list[Row] = []
        self.prices: dict[int, Decimal] = {}

    def tables(self) -> dict[str, list[Row]]:
        """Every table; those that others refer to come first."""
        customers, products = self._customers(150), self._products(45)
        self.orders = self._orders(700, len(customers))
        return {
            "countries": list(_COUNTRIES),
            "customers": customers,
            "categories": list(_CATEGORIES),
            "suppliers": [(n, f"Supplier {n}", self._country()) for n in range(1, 7)],
            "products": products,
            "coupons": self._coupons(),
            "orders": self.orders,
            "order_items": self._items(),
            "payments": self._payments(),
            "refunds": self._refunds(110),
            "shipments": self._shipments(),
            "web_sessions": self._sessions(1400, len(customers)),
            "ad_spend": self._ad_spend(),
            "tickets": self._tickets(260, len(customers)),
            "reviews": self._reviews(300, len(customers)),
        }

    def _moment(self, begin: datetime = _BEGIN, days: int = _DAYS) -> datetime:
        return begin + timedelta(seconds=self.r.randrange(days * 86_400))

    def _maybe(self, value: Any, often: float = 0.8) -> Any:
        return value if self.r.random() < often else None

    def _money(self, low: int, high: int) -> Decimal:
        return Decimal(self.r.randrange(low * 100, high * 100)) / 100

    def _country(self) -> str:
        return self.r.choices(_COUNTRIES, weights=(5, 3, 2, 4, 1, 1))[0][0]

    def _customers(self, count: int) -> list[Row]:
        return [
            (
                n,
                self.r.choice(_FIRST),
                self.r.choice(_LAST),
                f"Customer{n}@Example.com",
                self._country(),
                self._maybe(self.r.choice(_CHANNELS)),
                self.r.random() < 0.6,
                self._moment(),
                self._maybe(_BEGIN + timedelta(days=_DAYS), 0.05),
            )
            for n in range(1, count + 1)
        ]

    def _products(self, count: int) -> list[Row]:
        found: list[Row] = []
        for n in range(1, count + 1):
            price = self.prices[n] = self._money(5, 200)
            cost = self._maybe((price * Decimal("0.6")).quantize(Decimal("0.01")), 0.9)
            category = self.r.randrange(1, len(_CATEGORIES) + 1)
            supplier = self._maybe(self.r.randrange(1, 7), 0.85)
            active = self.r.random() < 0.9
            launched = self._moment(days=60)
            name = f"Product {n:02}"
            found.append(
                (n, f"SKU-{n:04}", name, category, supplier, price, cost, active, launched)
            )
        return found

    def _coupons(self) -> list[Row]:
        begin = _BEGIN.date()
        return [
            ("WELCOME", "percent", 10, begin, None),
            ("SPRING", "percent", 20, begin + timedelta(days=150), begin + timedelta(days=240)),
            ("FREESHIP", "shipping", None, begin, None),
            ("UNUSED", "percent", 50, begin, begin),
        ]

    def _orders(self, count: int, customers: int) -> list[Row]:
        statuses = ("Completed", "shipped", "returned", "cancelled", "placed", "test")
        return [
            (
                n,
                # some order often, and the last ones never do
                min(self.r.randrange(1, customers), self.r.randrange(1, customers)),
                self.r.choices(statuses, weights=(50, 15, 8, 8, 10, 4))[0],
                self.r.choice(("web", "app", "store")),
                self._maybe(self.r.choice(("WELCOME", "SPRING", "FREESHIP")), 0.25),
                self.r.choice((Decimal("0.00"), Decimal("4.90"), Decimal("9.90"))),
                self._maybe(self.r.random() < 0.2, 0.7),
                self._moment(),
            )
            for n in range(1, count + 1)
        ]

    def _items(self) -> list[Row]:
        found: list[Row] = []
        for order in self.orders:
            for line in range(1, self.r.choices((1, 2, 3, 4, 5), weights=(1, 8, 6, 3, 1))[0]):
                product = self.r.randrange(1, len(self.prices))  # the last one never sells
                quantity = self.r.randrange(1, 5)
                discount = self._maybe(self._money(0, 60), 0.45)
                found.append((order[0], line, product, quantity, self.prices[product], discount))
        return found

    def _payments(self) -> list[Row]:
        methods = ("card", "paypal", "gift_card", "bank_transfer")
        found: list[Row] = []
        for order in self.orders:
            for _ in range(self.r.choices((0, 1, 2), weights=(1, 8, 2))[0]):
                status = self.r.choices(("settled", "pending", "failed"), weights=(8, 1, 1))[0]
                cents = self.r.randrange(500, 60_000)
                paid = self._maybe(order[7] + timedelta(hours=3), 0.9)
                row = (len(found) + 1, order[0], self.r.choice(methods), status, cents, paid)
                found.append(row)
        return found

    def _refunds(self, count: int) -> list[Row]:
        reasons = ("damaged", "too late", "changed mind")
        found: list[Row] = []
        for n in range(1, count + 1):
            order = self.r.choice(self.orders)
            day = order[7] + timedelta(days=self.r.randrange(1, 40))
            reason = self._maybe(self.r.choice(reasons))
            found.append((n, order[0], reason, self._money(1, 80), day))
        return found

    def _shipments(self) -> list[Row]:
        found: list[Row] = []
        for order in self.orders:
            if self.r.random() < 0.85:
                shipped = self._maybe(order[7] + timedelta(days=self.r.randrange(5)), 0.92)
                days = self.r.randrange(1, 9)
                delivered = None if shipped is None else self._maybe(shipped + timedelta(days), 0.9)
                promised = order[7].date() + timedelta(days=6)
                carrier = self.r.choice(("DHL", "UPS", "Hermes"))
                found.append((len(found) + 1, order[0], carrier, promised, shipped, delivered))
        return found

    def _sessions(self, count: int, customers: int) -> list[Row]:
        return [
            (
                f"s{n:06}",
                self._maybe(self.r.randrange(1, customers + 1), 0.5),
                self._maybe(self.r.choice(_CHANNELS)),
                self.r.choice(("mobile", "desktop", "tablet")),
                self._maybe(self.r.choice(("/", "/sale", "/new"))),
                self.r.randrange(1, 20),
                self._maybe(self.r.choice(self.orders)[0], 0.2),
                self._moment(_BEGIN + timedelta(days=150), 180),
            )
            for n in range(1, count + 1)
        ]

    def _ad_spend(self) -> list[Row]:
        found: list[Row] = []
        for day in range(150, 330, 2):
            spent: date = _BEGIN.date() + timedelta(days=day)
            for channel in _CHANNELS[:2]:
                for campaign in ("always on", "brand"):
                    clicks = self.r.randrange(0, 200)
                    seen = clicks * 40 + self.r.randrange(500)
                    found.append((spent, channel, campaign, seen, clicks, self._money(10, 300)))
        return found

    def _tickets(self, count: int, customers: int) -> list[Row]:
        found: list[Row] = []
        for n in range(1, count + 1):
            opened = self._moment()
            topic = self._maybe(self.r.choice(("delivery", "payment", "product")))
            priority = self.r.choice(("low", "normal", "high", "urgent"))
            closed = self._maybe(opened + timedelta(hours=self.r.randrange(1, 200)))
            score = None if closed is None else self._maybe(self.r.randrange(1, 6), 0.6)
            order = self._maybe(self.r.choice(self.orders)[0], 0.6)
            customer = self.r.randrange(1, customers + 1)
            found.append((n, customer, order, topic, priority, score, opened, closed))
        return found

    def _reviews(self, count: int, customers: int) -> list[Row]:
        return [
            (
                n,
                self.r.randrange(1, len(self.prices) - 3),
                self.r.randrange(1, customers + 1),
                self.r.choices((1, 2, 3, 4, 5), weights=(1, 1, 2, 4, 5))[0],
                self._maybe("fine"),
                self._moment(),
            )
            for n in range(1, count + 1)
        ]
