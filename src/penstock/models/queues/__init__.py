"""Response times of single queues, along paths, in micro-batches and under a CPU quota (paper 4 §V-A)."""

from penstock.models.markov.phase_type import PhaseType, fitted_service
from penstock.models.queues.baselines import MeanResponse, kingman, m_g_1, m_ph_1
from penstock.models.queues.batch_server import BatchResponse, BatchServer, micro_batches
from penstock.models.queues.demand import Demand, learn_demand
from penstock.models.queues.departing import departures
from penstock.models.queues.paths import PathResponse, Station, network
from penstock.models.queues.qbd import Response, map_ph_1
from penstock.models.queues.quota import Quota, under_quota

__all__ = [
    "BatchResponse", "BatchServer", "Demand", "MeanResponse", "PathResponse", "PhaseType", "Quota", "Response",
    "Station", "departures", "fitted_service", "kingman", "learn_demand", "m_g_1", "m_ph_1", "map_ph_1",
    "micro_batches", "network", "under_quota",
]  # fmt: skip
