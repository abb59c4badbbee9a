"""Agents on disk: a saved agent is read back, and anything else is refused."""

import hashlib
import io
import json
import pickle
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from agent_folders import controls_description, description, network, spec, weights
from gpusched_agents.files import storage as shipping
from gpusched_agents.files.arrays_file import arrays_bytes as save
from gpusched_agents.files.arrays_file import read_arrays
from gpusched_agents.files.description import description_text, read_description
from gpusched_agents.files.storage import (
    AGENT_FILES,
    find_agent,
    load_agent,
    load_description,
    save_agent,
    shipped_agents,
)
from gpusched_agents.spec import FEATURES, NetworkConfig
from gpusched_env.errors import InputError
from refusals import ANY, refused


def packed(entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return the bytes of a ZIP file with these entries."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return made.getvalue()


def pickled() -> bytes:
    """Return the bytes of a file with an array that would be unpickled."""
    made = io.BytesIO()
    np.savez(made, a=np.array([{}], dtype=object))
    return made.getvalue()


def of_type(kind: str, shape: tuple[int, ...] = (1,)) -> bytes:
    """Return the bytes of a file of NumPy's with a header of this type and shape, and 12 bytes of data."""
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, {"descr": kind, "fortran_order": False, "shape": shape})
    return made.getvalue() + bytes(12)


def zeros() -> bytes:
    made = io.BytesIO()
    np.save(made, np.zeros(2, np.float32))
    return made.getvalue()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_agent(tmp_path / "agent", description(), weights())
    return tmp_path / "agent"


arrays_of_numbers = st.one_of(
    hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
    hnp.arrays(np.int64, hnp.array_shapes(min_dims=1, max_dims=2, max_side=4)),
)


def not_loaded(folder: Path | str, *error: Any) -> None:
    with refused(*error) as caught:
        load_agent(folder)
    assert str(caught.value).isprintable()


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return first.keys() == second.keys() and all(
        first[name].tobytes() == second[name].tobytes() and first[name].shape == second[name].shape for name in first
    )


def test_an_agent_comes_back_as_it_was_saved(tmp_path):
    made = description()
    written = save_agent(tmp_path / "deep" / "agent", made, weights())
    loaded, arrays = load_agent(str(tmp_path / "deep" / "agent"))
    assert loaded == written
    assert replace(loaded, weights_sha256="", weights_bytes=0) == made
    assert load_description(tmp_path / "deep" / "agent") == loaded
    assert same(arrays, weights())
    assert all(array.dtype == np.float32 and array.flags.owndata for array in arrays.values())
    assert sorted(path.name for path in (tmp_path / "deep" / "agent").iterdir()) == list(AGENT_FILES)


def test_a_description_survives_pickling_and_keeps_nothing_that_others_hold():
    config = {"network": network("control-set", 8)}
    made = description(config=config)
    config["network"]["hidden"] = 9
    assert made.config == {"network": network("control-set", 8)}
    assert made.network == NetworkConfig("control-set", 8)
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own


def test_the_same_agent_gives_the_same_bytes_and_arrays_that_are_not_contiguous_are_saved_by_their_values(
    tmp_path, saved
):
    views = weights() | {name: array.T.copy().T[::-1] for name, array in weights(1).items() if "weight" in name}
    assert not views["price.0.weight"].flags.c_contiguous
    save_agent(tmp_path / "a", description(), views)
    for name, array in load_agent(tmp_path / "a")[1].items():
        np.testing.assert_array_equal(array, views[name])
    again = dict(reversed(weights().items()))
    save_agent(tmp_path / "b", load_description(saved), again)
    for name in AGENT_FILES:
        assert (tmp_path / "b" / name).read_bytes() == (saved / name).read_bytes()


