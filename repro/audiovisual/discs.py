"""A disc in a box: how it moves, what a camera sees of it, and what a microphone hears.

Every function takes many scenes at once, as `repro.audiovisual.synthetic.draw` describes them. SI units unless said
otherwise; x runs to the right and y upwards from the lower left corner of the box.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Scenes = Mapping[str, np.ndarray]                             # columns of scenes, (n, ...) each

GRAVITY, REST = 9.81, 0.05                                    # m/s^2; m/s, a slower disc stays where it hits
BOX = 2.0                                                     # m, width and height
ROLLING, BEARING = 0.1, 3.0                                   # deceleration: m/s^2 by rolling, rad/s^2 of a wheel
PEGS, CLAPPER = 6, 0.3                                        # of a wheel; what a peg does, by the speed of the rim

SIZE, FRAMES, FRAME_RATE = 24, 20, 10                         # pixels; frames of a clip; per second
RATE, ROWS_PER_FRAME, BANDS, TRANSFORM = 8000, 4, 32, 512     # samples per second; mel rows per frame; bands; samples
HOP = RATE // (FRAME_RATE * ROWS_PER_FRAME)                   # samples from one mel row to the next
BEFORE = 4000                                                 # samples made before the clip, for what still rings
SAMPLES = BEFORE + FRAMES * ROWS_PER_FRAME * HOP
CIRCLE = 36000                                                # of the circular convolution, wraps into BEFORE alone
CONTROL = 400                                                 # per second, how often contact with the floor changes
UNEVEN = 0.8                                                  # depth of the modulation of a rolling disc
LOUDNESS = 0.01                                               # of a mode, for a change of speed by 1 m/s
MODES = np.array([5.253, 9.084, 12.23, 20.52, 21.6, 33.1, 35.25, 38.55])     # lambda^2 of a free circular plate
POISSON = 1 / 3
QUIETEST = 1e-6                                               # power added before the logarithm


@dataclass(frozen=True)
class Path:
    """One coordinate of n discs: a constant acceleration between events.

    Attributes:
        times: (n, events) s at which a stretch begins, the first 0, ascending; inf after the last.
        positions, speeds, accelerations: (n, events) at those times, after the event.
        jolts: (n, events) m/s, the change of speed by the impact that began the stretch; 0 if it was none.
        rest: (n,) s from which the disc stays where it is, inf if it does not come to rest in the time simulated.
    """

    times: np.ndarray
    positions: np.ndarray
    speeds: np.ndarray
    accelerations: np.ndarray
    jolts: np.ndarray
    rest: np.ndarray

    def at(self, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position and speed (n, T) at the moments `seconds` (n, T), at least 0."""
        stretch = (self.times[:, None] <= seconds[:, :, None]).sum(-1) - 1
        time, position, speed, acceleration = (
            np.take_along_axis(each, stretch, 1)
            for each in (self.times, self.positions, self.speeds, self.accelerations)
        )
        elapsed = seconds - time
        return position + elapsed * (speed + acceleration * elapsed / 2), speed + acceleration * elapsed


