"""Simulates a throw of a trebuchet: reads its dimensions as JSON, prints the range and the pull on
the sling.

    echo '{"long": 5, "short": 1.2, "rod": 1.2, "sling": 4.5, "release": 40}' | ./trebuchet.py

The beam (long and short arm) turns about an axle 3 m above the ground. A counterweight of 500 kg
hangs from the short arm on a rod. The sling, at the tip of the long arm, holds a stone of 5 kg,
which slides in a trough until it lifts off, and is released when it flies at the given angle.
"""

import cmath
import json
import math
import sys

AXLE, WEIGHT, STONE, BEAM = 3.0, 500.0, 5.0, 15.0  # m, kg, kg, kg per metre of the beam
GRAVITY, STEP = -9.81j, 0.005
SLING_HOLDS = 1500.0  # N


def solve(rows):
    """A linear system by elimination with pivoting."""
    n = len(rows)
    for i in range(n):
        best = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for k in range(i + 1, n):
            by = rows[k][i] / rows[i][i]
            rows[k] = [a - by * b for a, b in zip(rows[k], rows[i])]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][k] * x[k] for k in range(i + 1, n))) / rows[i][i]
    return x


class Trebuchet:
    def __init__(self, long, short, rod, sling):
        self.long, self.short, self.rod, self.sling = long, short, rod, sling
        self.inertia = BEAM * (long**3 + short**3) / 3
        # At the start the tip is 0.3 m above the ground, and the sling lies in the trough.
        beam = math.pi + math.asin((AXLE - 0.3) / long)
        self.state = [beam, -math.pi / 2, -math.asin(0.3 / sling), 0.0, 0.0, 0.0]
        self.lies = True

    def places(self, state):
        """The tip, the stone, the end of the short arm, the counterweight: complex numbers."""
        beam, rod, sling = (cmath.rect(1, angle) for angle in state[:3])
        tip, end = AXLE * 1j + self.long * beam, AXLE * 1j - self.short * beam
        return tip, tip + self.sling * sling, end, end + self.rod * rod

    def velocity(self, state):
        """Of the stone."""
        beam, sling = cmath.rect(1, state[0]), cmath.rect(1, state[2])
        return 1j * (self.long * beam * state[3] + self.sling * sling * state[5])

    def accelerations(self, state):
        """Of the three angles, and of the stone, by Lagrange's equations.

        The push of the trough is a multiplier.
        """
        beam, rod, sling = (cmath.rect(1, angle) for angle in state[:3])
        w_beam, w_rod, w_sling = state[3:]
        zero = 0j
        # How the stone, the counterweight and the beam's middle move with the angles.
        stone = [1j * self.long * beam, zero, 1j * self.sling * sling]
        weight = [-1j * self.short * beam, 1j * self.rod * rod, zero]
        middle = [1j * (self.long - self.short) / 2 * beam, zero, zero]
        stone_by_speed = -self.long * beam * w_beam**2 - self.sling * sling * w_sling**2
        weight_by_speed = self.short * beam * w_beam**2 - self.rod * rod * w_rod**2
        mass_of_beam = BEAM * (self.long + self.short)

        def dot(u, v):
            return u.real * v.real + u.imag * v.imag

        rows = []
        for i in range(3):
            row = [
                STONE * dot(stone[i], stone[k]) + WEIGHT * dot(weight[i], weight[k])
                for k in range(3)
            ]
            row[i] += self.inertia if i == 0 else 0.0
            force = STONE * dot(stone[i], GRAVITY - stone_by_speed)
            force += WEIGHT * dot(weight[i], GRAVITY - weight_by_speed) + mass_of_beam * dot(
                middle[i], GRAVITY
            )
            rows.append([*row, force])
        if self.lies:  # its height does not change
            for i in range(3):
                rows[i].insert(3, -stone[i].imag)
            rows.append([*(one.imag for one in stone), 0.0, -stone_by_speed.imag])
        found = solve(rows)
        self.lies = self.lies and found[3] > 0
        return found[:3], sum(a * b for a, b in zip(stone, found)) + stone_by_speed

    def step(self):
        """Runge and Kutta's."""

        def slope(state):
            return [*state[3:], *self.accelerations(state)[0]]

        def moved(slope, by):
            return [a + by * b for a, b in zip(self.state, slope)]

        one = slope(self.state)
        two = slope(moved(one, STEP / 2))
        three = slope(moved(two, STEP / 2))
        four = slope(moved(three, STEP))
        self.state = [
            x + STEP / 6 * (a + 2 * b + 2 * c + d)
            for x, a, b, c, d in zip(self.state, one, two, three, four)
        ]


def throw(long, short, rod, sling, release, watch=None):
    """The range and the greatest pull on the sling; `watch` is told the places at each step."""
    machine = Trebuchet(long, short, rod, sling)
    pull = 0.0
    for _ in range(int(4 / STEP)):
        machine.step()
        places, velocity = machine.places(machine.state), machine.velocity(machine.state)
        pull = max(pull, STONE * abs(machine.accelerations(machine.state)[1] - GRAVITY))
        if watch:
            watch(places, velocity)
        stone = places[1]
        if stone.imag < -0.1:
            sys.exit("the stone hit the ground before it was released")
        angle = math.degrees(cmath.phase(velocity))
        # It comes over the machine, flying lower and lower.
        if not machine.lies and velocity.real > 0 and stone.imag > AXLE and angle <= release:
            rises = velocity.imag + math.sqrt(velocity.imag**2 + 2 * 9.81 * stone.imag)
            return stone.real + velocity.real * rises / 9.81, pull
    sys.exit("the stone was not released within 4 s")


if __name__ == "__main__":
    distance, pull = throw(**json.load(sys.stdin))
    print(json.dumps({"range": round(distance, 3), "pull_over": round(pull - SLING_HOLDS, 1)}))
