"""The problems of the CEC 2006 competition on constrained optimization, as functions of a point
that return the objective, the inequalities (at most 0) and the equalities (0).

J. J. Liang et al., "Problem definitions and evaluation criteria for the CEC 2006 special session on
constrained real-parameter optimization", 2006. g20, which has no known feasible point, and g22, of
which next to nobody finds one, are left out. Optima are those of equalities with a tolerance of
1e-4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import cos, exp, log, sin

Vector = Any
Parts = tuple[float, list[float], list[float]]
# The tolerance of equalities.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Definition:
    """A problem: its bounds, its optimal value and its function."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    optimum: float
    function: Callable[[Vector], Parts]

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        """The objective, and the constraints, each at most 0 where it is met."""
        with np.errstate(all="ignore"):
            value, below, equal = self.function(np.asarray(x, dtype=float))
        bands = [side * by - TOLERANCE for by in equal for side in (1.0, -1.0)]
        return float(value), np.array([*below, *bands], dtype=float)


def g01(x: Vector) -> Parts:
    f = 5 * x[:4].sum() - 5 * (x[:4] ** 2).sum() - x[4:].sum()
    g = [
        2 * x[0] + 2 * x[1] + x[9] + x[10] - 10,
        2 * x[0] + 2 * x[2] + x[9] + x[11] - 10,
        2 * x[1] + 2 * x[2] + x[10] + x[11] - 10,
        -8 * x[0] + x[9],
        -8 * x[1] + x[10],
        -8 * x[2] + x[11],
        -2 * x[3] - x[4] + x[9],
        -2 * x[5] - x[6] + x[10],
        -2 * x[7] - x[8] + x[11],
    ]
    return f, g, []


def g02(x: Vector) -> Parts:
    c = cos(x) ** 2
    weighted = max((np.arange(1, 21) * x**2).sum(), 1e-300)
    f = -abs(((c**2).sum() - 2 * c.prod()) / np.sqrt(weighted))
    return f, [0.75 - x.prod(), x.sum() - 150], []


def g03(x: Vector) -> Parts:
    return -(np.sqrt(10) ** 10) * x.prod(), [], [(x**2).sum() - 1]


def g04(x: Vector) -> Parts:
    f = 5.3578547 * x[2] ** 2 + 0.8356891 * x[0] * x[4] + 37.293239 * x[0] - 40792.141
    u = 85.334407 + 0.0056858 * x[1] * x[4] + 0.0006262 * x[0] * x[3] - 0.0022053 * x[2] * x[4]
    v = 80.51249 + 0.0071317 * x[1] * x[4] + 0.0029955 * x[0] * x[1] + 0.0021813 * x[2] ** 2
    w = 9.300961 + 0.0047026 * x[2] * x[4] + 0.0012547 * x[0] * x[2] + 0.0019085 * x[2] * x[3]
    return f, [u - 92, -u, v - 110, 90 - v, w - 25, 20 - w], []


def g05(x: Vector) -> Parts:
    f = 3 * x[0] + 1e-6 * x[0] ** 3 + 2 * x[1] + 2e-6 / 3 * x[1] ** 3
    h = [
        1000 * (sin(-x[2] - 0.25) + sin(-x[3] - 0.25)) + 894.8 - x[0],
        1000 * (sin(x[2] - 0.25) + sin(x[2] - x[3] - 0.25)) + 894.8 - x[1],
        1000 * (sin(x[3] - 0.25) + sin(x[3] - x[2] - 0.25)) + 1294.8,
    ]
    return f, [x[2] - x[3] - 0.55, x[3] - x[2] - 0.55], h


def g06(x: Vector) -> Parts:
    f = (x[0] - 10) ** 3 + (x[1] - 20) ** 3
    g = [
        100 - (x[0] - 5) ** 2 - (x[1] - 5) ** 2,
        (x[0] - 6) ** 2 + (x[1] - 5) ** 2 - 82.81,
    ]
    return f, g, []