def test_a_former_agent_is_replaced_and_nothing_else_is(saved):
    save_agent(saved, description(name="second"), weights(1))
    assert load_description(saved).name == "second"
    (saved / "thesis.tex").write_text("precious")
    with refused("path", allowed="thesis.tex"):
        save_agent(saved, description(name="third"), weights(2))
    (saved / "thesis.tex").unlink()
    assert load_description(saved).name == "second"
    assert same(load_agent(saved)[1], weights(1))


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({}, ("weights", {})),
        ({"a": np.zeros(3)}, ("weights.a", "float64", "float32")),
        ({"a": np.zeros(3, ">f4")}, ("weights.a", ">f4")),
        ({"a": [0.0]}, ("weights.a", "list")),
        ({"a": np.array([1.0, np.nan], np.float32)}, ("weights.a", "NaN or inf")),
        ({"a": np.array([np.inf], np.float32)}, ("weights.a", "NaN or inf")),
        ({"../a": np.zeros(1, np.float32)}, ("weights", "../a")),
        ({"__metadata__": np.zeros(1, np.float32)}, ("weights", "__metadata__")),
    ],
)
def test_weights_that_are_not_finite_float32_are_not_saved(tmp_path, bad, error):
    with refused(*error):
        save_agent(tmp_path / "a", description(), bad)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "../up"}, "name"),
        ({"name": ""}, "name"),
        ({"algorithm": ""}, "algorithm"),
        ({"config": [1]}, "config"),
        ({"config": {"rate": float("nan")}}, "config"),
        ({"config": {"rate": {1, 2}}}, "config"),
        ({"config": {}}, "config.network"),
        ({"config": {"network": network("controls")}}, "config.network.kind"),
        ({"config": {"network": network("control-set") | {"hidden": 0}}}, "config.network.hidden"),
        ({"config": {"network": network("control-set") | {"hidden": 10**9}}}, "config.network.hidden"),
        ({"config": {"network": network("control-set") | {"depth": 3}}}, "config.network.depth"),
        ({"provenance": {}}, "provenance.made_utc"),
        ({"curve": [{"steps": 1, "seconds": 0.0}]}, "curve[0].total_eur"),
        ({"curve": [{"steps": 1.5, "seconds": 0.0, "total_eur": 1.0}]}, "curve[0].steps"),
        ({"curve": [{"steps": 1, "seconds": -1.0, "total_eur": 1.0}]}, "curve[0].seconds"),
        ({"curve": [{"steps": 1, "seconds": 1.0, "total_eur": "much"}]}, "curve[0].total_eur"),
        ({"curve": [{"steps": 1, "seconds": 1.0, "total_eur": 1.0, "loss": None}]}, "curve[0].loss"),
        ({"weights_sha256": "f00"}, "weights.sha256"),
        ({"weights_bytes": -1}, "weights.bytes"),
    ],
)
def test_a_description_with_a_value_that_cannot_be_is_refused(changes, field):
    with refused(field):
        description(**changes)