def travel(
    position: np.ndarray, speed: np.ndarray, *, pull: np.ndarray, drag: np.ndarray, dragged_from: np.ndarray,
    low: np.ndarray, high: np.ndarray, driven_low: np.ndarray, driven_high: np.ndarray, restitution: np.ndarray,
    seconds: float,
) -> Path:
    """Follow one coordinate of n discs from event to event; all arguments but the last (n,).

    Args:
        position, speed: at time 0.
        pull: constant acceleration.
        drag, dragged_from: deceleration against the motion, and s from which it acts.
        low, high: walls.
        driven_low, driven_high: least speed after an impact there.
        restitution: speed after an impact by speed before.
        seconds: how long at least.
    """
    position, speed, pull = position.copy(), speed.copy(), pull.copy()
    clock, jolt, rest, stretches = np.zeros_like(position), np.zeros_like(position), np.full_like(position, np.inf), []
    while (clock <= seconds).any():
        slowing = np.where(clock >= dragged_from, drag, 0)
        acceleration = pull - slowing * np.sign(np.where(speed == 0, pull, speed))
        acceleration[(speed == 0) & (np.abs(pull) <= slowing)] = 0
        rest = np.where((speed == 0) & (acceleration == 0), np.minimum(rest, clock), rest)
        stretches.append((clock, position, speed, acceleration, jolt))
        events = np.full((4, len(clock)), np.inf)             # low wall, high wall, standstill, beginning of the drag
        events[0] = _until(position - low, -speed, -acceleration)
        events[1] = _until(high - position, speed, acceleration)
        np.divide(-speed, acceleration, out=events[2], where=(slowing > 0) & (speed * acceleration < 0))
        np.subtract(dragged_from, clock, out=events[3], where=clock < dragged_from)
        event = events.argmin(0)
        elapsed = events.min(0)
        moving = np.isfinite(elapsed)
        clock = np.where(event == 3, dragged_from, clock + elapsed)
        elapsed = np.where(moving, elapsed, 0)
        position = position + elapsed * (speed + acceleration * elapsed / 2)
        speed = speed + acceleration * elapsed
        hit = moving & (event < 2)
        back = np.maximum(restitution * np.abs(speed), np.where(event == 0, driven_low, driven_high))
        back[back < REST] = 0
        jolt = np.where(hit, np.abs(speed) + back, 0)
        position = np.where(hit, np.where(event == 0, low, high), position)
        speed = np.where(hit, np.where(event == 0, back, -back), np.where(event == 2, 0, speed))
        pull = np.where(hit & (back == 0), 0, pull)
    return Path(*(np.stack(each, 1) for each in zip(*stretches, strict=True)), rest=rest)