def g07(x: Vector) -> Parts:
    f = x[0] ** 2 + x[1] ** 2 + x[0] * x[1] - 14 * x[0] - 16 * x[1] + (x[2] - 10) ** 2
    f += 4 * (x[3] - 5) ** 2 + (x[4] - 3) ** 2 + 2 * (x[5] - 1) ** 2 + 5 * x[6] ** 2
    f += 7 * (x[7] - 11) ** 2 + 2 * (x[8] - 10) ** 2 + (x[9] - 7) ** 2 + 45
    g = [
        -105 + 4 * x[0] + 5 * x[1] - 3 * x[6] + 9 * x[7],
        10 * x[0] - 8 * x[1] - 17 * x[6] + 2 * x[7],
        -8 * x[0] + 2 * x[1] + 5 * x[8] - 2 * x[9] - 12,
        3 * (x[0] - 2) ** 2 + 4 * (x[1] - 3) ** 2 + 2 * x[2] ** 2 - 7 * x[3] - 120,
        5 * x[0] ** 2 + 8 * x[1] + (x[2] - 6) ** 2 - 2 * x[3] - 40,
        x[0] ** 2 + 2 * (x[1] - 2) ** 2 - 2 * x[0] * x[1] + 14 * x[4] - 6 * x[5],
        0.5 * (x[0] - 8) ** 2 + 2 * (x[1] - 4) ** 2 + 3 * x[4] ** 2 - x[5] - 30,
        -3 * x[0] + 6 * x[1] + 12 * (x[8] - 8) ** 2 - 7 * x[9],
    ]
    return f, g, []


def g08(x: Vector) -> Parts:
    below = max(x[0] ** 3 * (x[0] + x[1]), 1e-300)
    f = -(sin(2 * np.pi * x[0]) ** 3) * sin(2 * np.pi * x[1]) / below
    return f, [x[0] ** 2 - x[1] + 1, 1 - x[0] + (x[1] - 4) ** 2], []


def g09(x: Vector) -> Parts:
    f = (x[0] - 10) ** 2 + 5 * (x[1] - 12) ** 2 + x[2] ** 4 + 3 * (x[3] - 11) ** 2
    f += 10 * x[4] ** 6 + 7 * x[5] ** 2 + x[6] ** 4 - 4 * x[5] * x[6] - 10 * x[5] - 8 * x[6]
    g = [
        -127 + 2 * x[0] ** 2 + 3 * x[1] ** 4 + x[2] + 4 * x[3] ** 2 + 5 * x[4],
        -282 + 7 * x[0] + 3 * x[1] + 10 * x[2] ** 2 + x[3] - x[4],
        -196 + 23 * x[0] + x[1] ** 2 + 6 * x[5] ** 2 - 8 * x[6],
        4 * x[0] ** 2 + x[1] ** 2 - 3 * x[0] * x[1] + 2 * x[2] ** 2 + 5 * x[5] - 11 * x[6],
    ]
    return f, g, []


def g10(x: Vector) -> Parts:
    g = [
        -1 + 0.0025 * (x[3] + x[5]),
        -1 + 0.0025 * (x[4] + x[6] - x[3]),
        -1 + 0.01 * (x[7] - x[4]),
        -x[0] * x[5] + 833.33252 * x[3] + 100 * x[0] - 83333.333,
        -x[1] * x[6] + 1250 * x[4] + x[1] * x[3] - 1250 * x[3],
        -x[2] * x[7] + 1250000 + x[2] * x[4] - 2500 * x[4],
    ]
    return x[:3].sum(), g, []


def g11(x: Vector) -> Parts:
    return x[0] ** 2 + (x[1] - 1) ** 2, [], [x[1] - x[0] ** 2]


def g12(x: Vector) -> Parts:
    f = -(100 - ((x - 5) ** 2).sum()) / 100
    # The nearest of the 729 spheres.
    return f, [((x - np.clip(np.round(x), 1, 9)) ** 2).sum() - 0.0625], []


