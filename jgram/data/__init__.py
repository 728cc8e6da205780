"""The door of the library: files, frames and arrays come in, checked and named."""

from jgram.data.columns import check_aligned, dataset_columns, drop_missing
from jgram.data.counting import count_batches, count_files
from jgram.data.files import Reading, list_files, read_cells, read_columns
from jgram.data.json import to_data, to_json
from jgram.data.labels import check_soft_labels, encode_labels, encode_reports
from jgram.data.numbers import difference, quantile_bins
from jgram.data.observations import check_observations, find_leaks
from jgram.data.packaged import cifar10_embeddings, employment
from jgram.data.table import PreparedTable, prepare_table

__all__ = [
    "PreparedTable", "Reading", "check_aligned", "check_observations", "check_soft_labels",
    "cifar10_embeddings", "count_batches", "count_files", "dataset_columns", "difference",
    "drop_missing", "employment", "encode_labels", "encode_reports", "find_leaks", "list_files",
    "prepare_table", "quantile_bins", "read_cells", "read_columns", "to_data", "to_json",
]  # fmt: skip
