"""A bounded memory keeps what is asked for again, and no more than there is room for."""

from __future__ import annotations

from threading import Thread

from matcher.memory.bounded import Bounded


def test_what_came_once_makes_room_for_what_is_new_and_not_what_is_asked_for() -> None:
    memory = Bounded[int](80)
    for hot in range(-20, 0):
        memory.put(hot, hot)
        assert memory.get(hot) == hot
    for key in range(1000):
        memory.put(key, key)
        assert len(memory._entries) <= 80
        if key % 300 == 0:
            assert [memory.get(hot) for hot in range(-20, 0)] == list(range(-20, 0))
    assert [key for key in range(1000) if memory.get(key) is not None] == list(range(990, 1000))
    memory.forget()
    assert memory.get(-1) is None and memory.get(999) is None


def test_what_comes_again_soon_after_it_left_stays() -> None:
    memory = Bounded[int](80)
    for key in range(100):
        memory.put(key, key)
    assert memory.get(50) is None
    for key in (50, *range(100, 2000)):
        memory.put(key, key)
    assert memory.get(50) == 50 and memory.get(51) is None
    assert len(memory._gone) <= 8 * 80


def test_of_what_was_asked_for_once_the_oldest_makes_room() -> None:
    memory = Bounded[int](80)
    for key in range(1000):
        memory.put(key, key)
        memory.get(key)
        memory.get(0)
    kept = [key for key in range(1000) if memory.get(key) is not None]
    assert kept == [0, *range(921, 1000)]


def test_a_value_is_replaced_where_it_stands() -> None:
    memory = Bounded[str](80)
    memory.put(1, "old")
    memory.put(1, "new")
    assert memory.get(1) == "new" and memory.keep(1, lambda: "other") == "new"
    assert len(memory._new) == 1


def test_nothing_is_made_of_what_came_once_where_the_second_time_is_asked_for() -> None:
    memory, made = Bounded[int](80, admit="second time"), list[int]()

    def make(key: int) -> int:
        made.append(key)
        return key

    for key in range(1000):
        assert memory.keep(key, lambda key=key: make(key)) is None
    assert made == [] and len(memory._gone) == 8 * 80
    assert memory.keep(0, lambda: make(0)) is None, "that was too long ago"
    assert [memory.keep(999, lambda: make(999)) for _ in range(3)] == [999] * 3 and made == [999]
    for key in range(2000):
        memory.keep(key % 1000, lambda key=key: make(key % 1000))
        memory.keep(999, lambda: make(999))
    assert made.count(999) == 1 and len(memory._entries) <= 80


def test_many_threads_make_a_value_once() -> None:
    memory, made = Bounded[int](8), list[int]()

    def ask() -> None:
        for key in range(8):
            assert memory.keep(key, lambda key=key: made.append(key) or key) == key

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(made)) == list(range(8)) and len(memory._entries) <= 8
