"""Rapier 3-D (float, Rust) through its Python package, as an external engine (see README.md beside this file).

Rapier's solver iterations are its own substeps; contacts and joints are springs and dampers of a given natural frequency,
scaled to the pair. Masses and inertias are the scene's (`additional_mass_properties`, colliders of density 0), nothing
sleeps or is damped. One friction value only: Rapier combines the two colliders' values. Joints are generic joints whose x
axis is the free one. Not possible here: motors and kinematic bodies (their work cannot be asked for), universal joints,
friction tables. Listed pairs that ignore each other go through a hook in Python, which costs time.
"""
import os
import sys

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else ".")
sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from template import Refused, serve  # noqa: E402

KEYS = [  # key, type, default, range, unit, meaning, source; numbers go to IntegrationParameters by the last column
    ("substeps", "int", "1", "1 .. 10000", "1", "world steps a frame, each of frame_time / substeps", "one step a frame"),
    ("iterations", "int", "4", "1 .. 100000", "1", "solver iterations (Rapier's own substeps) a step", "Rapier's default 4"),
    ("pgs", "int", "1", "1 .. 10000", "1", "internal PGS iterations an iteration", "Rapier's default 1"),
    ("stabilization", "int", "1", "0 .. 10000", "1", "internal stabilization iterations", "Rapier's default 1"),
    ("contact_frequency", "real", "30", "0.001 .. 1e9", "Hz", "natural frequency of contacts between moving bodies", "Rapier's default 30"),
    ("contact_damping", "real", "10", "0 .. 1e6", "1", "damping ratio of contacts", "Rapier's default 10"),
    ("static_frequency", "real", "60", "0.001 .. 1e9", "Hz", "natural frequency of contacts with immovable bodies", "Rapier's default 60"),
    ("joint_frequency", "real", "1e6", "0.001 .. 1e9", "Hz", "natural frequency of joints", "Rapier's default 1e6"),
    ("joint_damping", "real", "1", "0 .. 1e6", "1", "damping ratio of joints", "Rapier's default 1"),
    ("warm_start", "real", "1", "0 .. 1", "1", "fraction of the last impulses used as start", "Rapier's default 1"),
    ("warm_start_joints", "bool", "0", "0 | 1", "1", "start joints from their last impulses", "Rapier's default: off"),
    ("allowed_error", "real", "0.005", "0 .. 1", "m", "penetration allowed", "Rapier's default 0.005"),
    ("max_correction", "real", "3", "0 .. inf", "m/s", "largest speed that removes a penetration", "Rapier's default 3"),
    ("prediction", "real", "0.02", "0 .. 10", "m", "gap at which contacts are made", "Rapier's default 0.02"),
    ("max_speed", "real", "400", "0 .. 1e9", "m/s", "bound on linear velocities", "Rapier's default 400"),
    ("fast_rotation", "bool", "0", "0 | 1", "1", "lift the bound on the rotation in a step", "Rapier's default: off"),
    ("gyroscopic", "bool", "1", "0 | 1", "1", "gyroscopic torque", "on here: Rapier's builder leaves it on in this version"),
    ("friction", "choice", "simplified", "simplified | coulomb", "1",
     "one friction row a group of points and a twist row, or one a point", "Rapier's default: simplified"),
    ("contact_clustering", "bool", "1", "0 | 1", "1", "contacts are merged in clusters", "Rapier's default: on"),
    ("contact_recycling", "bool", "1", "0 | 1", "1", "contacts of slow pairs are kept", "Rapier's default: on"),
    ("threads", "int", "1", "1 .. 256", "1", "worker threads", "1: one thread, as every engine here"),
]
CAN = ("sphere capsule box plane cylinder hull compound spherical hinge slider fixed distance spring limits restitution "
       "loads friction_cone worlds threads determinism")
TO_X = (0.5, -0.5, -0.5, -0.5)  # turns x to z, so that Rapier's free axis x is the scene's z


def multiply(a, b):
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw)


class Filter:
    """Listed pairs of bodies that do not collide."""

    def __init__(self, R, pairs):
        self.keep, self.pairs = R.SolverFlags.COMPUTE_IMPULSES, pairs

    def filter_contact_pair(self, context):
        colliders = context.colliders
        pair = frozenset((colliders[context.collider1].user_data, colliders[context.collider2].user_data))
        return None if pair in self.pairs else self.keep


