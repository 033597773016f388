"""What the four papers share, in torch: objectives, dictionary, momentum encoder, CM-ACC's selection of negatives.

The table of samplers needs no torch to be read, as recipes, which name samplers, need none.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampler:
    """What is known of a strategy of `repro.contrast.active.select`; the function of its name there chooses.

    Attributes:
        posterior: whether it looks at the queries as classes whose probabilities have a temperature, and so reads that.
        whole: whether it is handed candidates too that may not be chosen; others get the free ones alone, as far as
            values are checked.
        batch_first: whether the candidates begin with the batch's own features, row i the positive of query i.
        waits: whether it needs the host to look at values.
    """

    posterior: bool = True
    whole: bool = False
    batch_first: bool = False
    waits: bool = False


SAMPLERS = {  # another is one more row, and one more function in `active.py`
    "fifo": Sampler(posterior=False),
    "random": Sampler(posterior=False, whole=True),
    "ohem": Sampler(),
    "gradient": Sampler(),
    "feature": Sampler(posterior=False),
    "released": Sampler(whole=True, batch_first=True, waits=True),
}
