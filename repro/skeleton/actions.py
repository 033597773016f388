"""The ten actions of NW-UCLA as postures that a body goes through.

Actions share postures and differ in their order and timing: standing up is sitting down backwards, doffing ends where
donning begins, carrying is walking with bent arms, dropping and throwing both extend one arm, picking up differs in one
arm only.
"""

from dataclasses import dataclass

import numpy as np

from repro.skeleton.kinematics import ARMS

CHANNELS = (                  # degrees; "main" is the right side, mirrored afterwards for left-handed takes
    "pelvis", "spine", "neck",                     # bend forwards
    "twist", "lean",                               # turn to the left; bend to the right
    "main_raise", "main_spread", "main_roll", "main_elbow",        # upper arm forwards, sideways, inwards; bend
    "other_raise", "other_spread", "other_roll", "other_elbow",
    "main_thigh", "main_knee", "other_thigh", "other_knee",        # thigh forwards from the vertical; bend
)
STANCE = np.array((2, 4, 5, 0, 0, 2, 9, 10, 15, 2, 9, 10, 15, 2, 4, 2, 4))     # by channel: at rest ...
HABIT = np.array((3, 4, 6, 3, 2, 4, 4, 6, 7, 4, 4, 6, 7, 2, 2, 2, 2))          # ... and its spread over people


@dataclass(frozen=True)
class Action:
    """An action at a normal tempo.

    Attributes:
        seconds: duration.
        postures: (moment in 0..1, degrees by channel); channels not named stand at rest.
        gait: (moment in 0..1, how much of a step is taken: 0 standing, 1 walking).
        swing: how much the arms swing while walking.
        turning: degrees the body turns during the action, standard deviation over takes.
    """

    seconds: float
    postures: tuple[tuple[float, dict[str, float]], ...]
    gait: tuple[tuple[float, float], ...] = ((0, 0), (1, 0))
    swing: float = 1.0
    turning: float = 10.0


def both(raise_: float, spread: float, roll: float, elbow: float) -> dict[str, float]:
    """Both arms in the same position, degrees."""
    return {f"{arm}_{part}": value for arm in ARMS
            for part, value in (("raise", raise_), ("spread", spread), ("roll", roll), ("elbow", elbow))}


def arm(which: str, raise_: float, spread: float, roll: float, elbow: float) -> dict[str, float]:
    """One arm, `main` or `other`, degrees."""
    return {f"{which}_raise": raise_, f"{which}_spread": spread, f"{which}_roll": roll, f"{which}_elbow": elbow}


def legs(thigh: float, knee: float) -> dict[str, float]:
    """Both legs bent alike, degrees."""
    return {"main_thigh": thigh, "main_knee": knee, "other_thigh": thigh, "other_knee": knee}


REST: dict[str, float] = {}
CROUCH = {"pelvis": 42, "spine": 32, "neck": -15, **legs(48, 74)}
REACHING = CROUCH | arm("main", 62, 6, 0, 12) | arm("other", 48, 8, 10, 35)
SEATED = {"pelvis": 4, "spine": 6, **legs(78, 84), **both(22, 0, 20, 35)}
LEANING = {"pelvis": 34, "spine": 14, "neck": -12, **legs(50, 68), **both(18, 5, 0, 25)}
COAT = both(40, 8, 20, 75)                         # a coat held before the body
COLLAR = both(48, 22, 38, 128)
SHRUGGED = {"spine": -6, **both(-28, 28, 10, 55)}  # both arms behind, the coat at the elbows
MAIN_SLEEVE = {"twist": -14, **arm("main", 10, 62, 0, 30), **arm("other", 50, 5, 55, 100)}
OTHER_SLEEVE = {"twist": 16, "lean": -6, **arm("other", -32, 42, 5, 62), **arm("main", 42, 10, 45, 112)}
HOLDING = arm("main", 20, 6, 15, 80)
BOX = both(24, 4, 12, 74)

ACTIONS = {                   # keyed and ordered as in NW-UCLA's file names
    1: Action(1.9, ((0, REST), (0.3, REST), (0.6, REACHING), (0.9, HOLDING), (1, HOLDING)),
              gait=((0, 1), (0.35, 0.9), (0.5, 0), (0.8, 0), (1, 1))),
    2: Action(2.2, ((0, REST), (0.3, REST), (0.6, CROUCH | both(60, 2, 12, 16)), (0.9, BOX), (1, BOX)),
              gait=((0, 1), (0.35, 0.9), (0.5, 0), (0.8, 0), (1, 1))),
    3: Action(2.0, ((0, HOLDING), (0.3, HOLDING), (0.55, {"pelvis": 10, "spine": 8, **arm("main", 58, 16, 0, 18)}),
                    (0.68, {"pelvis": 10, "spine": 8, **arm("main", 54, 18, 0, 14)}), (1, REST)),
              gait=((0, 1), (0.35, 0.7), (0.5, 0.25), (0.65, 0.25), (0.8, 0.8), (1, 1)), swing=0.6),
    4: Action(2.3, ((0, REST), (1, REST)), gait=((0, 1), (1, 1)), turning=60),
    5: Action(1.6, ((0, REST), (0.15, REST), (0.6, LEANING), (1, SEATED)), gait=((0, 0.3), (0.12, 0), (1, 0))),
    6: Action(1.4, ((0, SEATED), (0.4, LEANING), (0.85, REST), (1, REST)), gait=((0, 0), (0.88, 0), (1, 0.3))),
    8: Action(5.8, ((0, COAT), (0.22, MAIN_SLEEVE), (0.36, MAIN_SLEEVE), (0.55, OTHER_SLEEVE), (0.75, COLLAR),
                    (1, REST))),
    9: Action(3.7, ((0, REST), (0.15, COLLAR), (0.4, SHRUGGED), (0.6, OTHER_SLEEVE), (0.78, MAIN_SLEEVE), (1, COAT))),
    11: Action(1.7, ((0, HOLDING), (0.2, HOLDING),
                     (0.5, {"twist": -28, "lean": 5, "spine": -4, **arm("main", 35, 75, -45, 100)}),
                     (0.68, {"twist": 18, "spine": 10, "pelvis": 6, **arm("main", 88, 18, 0, 14)}),
                     (0.82, {"twist": 20, "spine": 12, "pelvis": 8, **arm("main", 38, -4, 20, 20)}), (1, REST)),
               gait=((0, 0.2), (0.3, 0), (0.6, 0.3), (0.8, 0), (1, 0))),
    12: Action(1.6, ((0, BOX), (1, BOX)), gait=((0, 0), (0.35, 0.6), (1, 1)), swing=0.12, turning=25),
}
