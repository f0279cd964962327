#!/usr/bin/env python3
"""Searches the `tuned` preset of an engine: random search over a small grid of its settings, on scenes that no report shows.

    python3 baselines/tune.py ENGINE [SAMPLES] [SEED]

Scenes: a stack of seven cubes of ratio 2.5 with a start gap of 0.4 mm, a chain of six links with 120:1, a pile of 6^3 with
the ball 0.4 m off, a pendulum of four links. A setting counts if no scene takes more than BUDGET times the time of the
engine's defaults. Score: mean over the scenes of log10(error); errors are the largest settled penetration (1 m when the
stack falls), the largest joint gap, the pile's mean penetration at the end, and the pendulum's relative energy error. The
best is printed as a preset; copy it to presets/ENGINE.json. Deterministic but for the measured times at the budget's edge.
"""
import json
import math
import os
import random
import subprocess
import sys
import tempfile

BUDGET = 8.0
SCENES = ["stack:ratio=2.5,count=7,gap=0.0004", "chain:n=6,ratio=120", "pile:n=6,dy=0.4", "pendulum:links=4"]
COMMON = {"substeps": [1, 2, 4, 8]}
BULLET = dict(COMMON, iterations=[5, 10, 20, 50, 100], erp=[0.1, 0.2, 0.4, 0.8], contact_erp=[0.05, 0.1, 0.2, 0.4],
              split_impulse_threshold=[-0.04, -0.005, -0.0001], warm_start=[0.85, 1])
GRIDS = {
    "bullet-native": BULLET,
    "bullet": BULLET,
    "ode": dict(COMMON, iterations=[5, 10, 20, 50], erp=[0.1, 0.2, 0.4, 0.8], over_relaxation=[1, 1.3], cfm=[1e-10, 1e-6]),
    "mujoco": dict(COMMON, cone=["elliptic"], integrator=["implicitfast", "discrete", "rk4"], refsafe=[0, 1],
                   contact_steps=[0.1, 0.5, 2], joint_steps=[0.1, 0.5, 2], contact_dmin=[0.9, 0.99], contact_dmax=[0.9999],
                   joint_dmin=[0.9, 0.99], joint_dmax=[0.9999], impratio=[1, 10]),
    "physx": dict(COMMON, solver=["pgs", "tgs"], position_iterations=[4, 8, 16, 32, 64], velocity_iterations=[0, 1, 2, 4],
                  friction_every_iteration=[0, 1]),
    "rapier": dict(COMMON, iterations=[4, 8, 16, 32], pgs=[1, 2, 4], contact_frequency=[30, 120, 1000, 10000],
                   static_frequency=[60, 240, 1000, 10000], allowed_error=[0.005, 0.001], warm_start_joints=[0, 1]),
}


def measure(engine, settings):
    """Error and median step time of each scene."""
    text = ",".join("%s=%s" % pair for pair in settings.items())
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "all.json")
        command = ["build/pabd-bench", "run", *SCENES, "--engine", engine + (":" + text if text else ""), "--out", folder,
                   "--json", out, "--quiet", "--time-limit", "60", "--seed", "1"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(out) as file:
            records = json.load(file)
    result = {}
    for record in records:
        name, metrics = record["case"]["id"], {k: v["value"] for k, v in record["metrics"].items()}
        error = None
        if record["status"] == "ok":
            if name == "stack":
                fell = (metrics["survive_s"] or 0) < 9.99
                error = 1.0 if fell else metrics.get("penetration_settled_max")
            else:
                error = metrics[{"chain": "joint_pos_err_max", "pile": "penetration_mean_end",
                                 "pendulum": "energy_rel_err_end"}[name]]
        if error is None or not math.isfinite(error):
            error = 100.0
        result[name] = (min(max(abs(error), 1e-6), 100.0), metrics.get("step_ms_p50") or 0.0)
    return result


def main():
    engine = sys.argv[1]
    samples = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    grid, base = GRIDS[engine], measure(engine, {})
    score = lambda r: sum(math.log10(e) for e, _ in r.values()) / len(r)  # noqa: E731
    best = (score(base), {}, base)
    print("defaults", round(best[0], 3), base, flush=True)
    tried = set()
    for k in range(samples):
        if k < samples // 2 or not best[1]:
            settings = {key: random.choice(values) for key, values in grid.items()}
        else:  # second half: change two settings of the best
            settings = dict(best[1])
            for key in random.sample(sorted(grid), 2):
                settings[key] = random.choice(grid[key])
        key = tuple(settings.items())
        if key in tried:
            continue
        tried.add(key)
        result = measure(engine, settings)
        dear = max(t / base[name][1] for name, (_, t) in result.items() if base[name][1] > 0)
        if dear <= BUDGET and score(result) < best[0]:
            best = (score(result), settings, result)
            print(k, round(best[0], 3), "%.1f times" % dear, settings, result, flush=True)
    print(json.dumps({"tuned": {"source": "baselines/tune.py, %d samples: at most %g times the defaults' step time on its "
                                          "four scenes" % (samples, BUDGET), "settings": best[1]}}, indent=2))


if __name__ == "__main__":
    main()
