"""Where the CM-ACC paper disagrees with itself or with its released code, and what we measured."""

from repro.audiovisual.coverage import uniform_draws
from repro.papers.cmacc import claims
from repro.papers.cmacc import claims_printed as tables
from repro.report.discrepancies import Measure, departing, not_measured, paired_means
from repro.report.evidence import Evidence
from repro.report.printed import printed
from repro.report.verdicts import Discrepancy

RUN = ("cross_modal", "transfer")


def repeated(evidence: Evidence) -> str:
    return tables.repeated_numbers(evidence).evidence


def pool(evidence: Evidence) -> str:
    size = int(printed("cmacc_hyperparameters").set_index("key").loc["pool_N", "value"])
    return f"the pool of {size} is {size / 22_000:.1f} times 22K and {size / 14_000:.1f} times 14K videos"


def short_schedule(evidence: Evidence) -> str:
    three, one = printed("cmacc_table3").set_index("sampler"), printed("cmacc_table1").set_index("approach")
    four = printed("cmacc_table4")
    best = four.loc[(four["method"] == "Ours") & (four["pretrain_set"] == "Kinetics700"), "UCF101"].item()
    random, active = three.loc["Random", "UCF101_M128"], three.loc["Active", "UCF101_M128"]
    smaller = f"{one.loc['SMoCo', 'UCF101']} of SMoCo after Kinetics-Sound"
    return f"UCF101, M = 128: random {random} against {smaller}, active {active} against {best} in Table 4"


def scratch(evidence: Evidence) -> str:
    one, four = printed("cmacc_table1").set_index("approach"), printed("cmacc_table4").set_index("method")
    rows = [table.loc["Scratch", ["UCF101", "HMDB51"]] for table in (one, four)]
    return f"{rows[0]['UCF101'] - rows[1]['UCF101']:.1f} and {rows[0]['HMDB51'] - rows[1]['HMDB51']:.1f} points apart"


def coverage(evidence: Evidence) -> str:
    """The closed form at every M, and what random sampling gave here beside its own expectation."""
    told = [f"M = {row.draws}: {row.expected:.1f}, {row.percent_of_categories:.1f} % of {row.categories}, "
            f"{row.percent_of_draws:.1f} % of M"
            for row in uniform_draws((tables.CATEGORIES,), tables.BATCHES).itertuples()]
    for setting in evidence.settings("category_diversity"):
        rows = setting.rows("category_diversity", sampler="random", batch=128)
        if len(rows):
            told.append(f"{setting}, M = 128: {rows['categories_video'].mean():.1f} "
                        f"measured, {rows['expected'].mean():.1f} expected")
    return f"uniform draws: {'; '.join(told)}"


def norms(evidence: Evidence) -> str:
    return tables.norms_by_similarity(evidence).evidence


def networks(evidence: Evidence) -> str:
    return (f"margins of the best rows: {tables.state_of_the_art(evidence).evidence}; with one network: "
            f"{tables.same_network(evidence).evidence}")


def released_selection(evidence: Evidence) -> str:
    """The released selection beside the paper's, on every target."""
    told = []
    for setting in evidence.settings("cross_modal"):
        for target in setting.targets("cross_modal"):
            sides = (setting.values("cross_modal", target, method="cmacc", sampler=name, extra_layer=True)
                     for name in ("released", "gradient"))
            pair = paired_means(*sides)
            told += [f"{setting}: {target} {pair}"] if pair else []
    return "; ".join(told)


def lengths(evidence: Evidence) -> str:
    """Unit length beside the printed recipe's any length, and the reverse beside the quick recipe's unit length."""
    told = (departing(*RUN, normalised=True, temperature=0.07), departing(*RUN, normalised=False, temperature=0.7),
            departing(*RUN, normalised=True, temperature=0.07, posterior_temperature=0.07),
            departing(*RUN, normalised=False, temperature=0.7, posterior_temperature=1.0))
    return "; ".join(filter(None, (measure(evidence) for measure in told)))


def ohem_picks(evidence: Evidence) -> str:
    """The gradient norms of OHEM's picks beside those of random ones."""
    finding = claims.norms_of_picks(evidence, "ohem", "random")
    return f"norms of gradients: {finding.evidence}" if finding.level else ""


def _entry(
    number: int, place: str, paper_says: str, others_say: str, here: str, measure: Measure = not_measured
) -> Discrepancy:
    return Discrepancy(id=f"C-{number}", paper="CM-ACC", place=place, paper_says=paper_says, others_say=others_say,
                       here=here, measure=measure)


