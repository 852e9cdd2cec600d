"""A code-completion transformer, trained on the source of the reader's own Python.

    log = train(TrainConfig(scale="none"))

`config` holds the settings, `data` the text, `model` the transformer, `loop` the training and its
measurements, `log` what a run leaves behind, `together` runs several, `tables` counts bytes for
comparison, `kernel` is the attention function of lesson 4's story, `sweep` makes the record that
`record` reads.
"""

from helpers.training import sweep
from helpers.training.config import TrainConfig
from helpers.training.data import Corpus, standard_library
from helpers.training.kernel import team_attention
from helpers.training.log import MATRICES, RunLog
from helpers.training.loop import Trainer, final_windows, load_model, probe_windows, train
from helpers.training.model import Transformer
from helpers.training.record import Record, predicted_score_std
from helpers.training.tables import table_losses
from helpers.training.together import Job, scratch_folder, train_together

__all__ = [
    "MATRICES",
    "Corpus",
    "Job",
    "Record",
    "RunLog",
    "TrainConfig",
    "Trainer",
    "Transformer",
    "final_windows",
    "load_model",
    "predicted_score_std",
    "probe_windows",
    "scratch_folder",
    "standard_library",
    "sweep",
    "table_losses",
    "team_attention",
    "train",
    "train_together",
]
