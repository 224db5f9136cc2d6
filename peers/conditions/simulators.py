"""Two stochastic simulators whose mean cost is to be minimized, vectorized over replications.

A value is one replication, and the true value of a point the mean of many with the same random
numbers for all points. Discrete time and these sizes are our choice; the models are textbook ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peers.problems import Vector

REPLICATIONS = 400
# The seed of the replications that judge a recommended point; runs have others.
JUDGE = 10**6


@dataclass(frozen=True)
class Queue:
    """A service desk, open for eight hours: the number of servers in each hour and the queue length
    above which a call is refused are integers.

    Arrivals are Poisson with a rate that changes by the hour; a service lasts three slots of four
    minutes on average; customers who wait leave with 8 % per slot. Costs: servers by the hour,
    waiting, customers who left or were refused. An instance has other rates.
    """

    instance: int
    hours = 8
    slots = 15
    integers = 9

    @property
    def dim(self) -> int:
        return self.integers

    @property
    def low(self) -> Vector:
        return np.array([1.0] * self.hours + [0.0])

    @property
    def high(self) -> Vector:
        return np.array([30.0] * self.hours + [60.0])

    def costs(self, x: Vector, seed: int, replications: int) -> Vector:
        rates = np.random.default_rng([1, self.instance]).uniform(1.0, 6.0, self.hours)
        random = np.random.default_rng([2, seed])
        total = self.slots * self.hours
        arrivals = random.poisson(np.repeat(rates, self.slots), (replications, total))
        ends, leaves = random.random((2, replications, total))
        limit = round(float(x[-1]))
        present = np.zeros(replications)  # in service or waiting
        cost = np.full(replications, 10.0 * float(np.round(x[:-1]).sum()))
        for slot in range(total):
            servers = round(float(x[slot // self.slots]))
            space = servers + limit - present
            taken = np.clip(arrivals[:, slot], 0, np.maximum(space, 0))
            cost += 5.0 * (arrivals[:, slot] - taken)
            present += taken
            # The mean number of ends, rounded up or down at random.
            present -= np.floor(np.minimum(present, servers) / 3 + ends[:, slot])
            waiting = np.maximum(present - servers, 0)
            left = np.minimum(np.floor(0.08 * waiting + leaves[:, slot]), waiting)
            present -= left
            cost += 5.0 * left + 0.8 * (waiting - left)
            present = np.maximum(present, 0)
        return cost


@dataclass(frozen=True)
class Inventory:
    """An (s, S) policy for six items over 120 days: for each item the level at which it is ordered
    and the amount above it up to which it is, all real.

    Demand is gamma-distributed and comes with the same shock for all items; deliveries take three
    days, and the items of a day's order share its fixed cost. Costs: orders, stock, and shortages,
    which are delivered later. An instance has other items.
    """

    instance: int
    items = 6
    integers = 0

    @property
    def dim(self) -> int:
        return 2 * self.items

    @property
    def low(self) -> Vector:
        return np.array([0.0] * self.items + [1.0] * self.items)

    @property
    def high(self) -> Vector:
        return np.array([150.0] * self.items + [300.0] * self.items)

    def costs(self, x: Vector, seed: int, replications: int) -> Vector:
        about = np.random.default_rng([3, self.instance])
        means = about.uniform(2, 20, self.items)
        holding = about.uniform(0.02, 0.2, self.items)
        shortage = holding * about.uniform(5, 30, self.items)
        random = np.random.default_rng([4, seed])
        days, lead = 120, 3
        shape = (replications, days, self.items)
        shocks = random.gamma(4.0, 0.25, (replications, days, 1))
        demand = random.gamma(1.0, 1.0, shape) * means * shocks
        level, amount = x[: self.items], x[self.items :]
        stock = np.tile(level + amount, (replications, 1))
        on_order = np.zeros((lead, replications, self.items))
        cost = np.zeros(replications)
        for day in range(days):
            stock += on_order[day % lead]
            on_order[day % lead] = 0.0
            stock -= demand[:, day]
            position = stock + on_order.sum(axis=0)
            order = np.where(position < level, level + amount - position, 0.0)
            on_order[day % lead] = order  # arrives `lead` days later
            is_ordered = order > 0
            cost += 20.0 * is_ordered.any(axis=1) + 4.0 * is_ordered.sum(axis=1)
            cost += np.maximum(stock, 0) @ holding + np.maximum(-stock, 0) @ shortage
        return cost / days


Simulator = Queue | Inventory
SIMULATORS: dict[str, type[Queue] | type[Inventory]] = {"queue": Queue, "inventory": Inventory}


def true_value(simulator: Simulator, x: Vector) -> float:
    """The mean cost, with random numbers that are the same for all points."""
    return float(np.mean(simulator.costs(x, JUDGE, REPLICATIONS)))
