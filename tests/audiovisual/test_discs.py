import math

import numpy as np
import pytest

from repro.audiovisual import discs, synthetic

MOTIONS, MATERIALS = list(synthetic.MOTIONS), list(synthetic.MATERIALS)
STEP = 1e-4                                                   # s, of the slow simulation


def rng(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def scenes(motion, material="chipboard", n=4, **changes):
    """n scenes of a motion and material in which nothing but the disc is to be seen and heard, then changed."""
    drawn = synthetic.draw(np.full(n, 10 * MOTIONS.index(motion) + MATERIALS.index(material)), rng(5))
    plain = {"paint": 1.0, "wall": 0.0, "sides": 0.0, "clutter_paint": 0.0, "gloss": 0.0, "grain": 0.0, "light": 1.0,
             "slant": 0.0, "hiss": 0.0, "gain": 1.0}
    return drawn | {name: np.full_like(drawn[name], value) for name, value in (plain | changes).items()}


@pytest.fixture(scope="module")
def every_scene():
    """Two scenes of each of the 100 categories."""
    return synthetic.draw(np.repeat(np.arange(100), 2), rng(7))


@pytest.fixture(scope="module")
def every_movement(every_scene):
    return discs.move(every_scene)


def simulate(position, speed, *, pull, drag, dragged_from, low, high, driven_low, driven_high, restitution, seconds):
    """One coordinate of one disc in small steps, plain numbers: another way to what `travel` does."""
    places, resting = [], False
    for step in range(round(seconds / STEP)):
        places.append(position)
        if resting:
            continue
        slowing = drag if step * STEP >= dragged_from else 0.0
        change = pull * STEP
        if speed:
            change -= math.copysign(min(slowing * STEP, abs(speed + change)), speed)
        elif abs(pull) <= slowing:
            change = 0.0
        position, speed = position + (speed + change / 2) * STEP, speed + change
        beyond = (position < low and speed < 0) - (position > high and speed > 0)
        if beyond:
            back = max(restitution * abs(speed), driven_low if beyond > 0 else driven_high)
            position, speed = (low if beyond > 0 else high), beyond * back
            resting = back < discs.REST
    return np.array(places)


@pytest.mark.parametrize("motion", MOTIONS)
def test_discs_move_as_in_a_simulation_of_small_steps(motion, monkeypatch):
    arguments, travel = [], discs.travel
    monkeypatch.setattr(discs, "travel", lambda *places, **others: arguments.append((*places, others)) or travel(
        *places, **others))
    movement = discs.move(scenes(motion, "oak", n=1, start=0.0))
    seconds = np.arange(0, 1.5, STEP)[None]
    moved = 0
    for path, (position, speed, others) in zip((movement.up, movement.across), arguments, strict=True):
        plain = {name: float(np.ravel(value)[0]) for name, value in others.items()} | {"seconds": 1.5}
        expected = simulate(float(position[0]), float(speed[0]), **plain)
        np.testing.assert_allclose(path.at(seconds)[0][0], expected, atol=0.02)
        moved += np.ptp(expected)
    assert moved > 0.2 or motion == "spun"


def test_a_dropped_disc_bounces_at_the_times_of_the_closed_form():
    few = scenes("dropped", "steel")
    path, height = discs.move(few).up, few["y"] - few["radius"]
    fall, restitution = np.sqrt(2 * height / 9.81), 0.70
    for bounce in range(4):
        flights = 2 * sum(restitution**earlier for earlier in range(1, bounce + 1))
        np.testing.assert_allclose(path.times[:, bounce + 1], fall * (1 + flights), rtol=1e-12)
        before = 9.81 * fall * restitution**bounce
        np.testing.assert_allclose(path.jolts[:, bounce + 1], before * (1 + restitution), rtol=1e-12)
    lowest = path.speeds[np.isfinite(path.times) & (path.jolts > 0)]
    assert lowest[lowest > 0].min() >= discs.REST
    slow = scenes("dropped", "lead")
    end = discs.move(slow).up
    assert np.isfinite(end.rest).all() and (end.at(end.rest[:, None] + 0.1)[0][:, 0] == slow["radius"]).all()


def test_friction_and_slope_by_the_closed_form():
    pushed = scenes("pushed", "concrete", radius=0.2, x=1.0, across=1.5)
    path = discs.move(pushed).across
    np.testing.assert_allclose(path.rest, 1.5 / (9.81 * 0.20), rtol=1e-12)
    np.testing.assert_allclose(path.at(np.full((4, 1), 1.9))[0][:, 0], 1 + 1.5**2 / (2 * 9.81 * 0.20), rtol=1e-12)
    downhill = scenes("downhill", radius=0.2, x=0.5, across=1.0, pull=-1.2)
    up, down = 1.3, 1.1                                       # with and against the resistance of rolling, 0.1
    path, turn, summit = discs.move(downhill).across, 1 / up, 0.5 + 1 / (2 * up)
    np.testing.assert_allclose(path.times[:, 1], turn, rtol=1e-12)
    np.testing.assert_allclose(path.positions[:, 1], summit, rtol=1e-12)
    np.testing.assert_allclose(path.times[:, 2], turn + np.sqrt(2 * (summit - 0.2) / down), rtol=1e-12)


def test_energy_never_grows_but_where_a_surface_drives(every_scene, every_movement):
    seconds = np.broadcast_to(np.arange(0, 2, 0.001), (len(every_scene["x"]), 2000))
    for path, pull, drives in (
        (every_movement.across, every_scene["pull"], (every_scene["walls"],)),
        (every_movement.up, -discs.GRAVITY * every_scene["falls"], (every_scene["floor"], every_scene["hand"])),
    ):
        position, speed = path.at(seconds)
        energy = speed**2 / 2 - pull[:, None] * position
        driven = np.sum(drives, axis=0) > 0
        assert (np.diff(energy[~driven]) < 1e-9).all()
        hit = (((path.times[:, None] > seconds[:, :-1, None]) & (path.times[:, None] <= seconds[:, 1:, None]))
               & (path.jolts[:, None] > 0)).any(-1)
        assert (np.diff(energy)[~hit] < 1e-9).all() and (np.diff(energy[driven])[hit[driven]] > 0).any()


def test_discs_stay_in_the_box_and_in_the_picture(every_scene, every_movement):
    seconds = every_scene["start"][:, None] + np.arange(20) / 10
    radius = every_scene["radius"][:, None]
    centre = np.stack([path.at(seconds)[0] for path in (every_movement.across, every_movement.up)])
    assert (centre >= radius - 1e-12).all() and (centre <= discs.BOX - radius + 1e-12).all()
    cosine, sine = np.cos(every_scene["tilt"])[:, None], np.sin(every_scene["tilt"])[:, None]
    right, up = centre - 1
    for seen, shift in ((cosine * right + sine * up, 0), (-sine * right + cosine * up, 1)):
        furthest = np.abs(seen - every_scene["shift"][:, shift, None]) + radius
        assert (furthest < every_scene["half_width"][:, None]).all()


def seen_centre(pictures, few):
    """(n, T, 2) metres right and up where the white disc is in the pictures, and its area (n, T)."""
    pixel = 2 * few["half_width"][:, None] / discs.SIZE
    weight = pictures[..., 0] / 255
    steps = np.arange(discs.SIZE) - (discs.SIZE - 1) / 2
    total = weight.sum((2, 3))
    column, row = (weight * steps).sum((2, 3)) / total, (weight * steps[:, None]).sum((2, 3)) / total
    return np.stack([column * pixel, -row * pixel], -1), total * pixel**2


@pytest.mark.parametrize("motion", ["thrown", "floating", "rolled"])
def test_pictures_show_the_disc_where_it_is(motion):
    few = scenes(motion)
    movement = discs.move(few)
    found, area = seen_centre(discs.film(few, movement, rng()), few)
    np.testing.assert_allclose(area, np.pi * few["radius"][:, None] ** 2 + np.zeros((4, 20)), rtol=0.06)
    seconds = few["start"][:, None] + np.arange(20) / 10
    right, up = (path.at(seconds)[0] - 1 for path in (movement.across, movement.up))
    cosine, sine = np.cos(few["tilt"])[:, None], np.sin(few["tilt"])[:, None]
    expected = np.stack([cosine * right + sine * up, -sine * right + cosine * up], -1) - few["shift"][:, None]
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_the_first_half_of_the_paint_lies_where_the_mark_points():
    few = scenes("spun", spin=0.0, tilt=0.0, shift=0.0, x=1.0, y=1.0, radius=0.4)
    few["paint"][:, 1] = 0
    few["mark"] = np.radians([0, 90, 180, 270.0])
    found, area = seen_centre(discs.film(few, discs.move(few), rng()), few)
    offset = 4 * 0.4 / (3 * np.pi)                            # from the middle to the centroid of half a disc
    np.testing.assert_allclose(found[:, 0], offset * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]), atol=0.02)
    np.testing.assert_allclose(area, np.pi * 0.4**2 / 2, rtol=0.05)