class Rapier:
    @staticmethod
    def describe():
        try:
            import rapier3d
        except ImportError as missing:
            return ["unavailable its Python package does not load: %s" % missing]
        lines = ["version " + getattr(rapier3d, "__version__", "0.36"), "precision float", "device cpu",
                 "license Apache-2.0", "build prebuilt: PyPI wheel rapier3d 0.36.1", "can " + CAN]
        return lines + ["setting " + "\t".join(key) for key in KEYS]

    def __init__(self, scene):
        import rapier3d as R
        self.R = R
        self.value = {k[0]: scene["settings"].get(k[0], k[2]) for k in KEYS}
        number = {k: float(v) if k != "friction" else v for k, v in self.value.items()}
        self.scene, self.time = scene, 0.0
        self.substeps = int(number["substeps"])
        self.h = scene["frame_time"] / self.substeps
        self.world = R.PhysicsWorld(gravity=tuple(scene["gravity"]))
        self.world.set_num_threads(int(number["threads"]))
        p = self.world.integration_parameters
        p.dt = self.h
        p.num_solver_iterations = int(number["iterations"])
        p.num_internal_pgs_iterations = int(number["pgs"])
        p.num_internal_stabilization_iterations = int(number["stabilization"])
        p.contact_softness = R.SpringCoefficients(number["contact_frequency"], number["contact_damping"])
        p.static_contact_softness = R.SpringCoefficients(number["static_frequency"], number["contact_damping"])
        p.warmstart_coefficient = number["warm_start"]
        p.warmstart_joints = number["warm_start_joints"] > 0
        p.normalized_allowed_linear_error = number["allowed_error"]
        p.normalized_max_corrective_velocity = min(number["max_correction"], 1e30)
        p.normalized_prediction_distance = number["prediction"]
        p.normalized_max_linear_velocity = number["max_speed"]
        p.friction_model = R.FrictionModel.COULOMB if number["friction"] == "coulomb" else R.FrictionModel.SIMPLIFIED
        p.contact_clustering = number["contact_clustering"] > 0
        p.contact_recycling = number["contact_recycling"] > 0
        self.number = number
        self.add_bodies()
        self.add_joints()

    def frame(self, pose, turn=None):
        q = multiply(pose[3:], turn) if turn else pose[3:]
        return self.R.Isometry3(translation=tuple(pose[:3]), rotation=self.R.Rotation3(*q))

    def groups(self):
        """One bit for each pair of (collision group, world) that occurs; its filter leaves out what it ignores."""
        kinds = sorted({(b["group"], b["world"]) for b in self.scene["bodies"]})
        if len(kinds) > 32:
            raise Refused("unsupported", "more than 32 combinations of collision group and world")
        R, made = self.R, {}
        for i, (group, world) in enumerate(kinds):
            mask = sum(1 << k for k, (g, w) in enumerate(kinds) if w == world and not (g == group and group > 0))
            made[group, world] = R.InteractionGroups(R.Group(1 << i), R.Group(mask), R.InteractionTestMode.AND)
        return made

    def collider(self, shape, groups):
        R = self.R
        body = shape["body"]
        kind, r, l, half = shape["kind"], shape["radius"], shape["half_length"], shape["half"]
        turn = None
        if kind == "sphere":
            made = R.SharedShape.ball(r)
        elif kind == "capsule":
            made = R.SharedShape.capsule_z(l, r)
        elif kind == "box":
            made = R.SharedShape.cuboid(*half)
        elif kind == "plane":
            made = R.SharedShape.halfspace((0.0, 0.0, 1.0))
        elif kind == "cylinder":  # along y in Rapier
            made, turn = R.SharedShape.cylinder(l, r), (0.7071067811865476, 0.7071067811865476, 0.0, 0.0)
        else:
            made = R.SharedShape.convex_hull([tuple(v) for v in shape["vertices"]])
        made = (R.Collider.new(made).position(self.frame(shape["local"], turn)).density(0.0).user_data(body)
                .friction(self.scene["friction"][0]).restitution(self.scene["restitution"][0]).collision_groups(groups))
        return made.active_hooks(R.ActiveHooks.FILTER_CONTACT_PAIRS) if body in self.listed else made

    def add_bodies(self):
        R, groups = self.R, self.groups()
        joined = {frozenset((j["a"], j["b"])) for j in self.scene["joints"]}
        pairs = {frozenset(pair) for pair in self.scene["ignored"]} - joined
        self.listed = {body for pair in pairs for body in pair}
        if pairs:
            self.world.physics_hooks = Filter(R, pairs)
        types = {"dynamic": R.RigidBodyType.DYNAMIC, "static": R.RigidBodyType.FIXED,
                 "kinematic": R.RigidBodyType.KINEMATIC_VELOCITY_BASED}  # refused before
        shapes = [[] for _ in self.scene["bodies"]]
        for shape in self.scene["shapes"]:
            shapes[shape["body"]].append(shape)
        self.handles = []
        for body, own in zip(self.scene["bodies"], shapes):
            v = body["velocity"]
            made = (R.RigidBodyBuilder(types[body["motion"]]).position(self.frame(body["pose"])).can_sleep(False)
                    .linear_damping(0.0).angular_damping(0.0).gyroscopic_forces(self.number["gyroscopic"] > 0)
                    .allow_fast_rotation(self.number["fast_rotation"] > 0))
            if body["motion"] != "static":
                made = made.linvel(tuple(v[:3])).angvel(tuple(v[3:]))
            if body["motion"] == "dynamic":
                made = made.additional_mass_properties(R.MassProperties(
                    local_com=(0.0, 0.0, 0.0), mass=body["mass"], principal_inertia=tuple(body["inertia"])))
            kind = groups[body["group"], body["world"]]
            self.handles.append(self.world.add_body(made, [self.collider(s, kind) for s in own]))

    def add_joints(self):
        R, world = self.R, self.world
        softness = R.SpringCoefficients(self.number["joint_frequency"], self.number["joint_damping"])
        anchor = None
        masks = {"spherical": R.JointAxesMask.LOCKED_SPHERICAL_AXES, "hinge": R.JointAxesMask.LOCKED_REVOLUTE_AXES,
                 "slider": R.JointAxesMask.LOCKED_PRISMATIC_AXES, "fixed": R.JointAxesMask.LOCKED_FIXED_AXES}
        for joint in self.scene["joints"]:
            if joint["a"] < 0 and anchor is None:
                anchor = world.add_body(R.RigidBodyBuilder(R.RigidBodyType.FIXED))
            a = self.handles[joint["a"]] if joint["a"] >= 0 else anchor
            kind, axis = joint["kind"], R.JointAxis.ANG_X if joint["kind"] == "hinge" else R.JointAxis.LIN_X
            if joint["motor"] != "none":
                raise Refused("unsupported", "motors")
            if kind == "spring":
                made = (R.SpringJointBuilder(joint["rest"], joint["stiffness"], joint["damping"])
                        .spring_model(R.MotorModel.FORCE_BASED)
                        .local_anchor1(tuple(joint["frame_a"][:3])).local_anchor2(tuple(joint["frame_b"][:3])))
            elif kind == "distance":
                low, high = joint["limits"] or (joint["rest"], joint["rest"])
                made = (R.GenericJointBuilder(R.JointAxesMask.empty()).coupled_axes(R.JointAxesMask.LIN_AXES)
                        .limits(R.JointAxis.LIN_X, low, high).softness(softness)
                        .local_anchor1(tuple(joint["frame_a"][:3])).local_anchor2(tuple(joint["frame_b"][:3])))
            else:
                made = (R.GenericJointBuilder(masks[kind]).local_frame1(self.frame(joint["frame_a"], TO_X))
                        .local_frame2(self.frame(joint["frame_b"], TO_X)).softness(softness))
                if joint["limits"]:
                    made = made.limits(axis, *joint["limits"])
                if joint["stiffness"] > 0 or joint["damping"] > 0:
                    made = (made.motor_model(axis, R.MotorModel.FORCE_BASED)
                            .motor_position(axis, joint["rest"], joint["stiffness"], joint["damping"]))
            world.impulse_joints.insert(a, self.handles[joint["b"]], made.contacts_enabled(False).build())

    def apply_loads(self):
        bodies = self.world.rigid_bodies
        for load in self.scene["loads"]:
            body = bodies[self.handles[load["body"]]]
            body.reset_forces()
            body.reset_torques()
        for load in self.scene["loads"]:
            share = (min(self.time + self.h, load["end"]) - max(self.time, load["start"])) / self.h
            if share > 0:
                body = bodies[self.handles[load["body"]]]
                body.add_force(tuple(share * f for f in load["force"][:3]))
                body.add_torque(tuple(share * f for f in load["force"][3:]))

    def step(self):
        collide = solve = 0.0
        start = self.time
        for k in range(self.substeps):
            self.time = start + k * self.h
            if self.scene["loads"]:
                self.apply_loads()
            self.world.step()
            stages = self.world.physics_pipeline.counters.stages
            collide += stages.collision_detection_time_ms
            solve += stages.solver_time_ms
        self.time = start + self.scene["frame_time"]
        if not self.world.quarantine.is_empty():  # Rapier puts such bodies back and freezes them
            raise Refused("diverged", "bodies with a state that is not finite at %g s" % self.time)
        return {"collide_ms": collide, "solve_ms": solve, "contacts": self.world.physics_pipeline.counters.solver.ncontacts}

    def state(self):
        rows, bodies = [], self.world.rigid_bodies
        for body, handle in zip(self.scene["bodies"], self.handles):
            if body["motion"] == "static":
                rows += body["pose"] + [0.0] * 6
                continue
            b = bodies[handle]
            t, q, v, w = b.translation, b.rotation, b.linvel, b.angvel
            size = (q.w * q.w + q.i * q.i + q.j * q.j + q.k * q.k) ** 0.5
            rows += (t.x, t.y, t.z, q.w / size, q.i / size, q.j / size, q.k / size, v.x, v.y, v.z, w.x, w.y, w.z)
        return rows


if __name__ == "__main__":
    serve(Rapier)
