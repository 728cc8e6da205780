# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # When does cheating pay?
#
# A source knows the truth `x` of 400 records and reports `x_hat`. It is paid by the Gram
# determinant score of its report against observations `y`. What could it gain by lying? Gains are
# differences of log scores.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

import jgram
from jgram.attack import ascend_policy, ascend_reports, flip_greedily, perturb_observations
from jgram.stratified import unbiased_score

key, rng = jax.random.key(0), np.random.default_rng(0)
centres = 1.5 * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
x = np.arange(400) % 4
y = centres[x] + rng.normal(size=(400, 2))
kernel = jgram.RBF(2.0)
honest = jgram.plugin_log_score(x, y, kernel)
print(f"log score of the truth: {honest:.2f}")

# %% [markdown]
# ## It does not see y
#
# With its labels alone it can choose a policy `T`: which label to report for which. The score is
# multiplied by `det(T)^2`, which is at most 1: ascent from 32 random policies never beats the
# truth. It finds the blind spot: every permutation of the labels scores the same.
#
# If it also knows how observations arise it can imagine some and fit its reports to them. The real
# ones are other draws: the lie gains on what was imagined and loses on what is real.

# %%
policies = ascend_policy(key, np.full(4, 0.25, np.float32), restarts=32)
reached = {tuple(row) for row in policies.permutations.tolist()}
permuted = jgram.plugin_log_score(policies.permutations[0][x], y, kernel) - honest
print(f"best gain of a policy: {policies.gains.max():.1g}; permutations reached: {len(reached)}")
print(f"gain of one of them on the data: {permuted:+.4f}")

imagined = centres[x] + rng.normal(size=(400, 2))
lie = ascend_reports(key, x, imagined, kernel, budget=0.05)
real = jgram.plugin_log_score(lie.reports, y, kernel) - honest
print(f"5% changed to fit imagined observations: gain on those {lie.gain:+.2f}, real {real:+.2f}")

# %% [markdown]
# ## It sees y
#
# Now reports depend on the observations given the truth, and the theory's assumption is gone. Five
# percent of well chosen lies beat the truth, by gradient ascent on soft reports as by one best flip
# after another. The lies are the records that look like another class: the source reports what `y`
# shows instead of what is true. This gains at any number of records, and the more, the less `y`
# tells about the truth.

# %%
soft = ascend_reports(key, x, y, kernel, budget=0.05)
greedy = flip_greedily(x, y, kernel)
print(f"5% changed: gradient {soft.gain:+.2f}, greedy {greedy.path[19] - honest:+.2f}")
print(f"free to change all: greedy {greedy.gain:+.2f}, with {greedy.changed:.0%} changed")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(np.arange(1, len(greedy.path) + 1) / 400, greedy.path - honest)
left.set(xlabel="flips per record", ylabel="gain in log score")
told = np.asarray(greedy.reports)
right.scatter(*y.T, c=[f"C{label}" for label in told], s=12)
right.scatter(*y[told != x].T, facecolors="none", edgecolors="black", s=45, linewidths=0.8)
right.set(title="reports by colour, lies circled", xticks=[], yticks=[])
plt.show()

# %% [markdown]
# ## What helps
#
# Another bandwidth or estimator looks at the same observations and is fooled alike. Observations
# that the source has not seen are the defence: hold some out, or reveal them after the reports.

# %%
second_look = centres[x] + rng.normal(size=(400, 2))
for defence, observed, width in (
    ("none", y, 2.0),
    ("another bandwidth", y, 1.2),
    ("second observation, held out", second_look, 2.0),
):
    scores = [
        jgram.plugin_log_score(labels, observed, jgram.RBF(width)) for labels in (soft.reports, x)
    ]
    print(f"{defence:30s} gain {scores[0] - scores[1]:+.2f}")
stratified = [unbiased_score(labels, y, kernel) for labels in (soft.reports, x)]
print(f"{'stratified, all draws':30s} gain {np.log(stratified[0] / stratified[1]):+.2f}")

# %% [markdown]
# ## The sensor lies instead
#
# Whoever controls the observations needs no false report: shifts of a twentieth of a standard
# deviation, in the right directions, are worth as much as a few percent of lies.

# %%
for radius in (0.05, 0.2):
    moved = perturb_observations(x, y, kernel, radius=radius, norm="l2")
    print(f"each observation moved by at most {radius}: gain {moved.gain:+.2f}")