def test_rolling_discs_do_not_slip_and_wheels_slow_down():
    rolled = scenes("rolled", start=0.0)
    seconds = np.broadcast_to(np.arange(0, 2, 0.01), (4, 200))
    angle = discs.turned(rolled, movement := discs.move(rolled), seconds)
    along = movement.across.at(seconds)[0] - rolled["x"][:, None]
    np.testing.assert_allclose(angle, -along / rolled["radius"][:, None], atol=1e-12)
    wheel = scenes("spun", start=0.0, spin=-4.5)
    angle = discs.turned(wheel, discs.move(wheel), seconds)
    np.testing.assert_allclose(angle[:, -1], -(4.5**2) / (2 * discs.BEARING), rtol=1e-12)
    np.testing.assert_allclose(np.diff(angle[:, :100], 2), discs.BEARING / 100**2, rtol=1e-6)


def heard(few, seed=1):
    movement = discs.move(few)
    return discs.record(few, movement, rng(seed), rng(seed + 1)), movement


def test_the_sound_is_the_sum_of_the_modes_that_every_impact_excites():
    few = scenes("thrown", "oak", roughness=0.0)
    few["amplitudes"] = np.where(few["frequencies"] < 500, few["amplitudes"], 0)  # slow against a sample
    sound, movement = heard(few)
    for scene in range(4):
        clock, expected = few["start"][scene] + np.arange(16000) / 8000, np.zeros(16000)
        for path in (movement.across, movement.up):
            for time, jolt in zip(path.times[scene], path.jolts[scene], strict=True):
                for frequency, decay, amplitude in zip(*(few[name][scene] for name in (
                        "frequencies", "decays", "amplitudes")), strict=True):
                    if jolt:
                        since = np.maximum(clock - time, 0)
                        ringing = np.exp(-decay * since) * np.sin(2 * np.pi * frequency * since)
                        expected += discs.LOUDNESS * jolt * amplitude * ringing
        assert np.abs(sound[scene] - expected).max() < 0.02 * np.abs(expected).max()
        silent = clock < min(path.times[scene, 1] for path in (movement.across, movement.up)) - 1 / 4000
        assert np.abs(sound[scene][silent]).max(initial=0) < 1e-12, "nothing wraps around, nothing sounds untouched"


