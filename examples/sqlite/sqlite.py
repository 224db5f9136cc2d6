# %% [markdown]
# # SQLite's settings
#
# A shop's database: orders come in, and a page with statistics is read often. SQLite has settings
# for its pages, its cache and its journal, and every index makes some queries faster and every
# insertion slower. Which of them suit this workload?

# %%
from __future__ import annotations

import os
import random
import sqlite3
import sys
import tempfile
import time
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import racecars
from racecars import Choice, Subset, when

SHORT = "--short" in sys.argv  # what the tests run
BUDGET = 20 if SHORT else 100
SEEDS = range(1, 2 if SHORT else 4)
ORDERS = 200 if SHORT else 1500

# %% [markdown]
# Settings that lose data when the machine fails are not in the space: the journal is always
# written, and `synchronous` is `FULL` unless the journal is a write-ahead log, where `NORMAL` is
# safe, too. The interval between checkpoints is there only with a write-ahead log.

# %%
INDEXES = {
    "customer": "orders(customer)",
    "product": "orders(product)",
    "day": "orders(day)",
    "product_day": "orders(product, day)",
    "customer_day": "orders(customer, day)",
    "state": "orders(state)",
    "price": "orders(price)",
}
space = {
    "page_size": Choice([512, 1024, 2048, 4096, 8192, 16384, 32768], ordered=True),
    "cache_kib": racecars.Integer(64, 16384, log=True),
    "journal": ["delete", "truncate", "persist", "wal"],
    "synchronous": ["full", "normal"],
    "checkpoint": when("journal = wal", racecars.Integer(10, 10000, log=True)),
    "temp_store": ["file", "memory"],
    "indexes": Subset(list(INDEXES), (0, 4)),
    "rows_at_once": Choice([10, 30, 100, 300, 1000], ordered=True),
}
SAFE = "journal = wal or synchronous = full"


def workload(p: dict[str, Any]) -> float:
    """Processor time of the workload in seconds, user and system: other programs run here, too."""
    with tempfile.TemporaryDirectory() as folder:
        draws = random.Random(1)
        rows = [
            (draws.randrange(500), draws.randrange(200), draws.randrange(60), draws.random() * 100)
            for _ in range(ORDERS)
        ]
        before = time.process_time()
        base = sqlite3.connect(os.path.join(folder, "shop.db"), isolation_level=None)
        base.execute(f"pragma page_size = {p['page_size']}")
        base.execute(f"pragma journal_mode = {p['journal']}")
        base.execute(f"pragma synchronous = {p['synchronous']}")
        base.execute(f"pragma cache_size = {-p['cache_kib']}")
        base.execute(f"pragma temp_store = {p['temp_store']}")
        if "checkpoint" in p:
            base.execute(f"pragma wal_autocheckpoint = {p['checkpoint']}")
        base.execute(
            "create table orders(id integer primary key, customer int, product int, day int,"
            " price real, state int default 0, note text)"
        )
        for name in p["indexes"]:
            base.execute(f"create index by_{name} on {INDEXES[name]}")
        for at in range(0, ORDERS, p["rows_at_once"]):
            base.execute("begin")
            for customer, product, day, price in rows[at : at + p["rows_at_once"]]:
                base.execute(
                    "insert into orders(customer, product, day, price, note) values (?,?,?,?,?)",
                    (customer, product, day, price, "please ring twice " * 3),
                )
            base.execute("commit")
        for i in range(ORDERS // 10):
            customer, product, day, _ = rows[i]
            find = "select count(*), sum(price) from orders where "
            base.execute(
                find + "product = ? and day between ? and ?", (product, day, day + 7)
            ).fetchall()
            base.execute(find + "customer = ?", (customer,)).fetchall()
            if i % 10 == 0:
                base.execute("update orders set state = 1 where customer = ?", (customer,))
                base.execute(
                    "select day, sum(price) from orders group by day order by 2"
                ).fetchall()
        base.close()
        return time.process_time() - before


# %% [markdown]
# The measured time is noisy. The search notices that, and evaluates again what looks good.

# %%
runs: dict[str, list[Any]] = {"racecars": [], "random search": []}
for seed in SEEDS:
    for name, method in zip(runs, ("auto", "random")):
        runs[name].append(
            racecars.minimize(
                workload, space=space, where=SAFE, maxfev=BUDGET, rng=seed, method=method
            )
        )
res = runs["racecars"][0]
print(f"{1000 * res.fun:.0f} ms, the mean of {res.best_evaluations} evaluations, with {res.params}")

# %% [markdown]
# The best of many noisy times is a lucky one, so all recommendations are measured again, in
# turns.

# %%
DEFAULTS = {
    "page_size": 4096,
    "cache_kib": 2000,
    "journal": "delete",
    "synchronous": "full",
    "temp_store": "file",
    "indexes": [],
    "rows_at_once": 10,
}
candidates = {
    "SQLite's defaults, no index": [DEFAULTS],
    "the same, with two indexes": [{**DEFAULTS, "indexes": ["customer", "product_day"]}],
    "and 100 rows at once": [
        {**DEFAULTS, "rows_at_once": 100, "indexes": ["customer", "product_day"]}
    ],
    **{name: [run.params for run in found] for name, found in runs.items()},
}
times: dict[str, list[list[float]]] = {
    name: [[] for _ in each] for name, each in candidates.items()
}
for _ in range(1 if SHORT else 15):
    for name, each in candidates.items():
        for measured, p in zip(times[name], each):
            measured.append(1000 * workload(p))
print("milliseconds of processor time, median of 15, for each seed:")
for name, each in times.items():
    print(f"{name:30}", " ".join(f"{np.median(measured):6.1f}" for measured in each))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
labels = [name for name in times for _ in times[name]]
values = [np.median(measured) for each in times.values() for measured in each]
colours = {"racecars": "tab:blue", "random search": "tab:orange"}
left.barh(range(len(values)), values, color=[colours.get(name, "0.6") for name in labels])
left.set_yticks(range(len(values)), labels, fontsize=8)
left.invert_yaxis()
left.set(xlabel="milliseconds")
trials = res.trials
counts = [len(p["indexes"]) for p in trials.params]
shift = np.random.default_rng(1).uniform(-0.2, 0.2, len(counts))
points = right.scatter(
    np.array(counts) + shift, 1000 * trials.value, c=trials.number, s=10, cmap="viridis"
)
right.set(xlabel="indexes", ylabel="milliseconds", xticks=range(5))
figure.colorbar(points, ax=right, label="evaluation")
figure.savefig("picture.svg")
