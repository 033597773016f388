"""How fast clips are prepared: the parts of decoding, in one process.

    python3 -m benchmarks.clip_decoding [--dataset NAME, its files below REPRO_DATA]

CPU time of one core per clip, and clips per second; without a data set, of made-up clips of ten seconds, 340 x 256 at
30 per second, H.264 and AAC, as those of Kinetics often are. Projected are hours of one core, from the median, for the
paper's numbers of clips: 240,000 of Kinetics-700, 1.8 million of AudioSet.
"""

import functools
import io
import statistics
import time
from fractions import Fraction

import av
import numpy as np

from benchmarks.stopwatch import options, spread, turns
from repro.audiovisual import decode, prepare

ROUNDS, MOST, PAPER = 3, 24, (240_000, 1_800_000)


def made_up() -> bytes:
    """A clip of ten seconds: blurred noise that drifts, and noise that is heard."""
    rng, target = np.random.default_rng(0), io.BytesIO()
    scene = rng.normal(size=(2, 64, 96, 3)).repeat(8, axis=1).repeat(8, axis=2)
    with av.open(target, "w", format="mp4") as container:
        pictures = container.add_stream("libx264", rate=30)
        pictures.width, pictures.height, pictures.pix_fmt = 340, 256, "yuv420p"
        track = container.add_stream("aac", rate=44_100, layout="stereo")
        for number in range(300):
            part = scene[0, number // 2 :][:256, number // 3 :][:, :340] + scene[1, :256, number // 2 :][:, :340]
            frame = av.VideoFrame.from_ndarray(np.clip(128 + 40 * part, 0, 255).astype(np.uint8), format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 30)
            container.mux(pictures.encode(frame))
            heard = av.AudioFrame.from_ndarray(rng.normal(0, 0.1, (2, 1470)).astype(np.float32), "fltp", "stereo")
            heard.sample_rate, heard.pts, heard.time_base = 44_100, 1470 * number, Fraction(1, 44_100)
            container.mux(track.encode(heard))
        container.mux(pictures.encode(None))
        container.mux(track.encode(None))
    return target.getvalue()


def decoded(contents: bytes) -> None:
    """Decode all pictures and keep none: what the format costs at least."""
    with decode.opened(contents) as container:
        for _ in container.decode(video=0):
            pass


def main() -> None:
    """Time pictures, sound and all of a clip."""
    name = options(__doc__, dataset="").dataset
    files, needs = [made_up()] * 4, "audio" if name == "esc50" else "video"
    if name:
        items = prepare.find(name, None, subset=True).items
        files = [item.entry.read() for item in items[:: max(1, len(items) // MOST)]]
    sizes = (128, 256) if needs == "video" else (128,)
    readers = {"sound, decoded": decode.read_sound}
    readers |= {f"all, size {size}": functools.partial(decode.decode, needs=needs, size=size)
                for size in sizes}
    if needs == "video":
        readers["pictures, decoded"] = decoded
        readers["pictures, size 128"] = functools.partial(decode.read_pictures, size=128)
    works = {part: lambda read=read: [read(contents) for contents in files] for part, read in readers.items()}
    print(f"{name or 'made-up clips'}: {len(files)} clips, one core, {ROUNDS} rounds")
    for part, seconds in turns(works, ROUNDS, clock=time.process_time).items():
        of_one = [each / len(files) for each in seconds]
        hours = ", ".join(f"{statistics.median(of_one) * count / 3600:.1f} h for {count:,}" for count in PAPER)
        print(f"{part:<20}{spread(of_one)} s a clip; {spread([1 / each for each in of_one])} clips a second; {hours}")


if __name__ == "__main__":
    main()
