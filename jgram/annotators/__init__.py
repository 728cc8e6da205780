"""Annotators judged by their peers, the labels they imply, and pairs who agree too much."""

from jgram.annotators.answers import (
    Answers,
    answers_from_columns,
    answers_from_files,
    answers_from_matrix,
)
from jgram.annotators.beside import Gold
from jgram.annotators.collusion import Collusion, CollusionSearch, find_collusion
from jgram.annotators.label_studio import answers_from_label_studio
from jgram.annotators.ranking import (
    Annotator,
    AnnotatorRanking,
    InferredLabels,
    Reading,
    infer_labels,
    rank_annotators,
)

__all__ = [
    "Annotator",
    "AnnotatorRanking",
    "Answers",
    "Collusion",
    "CollusionSearch",
    "Gold",
    "InferredLabels",
    "Reading",
    "answers_from_columns",
    "answers_from_files",
    "answers_from_label_studio",
    "answers_from_matrix",
    "find_collusion",
    "infer_labels",
    "rank_annotators",
]