def test_impacts_are_heard_when_the_pictures_show_them():
    few = scenes("shaken", n=12, tilt=0.0, decays=100.0)      # one impact is over before the next
    sound, movement = heard(few)
    found, _ = seen_centre(discs.film(few, movement, rng()), few)
    rightwards = np.sign(np.diff(found[..., 0]))              # between frames
    level = np.sqrt((sound.reshape(12, 400, 40) ** 2).mean(-1))                       # every 5 ms
    onset = (level[:, 1:] > 3 * level[:, :-1]) & (level[:, 1:] > 0.1 * level.max(1, keepdims=True))
    seen = heard_too = 0
    for scene in range(12):
        for frame in range(1, 19):
            if rightwards[scene, frame] == -rightwards[scene, frame - 1]:
                seen += 1                                     # it turned back between the frames around this one
                heard_too += onset[scene, 20 * (frame - 1):20 * (frame + 1)].any()
    assert seen > 30 and heard_too == seen
    assert onset.sum() <= seen + 2 * 12, "and nothing else is, but at the clip's ends"


def test_frequencies_follow_size_thickness_and_material():
    steel = {"stiffness": np.array([200.0]), "density": np.array([7850.0]), "loss": np.array([0.0005])}
    size = {"radius": np.array([0.3]), "thickness": np.array([0.02])}
    frequencies, decays, amplitudes = discs.resonances(**size, material=steel)
    expected = 5.253 / (2 * np.pi) * 0.02 / 0.3**2 * np.sqrt(200e9 / (12 * 7850 * (1 - 1 / 9)))
    np.testing.assert_allclose(frequencies[0, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(discs.resonances(size["radius"] / 2, size["thickness"], steel)[0], 4 * frequencies)
    np.testing.assert_allclose(discs.resonances(size["radius"], size["thickness"] / 2, steel)[0], frequencies / 2)
    dull = discs.resonances(**size, material=steel | {"stiffness": np.array([2.0]), "loss": np.array([0.05])})
    np.testing.assert_allclose(dull[0], frequencies / 10)
    np.testing.assert_allclose(dull[1] - 3, 10 * (decays - 3))
    assert (np.diff(amplitudes) < 0).all() and (amplitudes <= 1).all()
    same_pitch = discs.resonances(size["radius"], 10 * size["thickness"], steel | {"stiffness": np.array([2.0])})
    np.testing.assert_allclose(same_pitch[0], frequencies)
    assert (same_pitch[2] < amplitudes).all(), "soft contacts last longer and excite high modes less"


def test_the_spectrum_peaks_at_the_modes():
    few = scenes("dropped", "glass", restitution=0.0, y=1.0)                          # one impact
    sound, _ = heard(few)
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(16000)))                         # bins of half a hertz
    for scene in range(4):
        for frequency in few["frequencies"][scene][few["amplitudes"][scene] > 0]:
            near = slice(int(2 * frequency) - 60, int(2 * frequency) + 61)
            assert abs(near.start + spectrum[scene, near].argmax() - 2 * frequency) <= 2


