"""Deploy the service of `phase serve` with Ray Serve: replicas on all nodes of a cluster behind one address.

    pip install "phase-rppg[serve]" "ray[serve]"
    PHASE_SERVE_TOKEN=… serve run deploy.ray_serve:app          # or `serve deploy` on a running cluster

Each replica measures one video at a time in a worker process. Requests that no replica can take wait in the
proxy, at most `max_queued_requests`; more get status 503. `benchmarks/ray_serve.py` runs this file.
"""

from __future__ import annotations

import os

from ray import serve

from phase_rppg.web.service import Service, ServiceLimits

LIMITS = ServiceLimits(mb=200, seconds=300, workers=1, queue=2)


@serve.deployment(
    num_replicas=int(os.environ.get("PHASE_SERVE_REPLICAS", "2")),
    ray_actor_options={"num_cpus": 1, "runtime_env": {"env_vars": {"OMP_NUM_THREADS": "1"}}},
    max_ongoing_requests=2,
    max_queued_requests=64,
)
@serve.ingress(lambda: Service(LIMITS, os.environ.get("PHASE_SERVE_TOKEN")).app())
class Measure:
    """The ASGI application of `phase serve` in each replica."""


app = Measure.bind()