def g13(x: Vector) -> Parts:
    h = [(x**2).sum() - 10, x[1] * x[2] - 5 * x[3] * x[4], x[0] ** 3 + x[1] ** 3 + 1]
    return exp(x.prod()), [], h


def g14(x: Vector) -> Parts:
    c = [-6.089, -17.164, -34.054, -5.914, -24.721, -14.986, -24.1, -10.708, -26.662, -22.179]
    positive = np.maximum(x, 1e-300)
    f = (x * (np.array(c) + log(positive / positive.sum()))).sum()
    h = [
        x[0] + 2 * x[1] + 2 * x[2] + x[5] + x[9] - 2,
        x[3] + 2 * x[4] + x[5] + x[6] - 1,
        x[2] + x[6] + x[7] + 2 * x[8] + x[9] - 1,
    ]
    return f, [], h


def g15(x: Vector) -> Parts:
    f = 1000 - x[0] ** 2 - 2 * x[1] ** 2 - x[2] ** 2 - x[0] * x[1] - x[0] * x[2]
    return f, [], [(x**2).sum() - 25, 8 * x[0] + 14 * x[1] + 7 * x[2] - 56]


def g16(x: Vector) -> Parts:
    a, b, c, d, e = x
    y1 = b + c + 41.6
    y2 = 12.5 / (0.024 * d - 4.62) + 12
    y3 = (0.0003535 * a**2 + 0.5311 * a + 0.08705 * y2 * a) / (0.052 * a + 78 + 0.002377 * y2 * a)
    y4 = 19 * y3
    c4 = 0.04782 * (a - y3) + 0.1956 * (a - y3) ** 2 / b + 0.6376 * y4 + 1.594 * y3
    y5 = (a - y3 - y4) * (0.95 - c4 / (100 * b))
    y6 = a - y5 - y4 - y3
    c8 = (y5 + y4) * 0.995
    y7, y8 = c8 / y1, c8 / 3798
    y9 = 96.82 / (y7 - 0.0663 * y7 / y8 - 0.3153) + 0.321 * y1
    y10 = 1.29 * y5 + 1.258 * y4 + 2.29 * y3 + 1.71 * y6
    y11 = 1.71 * a - 0.452 * y4 + 0.58 * y3
    c12 = 0.995 * y10 + 1998
    y12 = 12.3 / 752.3 * a + 1.75 * y2 * 0.995 * a / c12
    y13 = c12 - 1.75 * y2
    y14 = 3623 + 64.4 * b + 58.4 * c + 146312 / (y9 + e)
    y15 = y13 / (0.995 * y10 + 60.8 * b + 48 * d - 0.1121 * y14 - 5095)
    y16 = 148000 - 331000 * y15 + 40 * y13 - 61 * y15 * y13
    y17 = 14130000 - 1328 * y10 - 531 * y11 + (2324 * y10 - 28740000 * y2) / c12
    c15, c16 = y13 / y15 - y13 / 0.52, 1.104 - 0.72 * y15
    f = 0.000117 * y14 + 0.1365 + 0.00002358 * y13 + 0.000001502 * y16 + 0.0321 * y12
    f += 0.004324 * y5 + 0.0001 * c15 / c16 + 37.48 * y2 / c12 - 0.0000005843 * y17
    g = [
        0.28 / 0.72 * y5 - y4,
        c - 1.5 * b,
        3496 * y2 / c12 - 21,
        110.6 + y1 - 62212 / (y9 + e),
    ]
    limits = [
        (y1, 213.1, 405.23),
        (y2, 17.505, 1053.6667),
        (y3, 11.275, 35.03),
        (y4, 214.228, 665.585),
        (y5, 7.458, 584.463),
        (y6, 0.961, 265.916),
        (y7, 1.612, 7.046),
        (y8, 0.146, 0.222),
        (y9, 107.99, 273.366),
        (y10, 922.693, 1286.105),
        (y11, 926.832, 1444.046),
        (y12, 18.766, 537.141),
        (y13, 1072.163, 3247.039),
        (y14, 8961.448, 26844.086),
        (y15, 0.063, 0.386),
        (y16, 71084.33, 140000.0),
        (y17, 2802713.0, 12146108.0),
    ]
    g += [by for y, low, high in limits for by in (low - y, y - high)]
    return f, g, []


