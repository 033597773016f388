"""Every table there is, by name."""

from repro.audiovisual.tables import TABLES as AUDIOVISUAL
from repro.image.tables import TABLES as IMAGE
from repro.skeleton.tables import TABLES as SKELETON

TABLES = SKELETON | IMAGE | AUDIOVISUAL
