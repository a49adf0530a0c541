from tests.adapters.kafka.test_tracer import *


def test_dbg(world):
    world.deliver(*([at(n) for n in range(first, first + 50)] for first in range(1, 1000, 50)))
    from confluent_kafka import TopicPartition

    offs = world.offsets()
    with world.index() as index:
        world.follow(index, lambda: index.find(ID, name(1000), 1))
        with world.tracer(index) as (tracer, source):
            for o in (1, 100, 250, 500, 750, 1000):
                p, real = offs[name(o)]
                for _ in range(2):
                    (s,) = source.offsets_for_times(
                        [TopicPartition(world.topic, p, (NOW + o) * 1000)], timeout=10
                    )
                    print(o, real, s)
