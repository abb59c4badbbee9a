"""Networks: their features, their masks, and invariances."""

from __future__ import annotations

import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

import numpy as np
import torch

from agent_networks import SCENARIOS, any_of, network, seen, small_instance
from gpusched_agents.network.policies import NETWORKS, NOT_NOW, PLACEABLE, SHARE
from gpusched_env.observation import CLUSTER_FEATURES, JOB_FEATURES, OPTION_FEATURES, QUEUE_FEATURES

FEATURES = {"job": JOB_FEATURES, "options": OPTION_FEATURES, "cluster": CLUSTER_FEATURES, "queue": QUEUE_FEATURES}
FROM_THE_DISTRIBUTION = {
    "expected epochs left / epochs left in the worst case",
    *(f"probability to survive {k + 0.5:g}/8 of the epochs left, given those done" for k in range(8)),
    "1 if it meets the due date in expectation",
    "c / (c + least worst-case energy cost), c = energy + tardiness cost at the expected epochs",
}
CLOSE = {"rtol": 0.0, "atol": 1e-5}


pytestmark = pytest.mark.usefixtures("one_thread")


def rows(observation: dict[str, torch.Tensor], part: str) -> torch.Tensor:
    """Return the rows of options or cluster, (B, rows, F)."""
    return observation[part].reshape(len(observation[part]), -1, len(FEATURES[part]))


