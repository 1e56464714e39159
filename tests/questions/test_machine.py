"""Monitors and bots go, people stay."""

from __future__ import annotations

import random

from goldset.questions.machine import Asked, machine_events

SECOND = 1_000_000
DAY = 86_400


def asked(
    key: str, seconds: float, session: str | None = None, user: str | None = None, agent: str | None = None
) -> Asked:
    return Asked(key, int(seconds * SECOND), int(seconds // DAY), session, user, agent)


def people(n: int, seed: int = 1) -> list[Asked]:
    """Questions of their own at times of their own over a week, ten browsers between them."""
    chance = random.Random(seed)
    return [
        asked(f"question {i}", chance.uniform(0, 7 * DAY), f"s{i // 3}", None, f"Mozilla/5.0 {i % 10}")
        for i in range(n)
    ]


def test_a_health_check_every_minute_goes_and_people_stay() -> None:
    # One beat in fifty is missed and each is up to a second late, as monitors are.
    chance = random.Random(2)
    monitor = [asked("atlanta", 60 * i + chance.uniform(0, 0.5), agent="probe/1") for i in range(10_000) if i % 50]
    found = machine_events([*monitor, *people(300)], cap=10**6)
    assert set(found) == set(range(len(monitor)))
    assert set(found.values()) == {"fixed_interval"}


def test_a_monitor_is_found_without_any_name_and_spares_a_person_with_the_same_text() -> None:
    monitor = [asked("atlanta", 300 * i) for i in range(200)]
    person = asked("atlanta", 300 * 100 + 137.0, session="p")
    found = machine_events([*monitor, person, asked("x", 1.5)], cap=10**6)
    assert 200 not in found
    assert 201 not in found
    # The two beats around the person have one irregular gap each, and a regular one on the other side.
    assert set(found) == set(range(200))


def test_people_who_share_a_popular_text_are_no_monitor() -> None:
    chance = random.Random(3)
    popular = [asked("vpn", chance.uniform(0, 7 * DAY), f"s{i}", None, "Mozilla/5.0") for i in range(400)]
    assert machine_events(popular, cap=50) == {}


def test_times_kept_by_the_day_prove_nothing() -> None:
    daily = [asked("vpn", DAY * i) for i in range(40)]
    assert machine_events(daily, cap=50) == {}


def test_a_rotation_of_four_terms_goes() -> None:
    chance = random.Random(4)
    times = sorted(chance.uniform(0, DAY) for _ in range(48))
    rotation = [asked("abcd"[i % 4], time, agent="probe") for i, time in enumerate(times)]
    found = machine_events([*rotation, *people(60)], cap=10**6)
    assert found == dict.fromkeys(range(48), "rotation")


def test_agents_that_say_what_they_are() -> None:
    names = [
        "Mozilla/5.0 (compatible; Googlebot/2.1)",
        "curl/8.5",
        "Uptime-Kuma",
        "CUBOT X19",
        "Mozilla/5.0 Firefox",
        None,
    ]
    events = [asked(f"q{i}", 1000 * i + 0.5, agent=name) for i, name in enumerate(names)]
    assert machine_events(events, cap=50) == dict.fromkeys(range(3), "declared")


def test_the_cap_is_on_one_session_in_one_day() -> None:
    chance = random.Random(5)
    busy = [asked(f"a{i}", chance.uniform(0, DAY), "s") for i in range(51)]
    calm = [asked(f"b{i}", chance.uniform(0, 2 * DAY), "t") for i in range(60)]
    by_user = [asked(f"c{i}", chance.uniform(0, DAY), None, "u") for i in range(51)]
    found = machine_events([*busy, *calm, *by_user], cap=50)
    assert found == dict.fromkeys([*range(51), *range(111, 162)], "over_cap")


def test_a_shared_browser_is_capped_only_where_it_repeats_itself() -> None:
    chance = random.Random(6)
    many = [asked(f"a{i}", chance.uniform(0, DAY), agent="Mozilla/5.0") for i in range(200)]
    assert machine_events(many, cap=50) == {}
    few = [asked(f"a{i % 7}", chance.uniform(0, DAY), agent="Mozilla/5.0") for i in range(200)]
    assert set(machine_events(few, cap=50).values()) == {"over_cap"}


def test_row_order_does_not_matter() -> None:
    chance = random.Random(7)
    events = [
        *people(200),
        *[asked("atlanta", 60 * i, agent="probe") for i in range(100)],
        *[asked("xyz"[i % 3], 500 * i + chance.uniform(0, 99), agent="r") for i in range(30)],
    ]
    found = {(events[i], rule) for i, rule in machine_events(events, cap=20).items()}
    chance.shuffle(events)
    assert {(events[i], rule) for i, rule in machine_events(events, cap=20).items()} == found
    assert {rule for _, rule in found} == {"fixed_interval", "rotation"}