def test_modes_above_the_recorder_are_silent(every_scene):
    above = every_scene["frequencies"] > discs.RATE / 2
    assert above.any() and (every_scene["amplitudes"][above] == 0).all() and (every_scene["amplitudes"][:, 0] > 0).all()


def test_a_rolling_disc_is_loudest_when_its_first_half_is_below():
    few = scenes("rolled", "polyethylene", n=12, pull=0.0, drag=0.0, across=1.5, x=0.5, radius=0.2)
    blows = discs._blows(few, movement := discs.move(few), rng())
    seconds = few["start"][:, None] + np.arange(-4000, 2000) / 8000
    angle = few["mark"][:, None] + discs.turned(few, movement, np.maximum(seconds, 0))
    free = (seconds > 0) & (seconds < 0.7)                    # before the wall
    below, above = np.sin(angle) < -0.8, np.sin(angle) > 0.8
    ratio = blows[:, :6000][below & free].std() / blows[:, :6000][above & free].std()
    assert ratio == pytest.approx((1 + 0.8 * 0.93) / (1 - 0.8 * 0.93), rel=0.15)
    assert not blows[:, :6000][seconds < 0].any()


def test_a_disc_at_rest_is_silent():
    few = scenes("pushed", "concrete", radius=0.2, x=0.5, across=2.0)
    blows = discs._blows(few, movement := discs.move(few), rng())
    seconds = few["start"][:, None] + np.arange(-4000, 16000) / 8000
    assert blows[(seconds > 0.01) & (seconds < movement.across.rest[:, None])].all()
    assert not blows[seconds > movement.across.rest[:, None] + 1 / discs.CONTROL].any()