def with_rows(observation: dict[str, torch.Tensor], **changed: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the observation with other rows of options or cluster."""
    return observation | {part: values.reshape(len(values), -1) for part, values in changed.items()}


def scored(made: torch.nn.Module, observation: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        return made(observation)


def set_network(types: list[int], like: torch.nn.Module, **named: bool) -> torch.nn.Module:
    """Make a set network for other configurations with the weights of `like`."""
    made = NETWORKS["set"](types, like.width, **named)
    made.load_state_dict(like.state_dict())
    return made


def test_the_features_that_come_from_the_distribution_are_still_called_so():
    assert {name for names in FEATURES.values() for name in names} >= FROM_THE_DISTRIBUTION


@pytest.mark.parametrize("name", [*SCENARIOS, "all kinds"])
def test_the_order_of_configurations_does_not_matter(name: str):
    instance = any_of(name)
    observation, _ = seen(instance)
    types = instance.type_of_configuration
    order = np.random.default_rng(0).permutation(len(types))
    made = network(instance)
    scores, context = scored(made, observation)
    shuffled = set_network(types[order].tolist(), made)
    mixed, same = scored(shuffled, with_rows(observation, options=rows(observation, "options")[:, order]))
    torch.testing.assert_close(mixed[:, 1:], scores[:, 1:][:, order], **CLOSE)
    torch.testing.assert_close(mixed[:, 0], scores[:, 0], **CLOSE)
    torch.testing.assert_close(same, context, **CLOSE)
    assert not torch.allclose(mixed, scores)


@pytest.mark.parametrize("name", [*SCENARIOS, "all kinds"])
def test_the_order_of_gpu_types_does_not_matter_if_configurations_know_theirs(name: str):
    instance = any_of(name)
    observation, _ = seen(instance)
    types = instance.type_of_configuration
    turned = np.roll(np.arange(types.max() + 1), 1)  # type v goes to row turned[v]
    cluster = torch.empty_like(rows(observation, "cluster"))
    cluster[:, turned] = rows(observation, "cluster")
    made = network(instance)
    moved = with_rows(observation, cluster=cluster)
    scores, context = scored(made, observation)
    same_scores, same_context = scored(set_network(turned[types].tolist(), made), moved)
    torch.testing.assert_close(same_scores, scores, **CLOSE)
    torch.testing.assert_close(same_context, context, **CLOSE)
    assert not torch.allclose(scored(made, moved)[1], context)


@pytest.mark.parametrize("kind", NETWORKS)
def test_rows_of_a_batch_do_not_see_each_other(kind: str):
    instance = small_instance()
    observation, _ = seen(instance)
    made = network(instance, kind)
    scores, context = scored(made, observation)
    for b in (0, 17, 59):
        alone = scored(made, {part: values[b : b + 1] for part, values in observation.items()})
        torch.testing.assert_close(alone[0], scores[b : b + 1], **CLOSE)
        torch.testing.assert_close(alone[1], context[b : b + 1], **CLOSE)


@pytest.mark.parametrize("place", [0, 4])
def test_configurations_that_the_job_may_not_use_change_nothing(place: int):
    """They are rows of zeros. Three more rows of a type without other configurations are inserted here."""
    instance = small_instance()
    observation, _ = seen(instance)
    made, types = network(instance), instance.type_of_configuration.tolist()
    options, cluster = rows(observation, "options"), rows(observation, "cluster")
    more = [options[:, :place], torch.zeros(len(options), 3, len(OPTION_FEATURES)), options[:, place:]]
    another = torch.cat([cluster, torch.rand(len(cluster), 1, len(CLUSTER_FEATURES))], dim=1)
    wider = set_network([*types[:place], 2, 2, 2, *types[place:]], made)
    scores, context = scored(made, observation)
    more_scores, same = scored(wider, with_rows(observation, options=torch.cat(more, dim=1), cluster=another))
    kept = [0, *(1 + c for c in range(len(types) + 3) if not place <= c < place + 3)]
    torch.testing.assert_close(more_scores[:, kept], scores, **CLOSE)
    torch.testing.assert_close(same, context, **CLOSE)
    assert (more_scores[:, 1 + place : 4 + place] == NOT_NOW).all()


def test_there_are_configurations_that_jobs_may_not_use():
    """The mean over configurations is one over those that the job may use; else the last test would fail here."""
    allowed = rows(seen(small_instance())[0], "options")[..., SHARE] > 0.0
    assert 0 < allowed.float().mean() < 1


def test_a_job_that_may_use_nothing_waits():
    instance = small_instance()
    observation, _ = seen(instance)
    scores, context = scored(network(instance), observation | {"options": torch.zeros_like(observation["options"])})
    assert torch.isfinite(context).all()
    assert (scores.argmax(dim=1) == 0).all()


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("name", [*SCENARIOS, "all kinds"])
def test_what_cannot_be_placed_is_masked_and_waiting_never_is(kind: str, name: str):
    instance = any_of(name)
    observation, allowed = seen(instance)
    masked = scored(network(instance, kind), observation)[0]
    free = scored(network(instance, kind, masks=False), observation)[0]
    np.testing.assert_array_equal(masked.numpy() != NOT_NOW, allowed)
    assert not allowed.all()
    np.testing.assert_array_equal(masked.numpy()[allowed], free.numpy()[allowed])
    assert (free.abs() < 100.0).all()


@pytest.mark.parametrize("distribution", [True, False])
@pytest.mark.parametrize("kind", NETWORKS)
def test_a_network_sees_every_feature_but_those_that_it_may_not_see(kind: str, distribution: bool):
    instance = small_instance()
    observation, _ = seen(instance, steps=20)
    made = network(instance, kind, hidden=32, distribution=distribution, masks=False)
    before = torch.cat(scored(made, observation), dim=1)
    for part, names in FEATURES.items():
        for f, name in enumerate(names):
            values = rows(observation, part).clone()
            values[..., f] = 0.9
            after = torch.cat(scored(made, with_rows(observation, **{part: values})), dim=1)
            hidden = not distribution and name in FROM_THE_DISTRIBUTION
            assert torch.equal(after, before) == hidden, (part, name)


@pytest.mark.parametrize("kind", NETWORKS)
def test_the_value_estimate_gets_the_context(kind: str):
    instance = small_instance()
    observation, _ = seen(instance)
    made = network(instance, kind)
    with torch.no_grad():
        assert torch.equal(made.summary(observation), made(observation)[1])


def weights(name: str, kind: str) -> int:
    return sum(tensor.numel() for tensor in network(any_of(name), kind).state_dict().values())


def test_a_set_network_has_as_many_weights_for_any_cluster():
    assert len({weights(name, "set") for name in SCENARIOS}) == 1
    assert len({weights(name, "mlp") for name in SCENARIOS}) == len(SCENARIOS)


def test_a_configuration_that_can_be_placed_shows_it():
    assert OPTION_FEATURES[PLACEABLE] == "1 if it can be placed now"
