"""What can be done to senders over HTTP: to their receipts, their answers, their requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.chaos.posters import Line, Poster
from tests.chaos.schedule import Step

if TYPE_CHECKING:
    from tests.chaos.faults import World


def _some(world: World, share: float) -> list[Poster]:
    return [poster for poster in world.fleet.posters if world.rng.random() < share]


def _lines(world: World, share: float) -> list[Line]:
    return [line for poster in _some(world, share) for line in poster.lines.values()]


async def heal(poster: Poster) -> None:
    poster.desk.is_moody = False
    await poster.desk.up()


def _heal_later(world: World, poster: Poster, seconds: float) -> None:
    """Meanwhile other things happen."""

    async def later() -> None:
        await asyncio.sleep(seconds)
        await heal(poster)

    task = asyncio.create_task(later())
    world.later.add(task)
    task.add_done_callback(world.later.discard)


async def lose_receipts(world: World, step: Step) -> None:
    for poster in _some(world, step.share):
        poster.desk.is_moody = True
        _heal_later(world, poster, step.seconds)


async def kill_desks(world: World, step: Step) -> None:
    for poster in _some(world, step.share):
        poster.desk.down()
        world.history.events["hosts that take no receipts"] += 1
        _heal_later(world, poster, step.seconds)


async def lose_answers(world: World, step: Step) -> None:
    links = world.http.some(step.share)
    for link in links:
        link.cut_at_answer()
    world.history.events["HTTP connections cut before the answer"] += len(links)


async def send_twice(world: World, step: Step) -> None:
    for line in _lines(world, step.share):
        line.twice = step.count


async def send_out_of_order(world: World, step: Step) -> None:
    for line in _lines(world, step.share):
        line.box.swaps = step.count
