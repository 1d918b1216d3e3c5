"""Response times of single queues, along paths, in micro-batches and under a CPU quota (paper 4 §V-A)."""

from penstock.models.markov.phase_type import PhaseType, fitted_service
from penstock.models.queues.baselines import MeanResponse, kingman, m_g_1, m_ph_1
from penstock.models.queues.map_ph_1 import Response, map_ph_1

__all__ = ["MeanResponse", "PhaseType", "Response", "fitted_service", "kingman", "m_g_1", "m_ph_1", "map_ph_1"]
