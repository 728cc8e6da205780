"""Labels from elsewhere: a Hugging Face dataset, an export of Label Studio."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import jgram
from jgram.annotators import answers_from_columns, answers_from_label_studio
from jgram.data import dataset_columns, drop_missing, prepare_table
from tests.refusals import refused


class Dataset:
    """What is used of one split of ``datasets``."""

    def __init__(self, **columns):
        self.columns, self.read = columns, []
        self.column_names = list(columns)
        named, plain = SimpleNamespace(names=["cat", "dog"]), SimpleNamespace(dtype="float32")
        self.features = {name: named if name == "label" else plain for name in columns}

    def __len__(self):
        return 4

    def with_format(self, kind):
        assert kind is None
        return self

    def __getitem__(self, name):
        self.read.append(name)
        return iter(self.columns[name])  # a lazy column, no list


def dataset():
    vectors = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]
    return Dataset(label=[1, 0, -1, None], age=[1.0, None, 3.0, 4.0], vector=vectors)


def test_columns_of_a_dataset_by_name():
    given = dataset()
    assert dataset_columns(given, ["label"]) == {"label": ["dog", "cat", None, None]}
    assert given.read == ["label"]  # images are not decoded for nothing
    columns, rows = drop_missing({"label": ["a", None, "b", "c"], "y": dataset()})
    assert rows.tolist() == [0]
    assert list(columns["y"]) == ["label", "age", "vector"]
    prepared = prepare_table(Dataset(age=[1.0, 2.0, 3.0, 4.0], vector=dataset().columns["vector"]))
    assert "2 numbers" in prepared.description or "1 number" in prepared.description


def test_what_is_no_split_is_refused():
    assert "expected one split of a dataset, got 'train', 'test'" in refused(
        dataset_columns, {"train": dataset(), "test": dataset()}
    )
    assert "expected one split of a dataset, got list" in refused(dataset_columns, [1])
    assert "expected a column 'lab': it has 'label'" in refused(dataset_columns, dataset(), ["lab"])


# Label Studio -------------------------------------------------------------------------------


def result(choice, name="kind"):
    choices = [choice] if isinstance(choice, str) else choice
    return {"from_name": name, "to_name": "img", "type": "choices", "value": {"choices": choices}}


def annotation(who, *results, **more):
    return {"id": "1001", "completed_by": who, "result": list(results), **more}


def task(number, *annotations, **more):
    data = {"image": f"{number}.jpg"}
    return {"id": number, "data": data, "annotations": list(annotations), "predictions": [], **more}


@pytest.fixture
def export(tmp_path):
    """300 images, five annotators, boxes beside choices, a skipped task and an empty answer."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    box = {"from_name": "box", "type": "rectanglelabels", "value": {"x": 1, "y": 2}}
    rows, tasks = [], []
    for i, right in enumerate(truth):
        wrong = rng.random(5) < [0.02, 0.1, 0.2, 0.3, 0.4]
        said = {who: ("cat", "dog")[int(right ^ flip)] for who, flip in enumerate(wrong, 3)}
        rows += [(f"{i}.jpg", who, choice) for who, choice in said.items()]
        done = [annotation(who, box, result(choice)) for who, choice in said.items()]
        tasks.append(task(i, *done, annotation(9, was_cancelled=True)))
    tasks[0]["annotations"].append(annotation(3, box))
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    return path, rows


def test_answers_of_an_export_are_those_of_the_long_table(export):
    path, rows = export
    expected = answers_from_columns(*map(list, zip(*rows, strict=True)))
    found = answers_from_label_studio(path, item="image")
    assert found.annotators == expected.annotators == (3, 4, 5, 6, 7)
    assert found.items == expected.items
    for name in ("item", "annotator", "label"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert "1 of 1501" in refused(answers_from_label_studio, path, missing="raise")


def test_annotators_have_emails_or_ids():
    said = result("cat"), result("dog")
    mail = {"id": 4, "email": "b@x.org"}
    for who, names in (((3, {"id": 5}), (3, 5)), ((mail, {"email": "a"}), ("a", "b@x.org"))):
        answers = answers_from_label_studio([task(1, *map(annotation, who, said))])
        assert answers.annotators == names
    both = [task(1, annotation(3, said[0], result("bad", "quality")), annotation(4, said[1]))]
    assert answers_from_label_studio(both, label="kind").classes == ("cat", "dog")


def test_the_command_reads_an_export(export, monkeypatch, capsys, unchecked):
    from jgram.cli import main

    path, _ = export
    monkeypatch.setattr("jgram.cli.process.prepare_process", lambda: None)
    for more, code, words in (
        (["--item", "image", "--json"], 0, '"name": 3'),
        (["--annotator", "who"], 2, "--annotator: expected a table or an array"),
        (["--label", "kinds"], 2, "expected annotations with choices named 'kinds', got none"),
        (["--item", "picture"], 2, "task 0: expected 'picture' in its data"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["annotators", str(path), *more])
        shown = capsys.readouterr()
        assert (ended.value.code, words in shown.out + shown.err) == (code, True), shown
        if "--json" in more:
            assert jgram.load(shown.out).annotators[0].name == 3


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ([{"id": 1, "image": "1.jpg", "kind": "cat", "annotator": 1}], "not JSON-MIN or CSV"),
        ([{"id": 1, "data": {}, "completions": []}], "an object of id, data, completions"),
        ([3], "got int"),
        ([task(1, annotation(1, result(["cat", "dog"])))], "one choice of kind an annotation"),
        ([task(1, annotation(1, result("cat"), result("dog")))], "got another"),
        ([task(1, annotation(1, result("cat"), result("bad", "quality"))),
          task(2, annotation(1, result("bad", "quality")))], "got kind, quality: say which"),
        ([task(1, annotation(None, result("cat")))], "task 1: expected completed_by"),
        ([task(None, annotation(1, result("cat")))], "task None: expected an id"),
        ([task(1, annotation(1))], "expected annotations with choices, got none in 1 tasks"),
        ([], "got none in 0 tasks"),
    ],
)  # fmt: skip
def test_what_is_no_export_is_refused_in_one_line(tasks, words):
    assert words in refused(answers_from_label_studio, tasks)


def test_files_that_are_no_export_are_refused(tmp_path):
    path = tmp_path / "export.json"
    for text, words in (("{", "cannot be read as the JSON export"), ('{"a": 1}', "an object of a")):
        path.write_text(text)
        assert words in refused(answers_from_label_studio, path)