DISCREPANCIES = [
    _entry(
        1, "Tables 1, 4, 5 and 6", "Table 6 lists the results by the size of the pre-training set",
        "three of its numbers are others than in Tables 1, 4 and 5; its last row mixes two networks",
        "each table's own", repeated,
    ),
    _entry(
        2, "text and Tables 4, 6", "Kinetics-Sound has 22K videos, and the pool draws 38,400 from them",
        "Table 4 says 14K; the pool exceeds either, so that videos repeat", "clips of one video count separately", pool,
    ),
    _entry(
        3, "Table 3", "results after Kinetics-700", "they are far below those of Tables 1 and 4: a shorter training",
        "the same recipe for all", short_schedule,
    ),
    _entry(
        4, "Tables 1 and 4", "Table 1: from scratch 63.3 on UCF101 and 29.7 on HMDB51", "Table 4: 46.5 and 17.1",
        "Table 1", scratch,
    ),
    _entry(
        5, "Figs. 2 and 4", "at M = 128 random negatives cover 30 to 40 % of the categories, active ones 60 to 70 %",
        "uniform draws cover 72 % in expectation",
        "the expectation is drawn beside every curve; up to version 4 of the training that of draws with replacement, "
        "about one category too low at M = 128", coverage,
    ),
    _entry(
        6, "Alg. 1", "lines 13 and 20 take gradients of the whole pool", "only what is not in the dictionary is used",
        "only that",
    ),
    _entry(
        7, "text and Eq. 4", "easy negatives have small gradients",
        "by Eq. 4 a key unlike all queries has a nearly uniform posterior, and a large gradient", "Eq. 4", norms,
    ),
    _entry(
        8, "Table 4", "the margin over GDT is 1.6 on UCF101 and 1.1 on HMDB51", "the first is with another network",
        "both", networks,
    ),
    _entry(
        9, "Fig. 3b", "dictionaries beyond 10,000 keys",
        "the dictionary is selected from a pool of 38,400, which bounds it", "sizes up to 32,768",
    ),
    _entry(
        10, "released code", "k-means++ seeds in the space of last-layer gradients",
        "gradients of the candidates' features, k-means to convergence, probabilities by distance, not its square",
        "the paper's; the released selection as a sampler of its own", released_selection,
    ),
    _entry(
        11, "released code", "momentum 0.999", "0.9, and every key tensor follows one row of its query",
        "0.999", departing(*RUN, momentum=0.9),
    ),
    _entry(
        12, "text and Eq. 4", "temperature 0.7; Eq. 4 has none, nor are features normalised",
        "with features of unit length Eq. 4 is nearly uniform, while the printed gradient norms differ by fifty times",
        "as printed; unit length and 0.07 in the quick recipes, up to version 4 of the training in Eq. 4 too", lengths,
    ),
    _entry(
        13, "Alg. 2", "the keys of a pool, encoded once an epoch, are the negatives of positives encoded in this step",
        "a query can then tell the two by age alone; the released code takes its candidates from recent batches",
        "as printed; the quick recipes encode what is selected again", departing(*RUN, renewed=False),
    ),
    _entry(
        14, "text and Table 3", "OHEM takes the most challenging negatives",
        "by its loss, -log max p of Eq. 4, it takes those least like any query, which are the easiest", "the loss",
        ohem_picks,
    ),
    _entry(
        15, "Eq. 4", "the pool of video is V without the dictionary of sound", "without that of video is meant",
        "without its own modality's",
    ),
    _entry(
        16, "text", "h_a is called a query encoder", "it is the momentum encoder of the keys", "encoder of the keys",
    ),
    _entry(
        17, "Eq. 5 and Alg. 2", "Alg. 2, lines 16 and 25: gradients with respect to the query network of the "
        "candidates' own modality", "Eq. 5: to that of the other modality, whose queries the loss has; its own is not "
        "in the loss, so that they would be 0", "Eq. 5",
    ),
    _entry(
        18, "Alg. 4", "D_a and D_v stand for each other, and a condition asks the wrong one",
        "in the text each is the dictionary of its own modality's keys", "the text's",
    ),
    _entry(
        19, "algorithms", "parameters begin uniform between 0 and 1", "no network trains from there",
        "the usual initialisation",
    ),
    _entry(
        20, "Alg. 4", "a batch's keys enter the dictionaries before the loss, as in Alg. 2",
        "entered after the step, no batch meets its own keys, and XMoCo differs from CM-ACC by more than the selection",
        "before the loss; up to version 4 of the training after the step",
    ),
    _entry(
        21, "Fig. 3a", "SMoCo contrasts two views of one modality", "what a view of a grid of characters is, is not "
        "said; the same characters drawn by others are labels in disguise",
        "a change of every cell without labels; up to version 4 of the training the same characters drawn by others",
        departing("mutual_information", view="characters"),
    ),
    _entry(
        22, "Alg. 2", "negatives are all of the dictionary", "a positive's own clip may be in it",
        "left out, which is assumed", departing(*RUN, own_excluded=False),
    ),
    _entry(
        23, "Table 3 and Figs. 2, 4", "M is 32, 64 and 128", "whether dictionary and pool follow it is not said",
        "30 and 300 times M, which is assumed",
    ),
]
