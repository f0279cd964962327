"""PhysX 5.3 on the CPU through the Python package sapien, as an external engine (see README.md beside this file).

Only sapien's binding of PhysX is loaded, none of its renderer. Masses and inertias are the scene's, damping and the sleep
threshold are 0, gyroscopic torques are on (sapien's choice). Swing limits of the six-degree joint have no effect in this
binding, so that a hinge is two ball joints on its axis and a fixed joint three; sliders, springs, motors and friction tables
are not possible. sapien asks PhysX for contact reports whether they are read or not: the step is slower than a bare one.
"""
import ctypes
import os
import sys
import types

FOLDER = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ".")
sys.path.insert(0, FOLDER)
sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from template import Refused, serve  # noqa: E402

KEYS = [  # key, type, default, range, unit, meaning, source
    ("substeps", "int", "1", "1 .. 10000", "1", "steps a frame, each of frame_time / substeps", "one step a frame"),
    ("solver", "choice", "pgs", "pgs | tgs", "1", "projected or temporal Gauss-Seidel",
     "PhysX's default (PxSceneDesc): PGS"),
    ("position_iterations", "int", "4", "1 .. 255", "1", "position iterations of every body", "PhysX's default 4"),
    ("velocity_iterations", "int", "1", "0 .. 255", "1", "velocity iterations of every body", "PhysX's default 1"),
    ("friction_every_iteration", "bool", "0", "0 | 1", "1", "solve friction in every iteration", "PhysX's default: off"),
    ("bounce_threshold", "real", "2", "0 .. 1e30", "m/s", "slower impacts are plastic", "0.2 of the speed scale 10 m/s"),
    ("contact_offset", "real", "0.02", "1e-6 .. 10", "m", "gap at which contacts are made", "0.02 of the length scale 1 m"),
    ("rest_offset", "real", "0", "-10 .. 10", "m", "gap at which bodies rest", "PhysX's default 0"),
    ("max_depenetration_velocity", "real", "1e30", "0 .. 1e30", "m/s", "largest speed that removes a penetration",
     "PhysX's default: no bound"),
    ("max_angular_velocity", "real", "100", "0 .. 1e30", "rad/s", "bound on angular velocities", "PhysX's default 100"),
    ("pcm", "bool", "1", "0 | 1", "1", "persistent contact manifolds", "PhysX's default: on"),
    ("enhanced_determinism", "bool", "0", "0 | 1", "1", "same result whatever else is in the scene", "PhysX's default: off"),
    ("hinge_span", "real", "0.1", "1e-4 .. 100", "m", "distance from the anchor of the extra ball joints of a hinge or "
     "fixed joint", "no source: half a link's width in the suite's chains"),
]
CAN = "sphere capsule box plane hull compound spherical hinge fixed distance restitution loads friction_cone worlds determinism"
X_TO_Z = [0.7071067811865476, 0.0, -0.7071067811865476, 0.0]  # PhysX's capsules and planes are along x


def load():
    """sapien's binding without the package around it, which would want a renderer and more packages."""
    base = os.path.join(FOLDER, "sapien")
    package = types.ModuleType("sapien")
    package.__path__, package.__file__ = [base], os.path.join(base, "__init__.py")
    sys.modules["sapien"] = package
    os.environ["SAPIEN_PACKAGE_PATH"] = base
    for library in ("libOpenImageDenoise_core.so.2.0.1", "libOpenImageDenoise.so.2.0.1"):
        ctypes.CDLL(os.path.join(base, "oidn_library", library), ctypes.RTLD_LOCAL)
    import sapien.pysapien as binding
    return binding


def rotate(q, v):
    w, x, y, z = q
    tx, ty, tz = 2 * (y * v[2] - z * v[1]), 2 * (z * v[0] - x * v[2]), 2 * (x * v[1] - y * v[0])
    return [v[0] + w * tx + y * tz - z * ty, v[1] + w * ty + z * tx - x * tz, v[2] + w * tz + x * ty - y * tx]


def multiply(a, b):
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return [aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw]


