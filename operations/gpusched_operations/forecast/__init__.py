"""Forecasts: when jobs start and end, what they cost, by rollouts of a policy from a state."""

from gpusched_operations.forecast.draws import ArrivalModel, Draws
from gpusched_operations.forecast.forecast import Forecast, ForecastSettings, forecast
from gpusched_operations.forecast.rollout import Outcomes, RollOuts

__all__ = ["ArrivalModel", "Draws", "Forecast", "ForecastSettings", "Outcomes", "RollOuts", "forecast"]