def g17(x: Vector) -> Parts:
    def flow(trig: Any, sign: int, of: float) -> float:
        both = x[2] * x[3] * trig(1.48477 + sign * x[5])
        return float((both - 0.90798 * of**2 * trig(1.47588)) / 131.078)

    first, second = 300 - flow(cos, -1, x[2]), -flow(cos, 1, x[3])
    f = (30 if x[0] < 300 else 31) * first
    f += (28 if x[1] < 100 else 29 if x[1] < 200 else 30) * second
    h = [first - x[0], second - x[1], -flow(sin, 1, x[3]) - x[4], 200 - flow(sin, -1, x[2])]
    return f, [], h


def g18(x: Vector) -> Parts:
    f = -0.5 * (x[0] * x[3] - x[1] * x[2] + x[2] * x[8] - x[4] * x[8] + x[4] * x[7] - x[5] * x[6])
    g = [
        x[2] ** 2 + x[3] ** 2 - 1,
        x[8] ** 2 - 1,
        x[4] ** 2 + x[5] ** 2 - 1,
        x[0] ** 2 + (x[1] - x[8]) ** 2 - 1,
        (x[0] - x[4]) ** 2 + (x[1] - x[5]) ** 2 - 1,
        (x[0] - x[6]) ** 2 + (x[1] - x[7]) ** 2 - 1,
        (x[2] - x[4]) ** 2 + (x[3] - x[5]) ** 2 - 1,
        (x[2] - x[6]) ** 2 + (x[3] - x[7]) ** 2 - 1,
        x[6] ** 2 + (x[7] - x[8]) ** 2 - 1,
        x[1] * x[2] - x[0] * x[3],
        -x[2] * x[8],
        x[4] * x[8],
        x[5] * x[6] - x[4] * x[7],
    ]
    return f, g, []


G19_A = [
    [-16, 2, 0, 1, 0],
    [0, -2, 0, 0.4, 2],
    [-3.5, 0, 2, 0, 0],
    [0, -2, 0, -4, -1],
    [0, -9, -2, 1, -2.8],
    [2, 0, -4, 0, 0],
    [-1, -1, -1, -1, -1],
    [-1, -2, -3, -2, -1],
    [1, 2, 3, 4, 5],
    [1, 1, 1, 1, 1],
]
G19_B = [-40, -2, -0.25, -4, -4, -1, -40, -60, 5, 1]
G19_C = [
    [30, -20, -10, 32, -10],
    [-20, 39, -6, -31, 32],
    [-10, -6, 10, -6, -10],
    [32, -31, -6, 39, -20],
    [-10, 32, -10, -20, 30],
]
G19_D = [4, 8, 10, 6, 2]
G19_E = [-15, -27, -36, -18, -12]


def g19(x: Vector) -> Parts:
    first, last = x[:10], x[10:]
    c, d = np.array(G19_C), np.array(G19_D)
    f = last @ c @ last + 2 * (d * last**3).sum() - np.array(G19_B) @ first
    g = first @ np.array(G19_A) - 2 * last @ c - 3 * d * last**2 - np.array(G19_E)
    return f, g.tolist(), []


def g21(x: Vector) -> Parts:
    h = [
        -300 * x[2] + 7500 * (x[4] - x[5]) - 25 * x[3] * (x[4] - x[5]) + x[2] * x[3],
        100 * x[1] + 155.365 * x[3] + 2500 * x[6] - x[1] * x[3] - 25 * x[3] * x[6] - 15536.5,
        -x[4] + log(900 - x[3]),
        -x[5] + log(300 + x[3]),
        -x[6] + log(700 - 2 * x[3]),
    ]
    return x[0], [-x[0] + 35 * x[1] ** 0.6 + 35 * x[2] ** 0.6], h


