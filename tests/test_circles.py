"""No modules import each other in a circle, not for annotations either."""

from benchmarks.child import REPOSITORY
from benchmarks.circles import circles
from benchmarks.house import package_folders


def test_no_modules_import_each_other_in_a_circle():
    assert circles(package_folders(REPOSITORY)) == []


def test_a_circle_through_annotations_functions_and_a_package_is_found(tmp_path):
    (tmp_path / "deep").mkdir()
    texts = {
        "a": "from p import b\n",
        "b": "if TYPE_CHECKING:\n    from p.deep.c import C\n",
        "deep/c": "def f():\n    import p.a\n",
        "d": "from p.a import A\n",
        "__init__": "from p.d import D\nfrom p.a import A\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    assert circles({"p": tmp_path}) == [("p.a", "p.b", "p.deep.c")]
    (tmp_path / "b.py").write_text("", encoding="utf-8")
    assert circles({"p": tmp_path}) == []