def test_what_is_not_a_folder_is_refused_also_an_archive_of_stable_baselines3(tmp_path):
    not_loaded(tmp_path / "nothing", "agent", str(tmp_path / "nothing"), "agent.json and weights.npz")
    not_loaded("x" * 5000, "agent", "x" * 5000)
    (tmp_path / "file").write_text("hello")
    not_loaded(tmp_path / "file", "agent", str(tmp_path / "file"), "not a file")
    for name in ("model.zip", "without_suffix"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("data", "{}")
        not_loaded(tmp_path / name, "agent", str(tmp_path / name), "sb3:FILE.zip")
    not_loaded(tmp_path / "model", "agent", str(tmp_path / "model.zip"), "sb3:FILE.zip")


@pytest.mark.parametrize("name", AGENT_FILES)
def test_a_missing_file_and_a_folder_in_its_place_are_refused(saved, name):
    (saved / name).unlink()
    not_loaded(saved, str(saved / name), "No such file or directory")
    (saved / name).mkdir()
    not_loaded(saved, str(saved / name))


def test_weights_of_another_size_or_agent_are_refused(saved, tmp_path):
    size = load_description(saved).weights_bytes
    with (saved / "weights.npz").open("ab") as file:
        file.write(b"\0")
    not_loaded(saved, f"{saved}/weights.npz", f"{size + 1} bytes", f"{size} bytes, as agent.json says")
    save_agent(tmp_path / "other", description(), weights(1))
    shutil.copy(tmp_path / "other" / "weights.npz", saved)
    assert (saved / "weights.npz").stat().st_size == load_description(saved).weights_bytes
    not_loaded(saved, f"{saved}/weights.npz", "other content")


def test_a_description_may_have_another_layout_but_no_other_value(saved):
    before = load_description(saved)
    (saved / "agent.json").write_text(json.dumps(json.loads((saved / "agent.json").read_text()), indent="\t"))
    assert load_description(saved) == before
    text = (saved / "agent.json").read_text()
    assert '"max_gpu_types": 3' in text
    (saved / "agent.json").write_text(text.replace('"max_gpu_types": 3', '"max_gpu_types": 4'))
    not_loaded(saved, f"{saved}/agent.json: content_sha256", ANY, "changed after it was written")
    (saved / "agent.json").write_bytes(b"\xff\xfe\x00")
    not_loaded(saved, f"{saved}/agent.json: file", ANY, "whole JSON")


def test_a_name_beyond_ascii_and_a_broken_one_are_kept():
    made = description(config={"network": network("control-set"), "note": "größer € \ud800"})
    assert read_description(description_text(replace(made, weights_sha256="0" * 64))).config == made.config


def _set(*keys: str | int, to: Any) -> Any:
    def edit(document: dict[str, Any]) -> None:
        place: Any = document
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return edit


EDITS = {
    "format": _set("format", to="gpusched instance"),
    "version": _set("version", to=2),
    "colour": _set("colour", to="red"),
    "name": _set("name", to=7),
    "algorithm": lambda d: d.pop("algorithm"),
    "spec": _set("spec", to=[]),
    "spec.network": _set("spec", "network", to="transformer"),
    "spec.kinds": _set("spec", "kinds", to=["odd"]),
    "spec.gpu_types": _set("spec", "gpu_types", to="V100"),
    "spec.configurations[1]": _set("spec", "configurations", 1, to=7),
    "spec.max_gpu_types": _set("spec", "max_gpu_types", to=10**400),
    "spec.job_features": lambda d: d["spec"].pop("job_features"),
    "spec.colour": _set("spec", "colour", to="red"),
    "weights": _set("weights", to=None),
    "weights.sha256": _set("weights", "sha256", to="zz"),
    "weights.bytes": _set("weights", "bytes", to="many"),
    "config": _set("config", to="none"),
    "config.network": lambda d: d["config"].pop("network"),
    "config.network.hidden": _set("config", "network", "hidden", to=10**400),
    "provenance.command": lambda d: d["provenance"].pop("command"),
    "curve": _set("curve", to={}),
    "curve[1].steps": _set("curve", 1, "steps", to=-1),
    "curve[1].seconds": lambda d: d["curve"][1].pop("seconds"),
    "curve[1].entropy": _set("curve", 1, "entropy", to=[]),
    "content_sha256": _set("content_sha256", to=3),
}


@pytest.mark.parametrize("field", EDITS)
def test_an_edited_description_is_one_error_that_names_the_field(saved, field):
    document = json.loads((saved / "agent.json").read_text())
    EDITS[field](document)
    (saved / "agent.json").write_text(json.dumps(document))
    not_loaded(saved, f"{saved / 'agent.json'}: {field}")


@pytest.mark.parametrize("kind", ["set", "mlp"])
def test_an_agent_that_decides_job_by_job_is_one_error_that_names_what_takes_its_place(saved, kind):
    document = json.loads((saved / "agent.json").read_text())
    document["spec"] |= {"network": kind, "milestones": 0}
    (saved / "agent.json").write_text(json.dumps(document))
    allowed = "control-set or controls; .*train_maskable_ppo.py, and named sb3:FILE.zip"
    not_loaded(saved, f"{saved}/agent.json: spec.network", kind, allowed)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[]", "format"),
        ("{}", "format"),
        ("null", "format"),
        ('{"format": "gpusched agent", "version": true}', "version"),
        ('{"format": "gpusched agent", "version": NaN}', "file"),
        ('{"format": "gpusched agent", "version": 1e999}', "file"),
        ("[" * 100_000, "file"),
        ("1" * 5000, "file"),
    ],
)
def test_json_that_is_no_agent_is_refused(saved, text, field):
    (saved / "agent.json").write_text(text)
    not_loaded(saved, f"{saved}/agent.json: {field}")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", ("weights",)),
        (b"\x80\x04K\x01.", ("weights",)),
        (save({"a": np.zeros(2)}), ("weights.a", "float64", "float32")),
        (save({"a": np.array([np.nan], np.float32)}), ("weights.a", "NaN or inf")),
        (save({"a": np.zeros(2, np.float32)}), ("weights.common.0.bias", None)),
        (save(weights(of=spec("controls"))), ("weights.common.0.bias", None)),
        (
            save(weights() | {"price.0.bias": np.zeros(5, np.float32)}),
            ("weights.price.0.bias", "shape (5,)", "shape (4,)"),
        ),
        (save(weights() | {"more": np.zeros(5, np.float32)}), ("weights.more", "...", "no such array")),
        (pickled(), ("weights", "Object arrays cannot be loaded when allow_pickle=False")),
        (packed({"a.npy": zeros()}, zipfile.ZIP_DEFLATED), ("weights", "an array is compressed")),
        (packed({"a.txt": b"text"}), ("weights", "a.txt is no array of numbers")),
        (packed({"a.npy": of_type("<U3")}), ("weights", "a is no array of numbers")),
        (packed({"a.npy": of_type("<f4", (10**14,))}), ("weights",)),
        (packed({"a.npy": of_type("<f4", (10**30,))}), ("weights",)),
        (packed({"a.npy": zeros()[:-1]}), ("weights",)),
        (packed({"a.npy": b"text"}), ("weights",)),
    ],
)
def test_weights_that_match_their_hash_are_still_checked(saved, data, error):
    (saved / "weights.npz").write_bytes(data)
    forged = replace(description(), weights_sha256=hashlib.sha256(data).hexdigest(), weights_bytes=len(data))
    (saved / "agent.json").write_text(description_text(forged))
    field, *rest = error
    not_loaded(saved, f"{saved}/weights.npz: {field}", *rest)