class PhysX:
    @staticmethod
    def describe():
        try:
            binding = load()
        except (ImportError, OSError) as missing:
            return ["unavailable its binding does not load: %s" % missing]
        return ["version " + binding.physx.version(), "precision float", "device cpu", "license BSD-3-Clause (PhysX), "
                "Apache-2.0 (sapien)", "build prebuilt: PyPI wheel sapien 3.0.3", "can " + CAN] + \
            ["setting " + "\t".join(key) for key in KEYS]

    def __init__(self, scene):
        import numpy
        self.numpy, self.binding = numpy, load()
        px = self.physx = self.binding.physx
        text = {k[0]: scene["settings"].get(k[0], k[2]) for k in KEYS}
        number = {k: float(v) if k != "solver" else v for k, v in text.items()}
        self.scene, self.time, self.number = scene, 0.0, number
        self.substeps = int(number["substeps"])
        self.h = scene["frame_time"] / self.substeps
        self.engine = px.PhysxEngine(1.0, 10.0)  # scales of length and speed; before anything else
        px.set_scene_config(numpy.array(scene["gravity"], numpy.float32), number["bounce_threshold"], number["pcm"] > 0,
                            number["solver"] == "tgs", False, number["enhanced_determinism"] > 0,
                            number["friction_every_iteration"] > 0, 0)
        px.set_body_config(int(number["position_iterations"]), int(number["velocity_iterations"]), 0.0)
        px.set_shape_config(number["contact_offset"], number["rest_offset"])
        self.system = px.PhysxCpuSystem()
        self.system.timestep = self.h
        self.world = self.binding.Scene([self.system])
        self.material = px.PhysxMaterial(scene["friction"][0], scene["friction"][0], scene["restitution"][0])
        self.add_bodies()
        self.add_joints()
        self.order = self.packed_order()

    def pose(self, row):
        return self.binding.Pose(row[:3], row[3:])

    def groups(self):
        """One bit for each pair of (collision group, world) that occurs, and a mask of those it collides with."""
        kinds = sorted({(b["group"], b["world"]) for b in self.scene["bodies"]})
        if len(kinds) > 31:
            raise Refused("unsupported", "more than 31 combinations of collision group and world")
        return {kind: [1 << i, sum(1 << k for k, (g, w) in enumerate(kinds)
                                   if w == kind[1] and not (g == kind[0] and g > 0)), 0, 0] for i, kind in enumerate(kinds)}

    def shape(self, shape, groups):
        px, local, kind = self.physx, list(shape["local"]), shape["kind"]
        if kind == "sphere":
            made = px.PhysxCollisionShapeSphere(shape["radius"], self.material)
        elif kind == "box":
            made = px.PhysxCollisionShapeBox(shape["half"], self.material)
        elif kind == "capsule":
            made = px.PhysxCollisionShapeCapsule(shape["radius"], shape["half_length"], self.material)
        elif kind == "plane":
            made = px.PhysxCollisionShapePlane(self.material)
        else:
            vertices = self.numpy.array(shape["vertices"], self.numpy.float32)
            made = px.PhysxCollisionShapeConvexMesh(vertices, [1.0, 1.0, 1.0], self.material)
        if kind in ("capsule", "plane"):
            local[3:] = multiply(local[3:], X_TO_Z)
        made.set_local_pose(self.pose(local))
        made.set_collision_groups(groups)
        return made

    def add_bodies(self):
        px, groups = self.physx, self.groups()
        joined = {frozenset((j["a"], j["b"])) for j in self.scene["joints"]}  # PhysX's joints see to those
        listed = {frozenset(pair) for pair in self.scene["ignored"]} - joined
        if len(listed) > 32:
            raise Refused("unsupported", "more than 32 listed pairs that ignore each other without a joint or a group")
        ignore = [0] * len(self.scene["bodies"])  # shapes with a common bit ignore each other: one bit a pair
        for bit, pair in enumerate(sorted(map(sorted, listed))):
            for body in pair:
                ignore[body] |= 1 << bit
        self.bodies = []
        shapes = [[] for _ in self.scene["bodies"]]
        for shape in self.scene["shapes"]:
            shapes[shape["body"]].append(shape)
        for body, own, bits in zip(self.scene["bodies"], shapes, ignore):
            moves = body["motion"] == "dynamic"
            made = px.PhysxRigidDynamicComponent() if moves else px.PhysxRigidStaticComponent()
            for shape in own:
                made.attach(self.shape(shape, groups[body["group"], body["world"]][:2] + [bits, 0]))
            entity = self.binding.Entity()
            entity.add_component(made)
            entity.set_pose(self.pose(body["pose"]))
            if moves:
                made.mass, made.inertia = body["mass"], body["inertia"]
                made.cmass_local_pose = self.binding.Pose()
                made.linear_damping = made.angular_damping = 0.0
                made.max_angular_velocity = self.number["max_angular_velocity"]
                made.max_depenetration_velocity = self.number["max_depenetration_velocity"]
            entity.add_to_scene(self.world)
            if moves:
                made.set_linear_velocity(body["velocity"][:3])
                made.set_angular_velocity(body["velocity"][3:])
            self.bodies.append(made)

    def ball(self, joint, offset):
        made = self.physx.PhysxDriveComponent(self.bodies[joint["b"]])
        for frame, set_pose in ((joint["frame_a"], made.set_pose_in_parent), (joint["frame_b"], made.set_pose_in_child)):
            shift = rotate(frame[3:], offset)
            set_pose(self.pose([frame[k] + shift[k] for k in range(3)] + list(frame[3:])))
        if joint["a"] >= 0:
            made.set_parent(self.bodies[joint["a"]])
        for limit in (made.set_limit_x, made.set_limit_y, made.set_limit_z):
            limit(0.0, 0.0)
        self.attach(joint, made)

    def attach(self, joint, made):
        self.bodies[joint["b"]].entity.add_component(made)

    def add_joints(self):
        s = self.number["hinge_span"]
        offsets = {"spherical": [[0, 0, 0]], "hinge": [[0, 0, s], [0, 0, -s]], "fixed": [[0, 0, 0], [s, 0, 0], [0, s, 0]]}
        for joint in self.scene["joints"]:
            if joint["motor"] != "none" or joint["stiffness"] > 0 or joint["damping"] > 0:
                raise Refused("unsupported", "motors and springs on joints")
            if joint["limits"] and joint["kind"] != "distance":
                raise Refused("unsupported", "joint limits")
            if self.scene["bodies"][joint["b"]]["motion"] != "dynamic":
                raise Refused("unsupported", "joints whose second body does not move")
            if joint["kind"] == "distance":
                made = self.physx.PhysxDistanceJointComponent(self.bodies[joint["b"]])
                made.set_pose_in_parent(self.pose(joint["frame_a"]))
                made.set_pose_in_child(self.pose(joint["frame_b"]))
                if joint["a"] >= 0:
                    made.set_parent(self.bodies[joint["a"]])
                low, high = joint["limits"] or (joint["rest"], joint["rest"])
                made.set_limit(low, high)
                self.attach(joint, made)
                continue
            for offset in offsets[joint["kind"]]:
                self.ball(joint, offset)

    def packed_order(self):
        """Row of each moving body in the system's packed state."""
        place = {made: k for k, made in enumerate(self.system.rigid_dynamic_components)}
        return self.numpy.array([place[b] for b, row in zip(self.bodies, self.scene["bodies"]) if row["motion"] == "dynamic"], int)

    def step(self):
        for k in range(self.substeps):
            now = self.time + k * self.h
            for load in self.scene["loads"]:
                share = (min(now + self.h, load["end"]) - max(now, load["start"])) / self.h
                if share > 0:
                    f = [share * x for x in load["force"]]
                    self.bodies[load["body"]].add_force_torque(f[:3], f[3:], "force")
            self.system.step()
        self.time += self.scene["frame_time"]

    def state(self):
        numpy, scene = self.numpy, self.scene["bodies"]
        rows = numpy.zeros((len(scene), 13))
        for k, body in enumerate(scene):
            rows[k, :7] = body["pose"]
        moving = [k for k, body in enumerate(scene) if body["motion"] == "dynamic"]
        if moving:
            packed = numpy.frombuffer(self.system.pack(), numpy.float32).astype(float)[:13 * len(moving)].reshape(-1, 13)
            packed = packed[self.order]
            quaternions = packed[:, :4] / numpy.linalg.norm(packed[:, :4], axis=1, keepdims=True)
            rows[moving] = numpy.hstack([packed[:, 4:7], quaternions, packed[:, 7:13]])
        return rows.ravel()


if __name__ == "__main__":
    serve(PhysX)