def _until(distance: np.ndarray, speed: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """Seconds (n,) until a wall is reached, `distance` >= 0 ahead, at a speed towards it; inf if never.

    One that touches the wall and leaves it reaches it when it comes back.
    """
    square = speed**2 + 2 * acceleration * distance           # of the speed at the wall
    root, seconds = np.sqrt(np.maximum(square, 0)), np.full_like(distance, np.inf)
    np.divide(2 * distance, speed + root, out=seconds, where=(square >= 0) & (speed > 0))
    return np.divide(root - speed, acceleration, out=seconds, where=(speed <= 0) & (acceleration > 0))


@dataclass(frozen=True)
class Movement:
    """How the discs of n scenes move.

    Attributes:
        across, up: paths of the centre.
        grounded: (n,) s from which the disc is on a floor that it feels, inf if never.
    """

    across: Path
    up: Path
    grounded: np.ndarray


def move(scenes: Scenes) -> Movement:
    """Solve the mechanics of n scenes for as long as the clip lasts."""
    none, radius = np.zeros(len(scenes["radius"])), scenes["radius"]
    span = {"restitution": scenes["restitution"], "seconds": scenes["start"].max() + FRAMES / FRAME_RATE}
    up = travel(
        scenes["y"], scenes["up"], pull=-GRAVITY * scenes["falls"], drag=none, dragged_from=none,
        low=radius, high=scenes["top"] - radius, driven_low=scenes["floor"], driven_high=scenes["hand"], **span,
    )
    grounded = np.where(scenes["roughness"] > 0, up.rest, np.inf)
    across = travel(
        scenes["x"], scenes["across"], pull=scenes["pull"], drag=scenes["drag"], dragged_from=grounded,
        low=radius, high=BOX - radius, driven_low=scenes["walls"], driven_high=scenes["walls"], **span,
    )
    return Movement(across, up, grounded)


def turned(scenes: Scenes, movement: Movement, seconds: np.ndarray) -> np.ndarray:
    """(n, T) radians by which the discs have turned, anticlockwise."""
    spin = scenes["spin"][:, None]
    turning = np.minimum(seconds, np.abs(spin) / BEARING)
    wheel = np.sign(spin) * turning * (np.abs(spin) - BEARING * turning / 2)
    rolled = (scenes["x"][:, None] - movement.across.at(seconds)[0]) / scenes["radius"][:, None]
    return wheel + scenes["rolls"][:, None] * rolled


def film(scenes: Scenes, movement: Movement, rng: np.random.Generator) -> np.ndarray:
    """Pictures of n scenes, (n, FRAMES, SIZE, SIZE, 3) uint8; draws the grain of the sensor."""
    n = len(scenes["radius"])
    seconds = scenes["start"][:, None] + np.arange(FRAMES) / FRAME_RATE
    centre = np.stack([path.at(seconds)[0] for path in (movement.across, movement.up)])          # (2, n, T)
    angle = scenes["mark"][:, None] + turned(scenes, movement, seconds)
    places, pixel = _places(scenes)                                                              # (2, n, H, W), (n,)
    sharpness, radius = (each[:, None, None, None] for each in (1 / pixel, scenes["radius"]))
    dx, dy = places[:, :, None] - centre[..., None, None]                                        # (n, T, H, W)
    inside = _edge((radius - np.sqrt(dx**2 + dy**2)) * sharpness)[:, :, None]
    cosine, sine = np.cos(angle)[..., None, None], np.sin(angle)[..., None, None]
    half = _edge((dx * cosine + dy * sine) * sharpness)[:, :, None]
    first, second = np.moveaxis(scenes["paint"][:, None, :, :, None, None], 2, 0)
    body = second + half * (first - second)                                                      # (n, T, 3, H, W)
    shine = np.exp(-((dx / radius + 0.35) ** 2 + (dy / radius - 0.35) ** 2) / 0.2)               # of a lamp, upper left
    body += (scenes["gloss"][:, None, None, None] * shine)[:, :, None] * (1 - body)
    behind = _behind(scenes, places, pixel)[:, None]
    light = 1 + np.einsum("na,anhw->nhw", scenes["slant"], places - BOX / 2)
    pictures = (behind + inside * (body - behind)) * (scenes["light"][:, None, None] * light)[:, None, None]
    pictures += scenes["grain"][:, None, None, None, None] * grain(n, rng)
    return np.ascontiguousarray(np.clip(np.round(255 * pictures), 0, 255).astype(np.uint8).transpose(0, 1, 3, 4, 2))


def grain(n: int, rng: np.random.Generator) -> np.ndarray:
    """What the sensor adds to the pictures of n scenes, of deviation 1 and the same in all colours."""
    return rng.standard_normal((n, FRAMES, 1, SIZE, SIZE), np.float32)


def _places(scenes: Scenes) -> tuple[np.ndarray, np.ndarray]:
    """Where in the box the camera's pixels look, (2, n, H, W) m, and their size (n,) m."""
    steps = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1
    half = scenes["half_width"][:, None, None]
    right = half * steps + scenes["shift"][:, 0, None, None]
    up = half * -steps[:, None] + scenes["shift"][:, 1, None, None]
    cosine, sine = np.cos(scenes["tilt"])[:, None, None], np.sin(scenes["tilt"])[:, None, None]
    places = np.stack([cosine * right - sine * up, sine * right + cosine * up]) + BOX / 2
    return places, 2 * scenes["half_width"] / SIZE


def _behind(scenes: Scenes, places: np.ndarray, pixel: np.ndarray) -> np.ndarray:
    """(n, 3, H, W) what the disc moves before: the back wall of the box, clutter on it, and the box's sides."""
    picture = scenes["wall"][..., None, None]
    for number in range(scenes["clutter"].shape[1]):
        centre, axes = np.split(scenes["clutter"][:, number].T[..., None, None], 2)              # (2, n, 1, 1) each
        distance = np.hypot(*((places - centre) / axes))
        inside = _edge((1 - distance) * axes.min(0) / pixel[:, None, None])[:, None]
        picture = picture + inside * (scenes["clutter_paint"][:, number, :, None, None] - picture)
    beyond = (np.abs(places - BOX / 2).max(0) - BOX / 2) / pixel[:, None, None]
    return picture + _edge(beyond)[:, None] * (scenes["sides"][..., None, None] - picture)


def _edge(pixels: np.ndarray) -> np.ndarray:
    """How much of a pixel is covered by what ends `pixels` beyond its middle."""
    return np.clip(0.5 + pixels, 0, 1)


def resonances(radius: np.ndarray, thickness: np.ndarray, material: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Bending modes of free circular plates, struck at 2 m/s.

    Args:
        radius, thickness: (n,) m.
        material: stiffness (GPa), density, loss, (n,) each.

    Returns:
        Frequencies in Hz, decay rates per second and amplitudes, (n, modes) each; the amplitude of a mode that is slow
        against the contact is 1.

    Source: Leissa 1969, Vibration of plates, table 2.5; Hertz's time of contact, 2.87 (m^2 / (R E*^2 v))^(1/5), of a
    pulse that is taken as a Gaussian as wide as half a sine.
    """
    young, density = 1e9 * material["stiffness"], material["density"]
    wave = np.sqrt(young / (12 * density * (1 - POISSON**2)))
    frequencies = MODES * (thickness / radius**2 * wave / (2 * np.pi))[:, None]
    mass = np.pi * radius**2 * thickness * density
    contact = 2.87 * (mass**2 / (radius * (young / (1 - POISSON**2)) ** 2 * 2)) ** 0.2
    width = np.sqrt(1 / 4 - 2 / np.pi**2) * contact[:, None]
    decays = np.pi * material["loss"][:, None] * frequencies + 3
    return frequencies, decays, np.exp(-2 * (np.pi * frequencies * width) ** 2)


def record(
    scenes: Scenes, movement: Movement, floor: np.random.Generator, room: np.random.Generator
) -> np.ndarray:
    """Sound of n scenes, (n, samples) at RATE; draws the grains of the floor and the noise of the room."""
    spectrum = np.fft.rfft(_blows(scenes, movement, floor), CIRCLE) * np.fft.rfft(_ringing(scenes), CIRCLE)
    spectrum *= LOUDNESS
    frequencies = np.maximum(np.fft.rfftfreq(CIRCLE, 1 / RATE), 50)
    colour = frequencies ** (-scenes["colour"][:, None] / 2)
    colour *= (scenes["hiss"] / np.sqrt((colour**2).mean(1)))[:, None]
    drawn = room.standard_normal((*colour.shape, 2), np.float32).view(np.complex64)[..., 0]
    spectrum += np.sqrt(CIRCLE / 2) * colour * drawn
    return scenes["gain"][:, None] * np.fft.irfft(spectrum, CIRCLE)[:, BEFORE:SAMPLES]


def _ringing(scenes: Scenes) -> np.ndarray:
    """(n, SAMPLES) what a disc answers to a blow of 1 m/s, amplitude 1 per mode: a sum of damped sines."""
    short = 160
    rates = (2j * np.pi * scenes["frequencies"] - scenes["decays"])[:, None] / RATE              # (n, 1, modes)
    coarse = scenes["amplitudes"][:, None] * np.exp(rates * np.arange(0, SAMPLES, short)[:, None])
    fine = np.exp(rates * np.arange(short)[:, None])
    left = np.concatenate([coarse.imag, coarse.real], 2)
    right = np.concatenate([fine.real, fine.imag], 2)
    return (left @ right.transpose(0, 2, 1)).reshape(len(rates), SAMPLES)


def _blows(scenes: Scenes, movement: Movement, rng: np.random.Generator) -> np.ndarray:
    """(n, SAMPLES) m/s given to the disc in each sample: impacts, pegs passing, grains of the floor."""
    n = len(scenes["radius"])
    seconds = scenes["start"][:, None] + (np.arange(SAMPLES * CONTROL // RATE) / CONTROL - BEFORE / RATE)
    moving = seconds >= 0
    grounded = moving & (seconds >= movement.grounded[:, None])
    angle = turned(scenes, movement, np.maximum(seconds, 0))
    speed = np.abs(movement.across.at(np.maximum(seconds, 0))[1])
    unevenness = 1 - UNEVEN * scenes["rolls"][:, None] * np.sin(scenes["mark"][:, None] + angle)
    blows = np.repeat(scenes["roughness"][:, None] * grounded * speed * unevenness, RATE // CONTROL, axis=1)
    touching = scenes["roughness"] > 0
    blows[touching] *= rng.standard_normal((touching.sum(), SAMPLES), np.float32)
    for path in (movement.across, movement.up):
        _strike(blows, np.arange(n)[:, None], path.times - scenes["start"][:, None], path.jolts)
    pegs = np.abs(angle) * (scenes["spin"] != 0)[:, None] * PEGS / (2 * np.pi)                  # that have passed
    row, step = np.nonzero(np.diff(np.floor(pegs)))
    rate = CONTROL * (pegs[row, step + 1] - pegs[row, step])
    moment = seconds[row, step] - scenes["start"][row] + (np.ceil(pegs[row, step]) - pegs[row, step]) / rate
    _strike(blows, row, moment, CLAPPER * scenes["radius"][row] * rate * 2 * np.pi / PEGS)
    return blows


def _strike(blows: np.ndarray, row: np.ndarray, moment: np.ndarray, strength: np.ndarray) -> None:
    """Add blows at `moment` s of the clip, in place, each shared between the two samples around it."""
    row, moment, strength = (each.ravel() for each in np.broadcast_arrays(row, moment, strength))
    place = BEFORE + RATE * moment
    kept = (strength > 0) & (place >= 0) & (place < SAMPLES - 1)
    row, place, strength = row[kept], place[kept], strength[kept]
    sample = place.astype(np.int64)
    np.add.at(blows, (row, sample), strength * (1 - (place - sample)))
    np.add.at(blows, (row, sample + 1), strength * (place - sample))


def log_mel(waveforms: np.ndarray) -> np.ndarray:
    """Natural logarithm of QUIETEST plus the power in mel bands.

    Rows are centred on every HOP-th sample from the first one on, Hann windows of TRANSFORM samples, with zeros beyond
    both ends of the waveform.

    Args:
        waveforms: (n, samples), samples a multiple of HOP.

    Returns:
        (n, samples / HOP, BANDS) float32, multiples of 1/256.
    """
    padded = np.pad(waveforms, ((0, 0), (TRANSFORM // 2, TRANSFORM // 2)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, TRANSFORM, 1)[:, :-1:HOP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(TRANSFORM) / TRANSFORM)
    spectra = np.fft.rfft(windows * hann)
    power = spectra.real**2 + spectra.imag**2
    return (np.round(256 * np.log(power @ mel_filters().T + QUIETEST)) / 256).astype(np.float32)


def mel_filters() -> np.ndarray:
    """(BANDS, TRANSFORM / 2 + 1) triangles of height 1, evenly spread on the scale 2595 log10(1 + f / 700)."""
    highest = 2595 * np.log10(1 + RATE / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, highest, BANDS + 2) / 2595) - 1)
    frequencies = np.fft.rfftfreq(TRANSFORM, 1 / RATE)
    rising = (frequencies - corners[:-2, None]) / np.diff(corners)[:-1, None]
    falling = (corners[2:, None] - frequencies) / np.diff(corners)[1:, None]
    return np.maximum(0, np.minimum(rising, falling))
