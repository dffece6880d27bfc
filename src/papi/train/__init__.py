"""Trains a run: from a config to a trained model in a run folder.

`start` finds data, candidate sets and settings, and `one_run` does the rest. `head_first` trains a head before the
whole network is fine-tuned, and `decisions` continues a finished run. All of them yield `events` and print nothing.
"""

from papi.setup.run import Trained as Trained
from papi.setup.settings import settings_for as settings_for
from papi.train.decisions import train_on as train_on
from papi.train.events import Event as Event
from papi.train.events import Finished as Finished
from papi.train.events import Saved as Saved
from papi.train.events import Started as Started
from papi.train.events import Stopped as Stopped
from papi.train.head_first import head_first as head_first
from papi.train.start import fit as fit
from papi.train.start import train as train
from papi.training.engine import EpochEnded as EpochEnded
from papi.training.engine import Stepped as Stepped