def g23(x: Vector) -> Parts:
    f = -9 * x[4] - 15 * x[7] + 6 * x[0] + 16 * x[1] + 10 * (x[5] + x[6])
    g = [
        x[8] * x[2] + 0.02 * x[5] - 0.025 * x[4],
        x[8] * x[3] + 0.02 * x[6] - 0.015 * x[7],
    ]
    h = [
        x[0] + x[1] - x[2] - x[3],
        0.03 * x[0] + 0.01 * x[1] - x[8] * (x[2] + x[3]),
        x[2] + x[5] - x[4],
        x[3] + x[6] - x[7],
    ]
    return f, g, h


def g24(x: Vector) -> Parts:
    a, b = x
    g = [
        -2 * a**4 + 8 * a**3 - 8 * a**2 + b - 2,
        -4 * a**4 + 32 * a**3 - 88 * a**2 + 96 * a + b - 36,
    ]
    return -a - b, g, []


def _box(*axes: tuple[float, float, int]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    low = tuple(low for low, _, count in axes for _ in range(count))
    return low, tuple(high for _, high, count in axes for _ in range(count))


PROBLEMS = {
    1: Definition(*_box((0, 1, 9), (0, 100, 3), (0, 1, 1)), -15.0, g01),
    2: Definition(*_box((0, 10, 20)), -0.8036191042, g02),
    3: Definition(*_box((0, 1, 10)), -1.0005001000, g03),
    4: Definition(*_box((78, 102, 1), (33, 45, 1), (27, 45, 3)), -30665.5386717834, g04),
    5: Definition(*_box((0, 1200, 2), (-0.55, 0.55, 2)), 5126.4967140071, g05),
    6: Definition(*_box((13, 100, 1), (0, 100, 1)), -6961.8138755802, g06),
    7: Definition(*_box((-10, 10, 10)), 24.3062090681, g07),
    8: Definition(*_box((0, 10, 2)), -0.0958250415, g08),
    9: Definition(*_box((-10, 10, 7)), 680.6300573745, g09),
    10: Definition(*_box((100, 10000, 1), (1000, 10000, 2), (10, 1000, 5)), 7049.2480205286, g10),
    11: Definition(*_box((-1, 1, 2)), 0.7499000000, g11),
    12: Definition(*_box((0, 10, 3)), -1.0, g12),
    13: Definition(*_box((-2.3, 2.3, 2), (-3.2, 3.2, 3)), 0.0539415140, g13),
    14: Definition(*_box((0, 10, 10)), -47.7648884595, g14),
    15: Definition(*_box((0, 10, 3)), 961.7150222899, g15),
    16: Definition(
        (704.4148, 68.6, 0.0, 193.0, 25.0),
        (906.3855, 288.88, 134.75, 287.0966, 84.1988),
        -1.9051552586,
        g16,
    ),
    17: Definition(
        (0.0, 0.0, 340.0, 340.0, -1000.0, 0.0),
        (400.0, 1000.0, 420.0, 420.0, 1000.0, 0.5236),
        8853.5338748065,
        g17,
    ),
    18: Definition(*_box((-10, 10, 8), (0, 20, 1)), -0.8660254038, g18),
    19: Definition(*_box((0, 10, 15)), 32.6555929502, g19),
    21: Definition(
        (0.0, 0.0, 0.0, 100.0, 6.3, 5.9, 4.5),
        (1000.0, 40.0, 40.0, 300.0, 6.7, 6.4, 6.25),
        193.7245100700,
        g21,
    ),
    23: Definition(
        (0.0,) * 8 + (0.01,),
        (300.0, 300.0, 100.0, 200.0, 100.0, 300.0, 100.0, 200.0, 0.03),
        -400.0551000000,
        g23,
    ),
    24: Definition((0.0, 0.0), (3.0, 4.0), -5.5080132716, g24),
}