def test_every_peg_of_a_wheel_strikes():
    few = scenes("spun", spin=9.0, start=0.0)
    blows = discs._blows(few, discs.move(few), rng())
    struck, sample = np.nonzero(blows)
    for scene in range(4):
        expected, peg = [], 1
        while True:                                           # 9 t - 1.5 t^2 = 2 pi peg / 6
            root = 81 - 6 * 2 * np.pi * peg / 6
            if root < 0 or (9 - np.sqrt(root)) / 3 >= 2 - 1e-3:
                break
            expected.append((9 - np.sqrt(root)) / 3)
            peg += 1
        moments = (sample[struck == scene] - 4000) / 8000
        groups = np.split(moments, np.flatnonzero(np.diff(moments) > 0.01) + 1)
        assert len(groups) == len(expected) > 10
        np.testing.assert_allclose([group[0] for group in groups], expected, atol=2e-4)
        first = blows[scene][4000:4000 + round(8000 * (expected[0] + 0.01))].sum()
        assert first == pytest.approx(discs.CLAPPER * few["radius"][scene] * 9, rel=0.05)


def test_noise_has_its_level_and_colour():
    few = scenes("dropped", n=8, amplitudes=0.0, hiss=0.01, gain=2.0)
    few["colour"] = np.repeat([0.0, 2.0], 4)
    sound, _ = heard(few)
    np.testing.assert_allclose(sound.std(1)[:4], 0.02, rtol=0.05)
    np.testing.assert_allclose(np.sqrt((sound[4:] ** 2).mean()), 0.02, rtol=0.1)
    power = (np.abs(np.fft.rfft(sound)) ** 2).reshape(2, 4, -1).mean(1)
    low, high = power[:, 2 * 200:2 * 300].mean(1), power[:, 2 * 2000:2 * 3000].mean(1)
    np.testing.assert_allclose(low / high, [1, 100], rtol=0.2)


def test_log_mel_is_that_of_librosa():
    import librosa

    few = scenes("thrown", "brass", n=2, hiss=0.003)
    waveforms = np.concatenate([heard(few)[0], 1e-3 * rng().standard_normal((1, 16000)), np.zeros((1, 16000))])
    found = discs.log_mel(waveforms)
    assert found.shape == (4, 80, 32) and found.dtype == np.float32
    assert np.array_equal(found * 256, np.round(found * 256))
    for waveform, rows in zip(waveforms, found, strict=True):
        power = librosa.feature.melspectrogram(
            y=waveform, sr=8000, n_fft=512, hop_length=200, n_mels=32, htk=True, norm=None, center=True,
            pad_mode="constant", power=2.0,
        )
        np.testing.assert_allclose(rows, np.log(power.T[:80] + 1e-6), atol=1 / 512 + 1e-4)
    filters = librosa.filters.mel(sr=8000, n_fft=512, n_mels=32, htk=True, norm=None)
    np.testing.assert_allclose(discs.mel_filters(), filters, atol=1e-6)


def test_rows_lie_beside_their_frames():
    clicks = np.zeros((20, 16000))
    clicks[np.arange(20), 800 * np.arange(20)] = 1            # at the moment of each frame
    assert discs.log_mel(clicks).mean(2).argmax(1).tolist() == [4 * frame for frame in range(20)]


def test_last_bits_change_no_pixel_and_no_row():
    few = scenes("thrown", "brass", hiss=0.003, grain=0.01)
    sound, movement = heard(few)
    assert np.array_equal(discs.log_mel(sound), discs.log_mel(sound * (1 + 1e-12)))
    darker = few | {"light": few["light"] * (1 + 1e-12)}
    assert np.array_equal(discs.film(few, movement, rng()), discs.film(darker, movement, rng()))