@given(st.dictionaries(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,9}", fullmatch=True), arrays_of_numbers, max_size=4))
@settings(max_examples=50, deadline=None)
def test_arrays_are_read_as_they_were_written_and_equal_ones_have_equal_bytes(arrays):
    data = save(arrays)
    assert data == save({name: np.array(arrays[name], order="F") for name in reversed(arrays)})
    again = read_arrays(data)
    assert again.keys() == arrays.keys()
    for name, array in arrays.items():
        assert again[name].dtype == array.dtype
        np.testing.assert_array_equal(again[name], array)


def test_weights_of_another_network_are_not_saved(tmp_path):
    with refused("weights.common.0.bias", None):
        save_agent(tmp_path / "a", description(), weights(of=spec("controls")))
    assert list(tmp_path.iterdir()) == []
    save_agent(tmp_path / "a", controls_description(), weights(of=spec("controls")))
    assert load_agent(tmp_path / "a")[0].spec.network == "controls"


DAMAGE = st.tuples(
    st.sampled_from(AGENT_FILES),
    st.sampled_from(("flip", "replace", "cut", "insert", "drop")),
    st.floats(0.0, 1.0, exclude_max=True),
    st.integers(1, 255),
)


def damaged(content: bytes, how: str, where: float, byte: int) -> bytes:
    at = int(where * len(content))
    return {
        "flip": lambda: content[:at] + bytes([content[at] ^ (1 << byte % 8)]) + content[at + 1 :],
        "replace": lambda: content[:at] + bytes([byte]) + content[at + 1 :],
        "cut": lambda: content[:at],
        "insert": lambda: content[:at] + bytes([byte]) + content[at:],
        "drop": lambda: content[:at] + content[at + 1 :],
    }[how]()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=DAMAGE)
def test_whatever_byte_is_damaged_it_is_refused_or_the_agent_is_the_same(saved, damage):
    name, how, where, byte = damage
    before, arrays = load_agent(saved)
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(damaged(content, how, where, byte))
    try:
        after, other = load_agent(saved)
        assert after == before
        assert same(other, arrays)
    except InputError as error:
        complaint = error.field
    else:
        complaint = str(saved / name)
    finally:
        (saved / name).write_bytes(content)
    assert str(saved / name) in complaint


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(shipping, "SHIPPED", tmp_path / "shipped")
    for name in ("small", "default"):
        save_agent(tmp_path / "shipped" / name, description(name=name), weights())
    (tmp_path / "shipped" / "notes").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "shipped"


def test_shipped_agents_are_found_by_name_and_others_by_their_folder(shipped):
    assert shipped_agents() == ("default", "small")
    save_agent("default", description(name="local"), weights())
    assert find_agent("agent:default") == find_agent("default") == shipped / "default"
    assert load_description(find_agent("agent:./default")).name == "local"
    assert load_description(find_agent(f"agent:{shipped / 'small'}")).name == "small"


@pytest.mark.usefixtures("shipped")
@pytest.mark.parametrize("text", ["agent:nobody", "nobody", "agent:", "", "agent:" + "x" * 5000])
def test_an_agent_that_is_nowhere_is_one_error_that_lists_those_shipped(text):
    with refused("agent", text, "one of .*agent:default.*; or an agent.s folder"):
        find_agent(text)


def test_every_agent_that_is_shipped_loads_and_is_small():
    for name in shipped_agents():
        folder = find_agent(f"agent:{name}")
        assert load_agent(folder)[0].name == name
        assert sum(path.stat().st_size for path in folder.iterdir()) <= 2 * 2**20


def test_an_agent_of_other_features_is_stored_but_does_not_fit(saved):
    older = spec(job_features=FEATURES["job_features"][:-1])
    save_agent(saved, description(spec=older), weights(of=older))
    assert load_description(saved).spec == older
