"""Forecasts: when jobs start and end, what they cost, by rollouts of a policy from a state."""

from gpusched_experiments.forecast.draws import ArrivalModel, Draws
from gpusched_experiments.forecast.forecast import Forecast, ForecastSettings, forecast
from gpusched_experiments.forecast.rollout import Outcomes, RollOuts

__all__ = ["ArrivalModel", "Draws", "Forecast", "ForecastSettings", "Outcomes", "RollOuts", "forecast"]
