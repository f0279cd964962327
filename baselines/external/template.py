"""A minimal external engine, to copy and fill: free rigid bodies under gravity (no contacts, no joints).

The protocol (README.md beside this file) is in serve(); your engine is a class with describe(), __init__(scene), step()
and state(). Print nothing on standard output: it is the connection. Standard error is yours.
"""
import array
import json
import math
import os
import sys
import time


class Refused(Exception):
    """Raised by an engine: kind is unsupported, input, diverged or error; the text is one line of why."""

    def __init__(self, kind, why):
        super().__init__(why)
        self.kind = kind


def serve(engine_class):
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints goes to standard error
    stdin, engine = sys.stdin.buffer, None

    def answer(text, data=b""):
        channel.write((" ".join(str(text).split()) if "\n" not in text else text).encode() + b"\n" + data)
        channel.flush()

    for line in iter(stdin.readline, b""):
        word, _, rest = line.decode().strip().partition(" ")
        try:
            if word == "describe":
                answer("\n".join(engine_class.describe() + ["end"]))
            elif word == "create":
                engine = engine_class(json.loads(stdin.read(int(rest))))
                answer("ok")
            elif word == "step":
                start, counters = time.perf_counter(), {}
                for _ in range(int(rest)):
                    counters = engine.step() or {}
                ms = (time.perf_counter() - start) * 1e3
                data = array.array("d", engine.state()).tobytes()  # not in the step's time
                answer("ok %.6f %s" % (ms, " ".join("%s=%.9g" % pair for pair in counters.items())), data)
        except Refused as refused:
            answer("%s %s" % (refused.kind, refused))
        except Exception as trouble:  # a traceback is no answer
            answer("error %s: %s" % (type(trouble).__name__, trouble))


class FreeBodies:
    @staticmethod
    def describe():
        return ["version 1", "precision double", "device cpu", "license MIT", "build python", "can determinism",
                "setting substeps\tint\t1\t1 .. 10000\t1\tsteps a frame\tone step a frame"]

    def __init__(self, scene):
        if scene["shapes"] or scene["joints"] or scene["loads"]:
            raise Refused("unsupported", "this engine has free bodies only")
        self.substeps = int(scene["settings"].get("substeps", "1"))
        self.h = scene["frame_time"] / self.substeps
        self.gravity = scene["gravity"]
        self.bodies = [(b["motion"] == "dynamic", list(b["pose"]), list(b["velocity"])) for b in scene["bodies"]]

    def step(self):
        for _ in range(self.substeps):
            for moves, pose, velocity in self.bodies:
                if not moves:
                    continue
                for k in range(3):
                    velocity[k] += self.h * self.gravity[k]
                    pose[k] += self.h * velocity[k]
                w = velocity[3:]
                angle = self.h * math.sqrt(sum(x * x for x in w))
                s = math.sin(angle / 2) / (angle / self.h) if angle > 0 else 0
                a, (b, c, d) = math.cos(angle / 2), (s * x for x in w)
                e, f, g, i = pose[3:]
                pose[3:] = [a * e - b * f - c * g - d * i, a * f + b * e + c * i - d * g,
                            a * g - b * i + c * e + d * f, a * i + b * g - c * f + d * e]

    def state(self):
        return [x for _, pose, velocity in self.bodies for x in pose + velocity]


if __name__ == "__main__":
    serve(FreeBodies)
