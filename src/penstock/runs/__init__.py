"""Experiments: a replay, policies side by side, a calibrated world beside the run that it was learnt from."""
