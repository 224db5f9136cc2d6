"""Simulates one day of a walk-in clinic, and prints what it costs: wages, and the time that
patients wait.

    ./clinic.py SEED STAFF STAFF STAFF STAFF STAFF STAFF

The day has six shifts of two hours, each with its number of doctors. Patients come at random, most
of them in the late morning and the early evening; a consultation takes eight minutes on average.
Whoever is there when the clinic closes is still seen, in overtime. Another seed is another day.
"""

import heapq
import random
import sys

SHIFT = 120.0  # minutes
ARRIVALS = [0.15, 0.45, 0.30, 0.20, 0.50, 0.25]  # patients per minute, by shift
CONSULTATION = 8.0
WAGE, OVERTIME, WAITING = (
    1.2,
    2.4,
    0.6,
)  # per minute of a doctor, of a doctor in overtime, of a patient


def day(seed, staff):
    """The cost of the day, and how many patients wait at each minute."""
    draws = random.Random(seed)
    end, now, patients = SHIFT * len(ARRIVALS), 0.0, []
    while True:
        now += draws.expovariate(max(ARRIVALS))
        if now >= end:
            break
        if draws.random() < ARRIVALS[int(now // SHIFT)] / max(ARRIVALS):
            patients.append((now, draws.expovariate(1 / CONSULTATION)))
    cost = sum(WAGE * SHIFT * doctors for doctors in staff)
    busy = []  # when the doctors who see a patient are free again
    free_from, queue = 0.0, [0] * int(end)
    for arrival, takes in patients:
        at = max(arrival, free_from)
        while True:
            doctors = staff[min(int(at // SHIFT), len(staff) - 1)]
            while busy and busy[0] <= at:
                heapq.heappop(busy)
            if len(busy) < doctors:
                break
            # Until someone is free, or the next shift begins with more.
            change = (at // SHIFT + 1) * SHIFT
            at = min(busy[0], change) if change < end else busy[0]
        free_from = at  # first come, first served
        heapq.heappush(busy, at + takes)
        cost += WAITING * (at - arrival) + OVERTIME * max(0.0, at + takes - max(at, end))
        for minute in range(int(arrival), min(int(at), len(queue))):
            queue[minute] += 1
    return cost, queue


if __name__ == "__main__":
    print(f"{day(int(sys.argv[1]), [int(word) for word in sys.argv[2:]])[0]:.2f}")
