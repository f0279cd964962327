/* The exact island solver from outside: conservation by the energy-momentum step for every joint kind, closed forms,
 * limits and motors at their bounds, redundant and conflicting joints, contacts with friction, the fallback ladder. */
#include "pabd.h"
#include "real.h"
#include "test.h"

static const double g = 9.81;
static const int is_float = sizeof(real) == 4;

typedef pabd_dvec3 dvec3;
static dvec3 vec(double x, double y, double z) {
  return (dvec3){x, y, z};
}
static dvec3 plus(dvec3 a, double s, dvec3 b) {
  return vec(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z);
}
static dvec3 cross(dvec3 a, dvec3 b) {
  return vec(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
static double dot(dvec3 a, dvec3 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
static double norm(dvec3 a) {
  return sqrt(dot(a, a));
}
static dvec3 turned(const double q[4], dvec3 v) {
  dvec3 u = vec(q[1], q[2], q[3]), t = cross(u, v);
  t = vec(2 * t.x, 2 * t.y, 2 * t.z);
  return plus(plus(v, q[0], t), 1.0, cross(u, t));
}
static dvec3 turned_back(const double q[4], dvec3 v) {
  double c[4] = {q[0], -q[1], -q[2], -q[3]};
  return turned(c, v);
}

/* A scene under construction and its simulation. */
#define MAX_BODIES 128
typedef struct world {
  pabd_scene scene;
  pabd_sim *sim;
  double mass[MAX_BODIES], pose[MAX_BODIES][7], velocity[MAX_BODIES][6];
  dvec3 inertia[MAX_BODIES];
  pabd_stats total; /* ladder counts added up over the frames */
} world;

static void begin(world *w, double gravity) {
  memset(w, 0, sizeof *w);
  pabd_scene_init(&w->scene);
  w->scene.gravity.z = -gravity;
}
/* A body without shape: a rod of 1 x 0.2 x 0.2 m along its x axis. */
static int32_t add_rod(world *w, double mass, dvec3 at) {
  pabd_shape box = pabd_shape_default(PABD_BOX);
  box.half = vec(0.5, 0.1, 0.1);
  pabd_body body = pabd_body_default();
  body.mass = mass;
  body.inertia = pabd_shape_inertia(&box, mass);
  body.pose.p = at;
  return pabd_scene_add_body(&w->scene, &body);
}
static pabd_joint *add_joint(world *w, pabd_joint_kind kind, int32_t a, int32_t b, dvec3 at, dvec3 turn) {
  pabd_joint joint = pabd_joint_default(kind);
  joint.body_a = a, joint.body_b = b;
  pabd_dpose frame = {at, pabd_dquat_from_rotation_vector(turn)};
  pabd_joint_place(&w->scene, &joint, frame);
  int32_t index = pabd_scene_add_joint(&w->scene, &joint);
  return &w->scene.joints[index];
}
static pabd_params direct_params(int substeps) {
  pabd_params params = pabd_params_default();
  params.global_step = PABD_STEP_DIRECT;
  params.direct_substeps = substeps;
  return params;
}
static int start(world *w, pabd_params params) {
  pabd_error error = {""};
  for (int32_t i = 0; i < w->scene.body_count && i < MAX_BODIES; ++i)
    w->mass[i] = w->scene.bodies[i].motion == PABD_DYNAMIC ? w->scene.bodies[i].mass : 0,
    w->inertia[i] = w->scene.bodies[i].inertia;
  if (pabd_sim_create(&w->scene, &params, &w->sim, &error) != PABD_OK) {
    printf("%s\n", error.text);
    return 0;
  }
  pabd_sim_read(w->sim, w->pose[0], w->velocity[0]);
  return 1;
}
static int step(world *w) {
  pabd_status status = pabd_sim_step(w->sim);
  pabd_sim_read(w->sim, w->pose[0], w->velocity[0]);
  pabd_stats stats;
  pabd_sim_stats(w->sim, &stats);
  w->total.newton_iterations += stats.newton_iterations, w->total.ladder_halvings += stats.ladder_halvings;
  w->total.ladder_bdf2 += stats.ladder_bdf2, w->total.ladder_euler += stats.ladder_euler;
  w->total.ladder_exhausted += stats.ladder_exhausted, w->total.newton_failures += stats.newton_failures;
  w->total.driver_work = stats.driver_work, w->total.island_direct = stats.island_direct;
  w->total.overflow_fill += stats.overflow_fill;
  return status == PABD_OK;
}
static void end(world *w) {
  pabd_sim_destroy(w->sim);
  pabd_scene_free(&w->scene);
}

static dvec3 place(const world *w, int32_t i) {
  return vec(w->pose[i][0], w->pose[i][1], w->pose[i][2]);
}
static dvec3 speed(const world *w, int32_t i) {
  return vec(w->velocity[i][0], w->velocity[i][1], w->velocity[i][2]);
}
static dvec3 spin(const world *w, int32_t i) { /* angular momentum about the body's center */
  dvec3 o = turned_back(&w->pose[i][3], vec(w->velocity[i][3], w->velocity[i][4], w->velocity[i][5]));
  return turned(&w->pose[i][3], vec(w->inertia[i].x * o.x, w->inertia[i].y * o.y, w->inertia[i].z * o.z));
}
static double kinetic(const world *w) {
  double e = 0;
  for (int32_t i = 0; i < w->scene.body_count; ++i)
    e += 0.5 * w->mass[i] * dot(speed(w, i), speed(w, i)) +
         0.5 * (w->mass[i] > 0) * dot(vec(w->velocity[i][3], w->velocity[i][4], w->velocity[i][5]), spin(w, i));
  return e;
}
static double energy(const world *w) {
  double e = kinetic(w);
  for (int32_t i = 0; i < w->scene.body_count; ++i) e -= w->mass[i] * w->scene.gravity.z * w->pose[i][2];
  return e;
}
static void momenta(const world *w, dvec3 *linear, dvec3 *angular) {
  *linear = *angular = vec(0, 0, 0);
  for (int32_t i = 0; i < w->scene.body_count; ++i) {
    *linear = plus(*linear, w->mass[i], speed(w, i));
    *angular = plus(*angular, w->mass[i], cross(place(w, i), speed(w, i)));
    *angular = plus(*angular, 1.0, spin(w, i));
  }
}
static dvec3 world_point(const world *w, int32_t i, dvec3 local) {
  return i < 0 ? local : plus(place(w, i), 1.0, turned(&w->pose[i][3], local));
}
static dvec3 world_axis(const world *w, int32_t i, pabd_dquat frame, int axis) {
  double q[4] = {frame.w, frame.x, frame.y, frame.z};
  dvec3 v = turned(q, vec(axis == 0, axis == 1, axis == 2));
  return i < 0 ? v : turned(&w->pose[i][3], v);
}
/* Error of a joint's hard rows (m; directions as sines), measured from the poses. */
static double joint_error(const world *w, int32_t k) {
  const pabd_joint *j = &w->scene.joints[k];
  dvec3 d = plus(world_point(w, j->body_b, j->frame_b.p), -1.0, world_point(w, j->body_a, j->frame_a.p));
  dvec3 a[3], b[3];
  for (int axis = 0; axis < 3; ++axis)
    a[axis] = world_axis(w, j->body_a, j->frame_a.q, axis), b[axis] = world_axis(w, j->body_b, j->frame_b.q, axis);
  double rotation = norm(cross(a[0], b[0])) + norm(cross(a[1], b[1])) + norm(cross(a[2], b[2]));
  switch (j->kind) {
    case PABD_SPHERICAL:
      return norm(d);
    case PABD_HINGE:
      return norm(d) + norm(cross(a[2], b[2]));
    case PABD_SLIDER:
      return norm(cross(a[2], d)) + rotation;
    case PABD_FIXED:
      return norm(d) + rotation;
    case PABD_UNIVERSAL:
      return norm(d) + fabs(dot(a[0], b[1]));
    case PABD_DISTANCE:
      return fabs(norm(d) - j->rest);
    default:
      return 0.0;
  }
}
/* Angle of a hinge. */
static double angle_of(const world *w, int32_t k) {
  const pabd_joint *j = &w->scene.joints[k];
  dvec3 x = world_axis(w, j->body_a, j->frame_a.q, 0), y = world_axis(w, j->body_a, j->frame_a.q, 1),
        b = world_axis(w, j->body_b, j->frame_b.q, 0);
  return atan2(dot(y, b), dot(x, b));
}

/* ---- conservation */

static const pabd_joint_kind kinds[] = {PABD_SPHERICAL, PABD_HINGE,     PABD_SLIDER,
                                        PABD_FIXED,     PABD_UNIVERSAL, PABD_DISTANCE};
static const char *const kind_names[] = {"ball", "hinge", "slider", "fixed", "universal", "distance"};

/* Three rods in free space on two joints of one kind, tumbling for 10 s: the energy-momentum step keeps energy, both
 * momenta and the joints. */
TEST(free_islands_keep_energy_and_momenta) {
  for (int k = 0; k < 6; ++k) {
    world w;
    begin(&w, 0);
    for (int i = 0; i < 3; ++i) add_rod(&w, 1 + i, vec(i, 0, 0));
    for (int i = 0; i < 2; ++i) {
      dvec3 at = vec(i + 0.5, 0.05, 0.02);
      pabd_joint *j = add_joint(&w, kinds[k], i, i + 1, at, vec(0.3, 0.2 + i, 0.4));
      if (kinds[k] == PABD_DISTANCE) j->frame_b.p = vec(-0.2, 0.1, 0.05), j->frame_a.p = vec(0.1, -0.1, 0), j->rest = 0;
      if (kinds[k] == PABD_SLIDER) j->stiffness = 20;
    }
    /* one rigid motion for all, which every joint allows, and a swing of the last body where its joint does */
    for (int i = 0; i < 3; ++i) {
      pabd_body *b = &w.scene.bodies[i];
      b->angular = vec(0.7, -1.1, 0.9);
      b->linear = plus(vec(0.2, 0.1, -0.3), 1.0, cross(b->angular, b->pose.p));
    }
    if (kinds[k] == PABD_SPHERICAL) { /* the last body turns about its joint */
      pabd_body *b = &w.scene.bodies[2];
      b->angular = plus(b->angular, 1.0, vec(2, 1, 0));
      b->linear = plus(b->linear, 1.0, cross(vec(2, 1, 0), plus(b->pose.p, -1.0, vec(1.5, 0.05, 0.02))));
    }
    if (kinds[k] == PABD_DISTANCE)
      for (int i = 0; i < 2; ++i) {
        const pabd_joint *j = &w.scene.joints[i];
        w.scene.joints[i].rest =
            norm(plus(plus(vec(i + 1, 0, 0), 1.0, j->frame_b.p), -1.0, plus(vec(i, 0, 0), 1.0, j->frame_a.p)));
      }
    REQUIRE(start(&w, direct_params(2)));
    double e0 = energy(&w), worst_energy = 0, worst_joint = 0, worst_linear = 0, worst_angular = 0;
    dvec3 p0, l0, p, l;
    momenta(&w, &p0, &l0);
    double spring0 = 0;
    for (int frame = 0; frame < 600; ++frame) {
      CHECK(step(&w));
      double spring = 0;
      for (int i = 0; i < 2; ++i) {
        worst_joint = fmax(worst_joint, joint_error(&w, i));
        const pabd_joint *j = &w.scene.joints[i];
        if (kinds[k] == PABD_SLIDER) {
          dvec3 d = plus(world_point(&w, j->body_b, j->frame_b.p), -1.0, world_point(&w, j->body_a, j->frame_a.p));
          double x = dot(world_axis(&w, j->body_a, j->frame_a.q, 2), d);
          spring += 0.5 * j->stiffness * x * x;
        }
      }
      momenta(&w, &p, &l);
      worst_energy = fmax(worst_energy, fabs(energy(&w) + spring - spring0 - e0) / e0);
      worst_linear = fmax(worst_linear, norm(plus(p, -1.0, p0)) / norm(p0));
      worst_angular = fmax(worst_angular, norm(plus(l, -1.0, l0)) / norm(l0));
    }
    double exact = is_float ? 1e-4 : 1e-10;
    CHECK_MSG(worst_energy < (is_float ? 1e-3 : 1e-9), "%s: energy %g", kind_names[k], worst_energy);
    CHECK_MSG(worst_linear < exact, "%s: linear momentum %g", kind_names[k], worst_linear);
    CHECK_MSG(worst_angular < exact, "%s: angular momentum %g", kind_names[k], worst_angular);
    CHECK_MSG(worst_joint < (is_float ? 2e-5 : 1e-9), "%s: joint error %g", kind_names[k], worst_joint);
    CHECK_INT(w.total.island_direct, 1);
    CHECK_INT(w.total.ladder_exhausted, 0);
    end(&w);
  }
}

/* ---- closed forms */

/* A hinged rod released from the horizontal passes the vertical with energy and time of the pendulum:
 * theta'' = -(m g l / I) sin theta, quarter period from rest at 90 degrees K(1/2)/w0. */
TEST(hinged_rod_swings_in_its_time) {
  static const pabd_joint_kind hung[] = {PABD_SPHERICAL, PABD_HINGE};
  for (int k = 0; k < 2; ++k) {
    world w;
    begin(&w, g);
    add_rod(&w, 2, vec(0.5, 0, 0));
    add_joint(&w, hung[k], PABD_WORLD, 0, vec(0, 0, 0), vec(-M_PI / 2, 0, 0));
    REQUIRE(start(&w, direct_params(8)));
    double pivot = w.inertia[0].y + 2 * 0.25, w0 = sqrt(2 * g * 0.5 / pivot);
    double expected = 1.8540746773013719 / w0, before = w.pose[0][0], when = NAN;
    for (int frame = 1; frame < 90; ++frame) {
      CHECK(step(&w));
      if (before > 0 && w.pose[0][0] <= 0 && isnan(when)) when = (frame - 1 + before / (before - w.pose[0][0])) / 60.0;
      before = w.pose[0][0];
    }
    CHECK_NEAR(when, expected, 3e-4);
    end(&w);
  }
}

/* Slider with spring and damper under gravity: z'' = -g - k z/m - c z'/m. */
TEST(slider_with_spring_and_damper) {
  world w;
  begin(&w, g);
  add_rod(&w, 2, vec(0, 0, 0));
  pabd_joint *j = add_joint(&w, PABD_SLIDER, PABD_WORLD, 0, vec(0, 0, 0), vec(0, 0, 0));
  j->stiffness = 200, j->damping = 4;
  REQUIRE(start(&w, direct_params(16)));
  double decay = 4 / (2.0 * 2), freq = sqrt(200 / 2.0 - decay * decay), rest = -g / 100;
  for (int frame = 1; frame <= 120; ++frame) {
    CHECK(step(&w));
    double t = frame / 60.0;
    double z = rest - rest * exp(-decay * t) * (cos(freq * t) + decay / freq * sin(freq * t));
    CHECK_NEAR(w.pose[0][2], z, 5e-4);
  }
  end(&w);
}

static void make_chain(world *w, pabd_joint_kind kind, int links, double ratio) {
  begin(w, g);
  for (int i = 0; i < links; ++i) {
    add_rod(w, i == links - 1 ? ratio : 1, vec(i + 0.5, 0, 0));
    add_joint(w, kind, i - 1, i, vec(i, 0, 0), vec(-M_PI / 2, 0, 0));
  }
}

/* ---- limits */

/* A hinge limit hit at speed: no energy is gained at any step, the limit holds, and the rod rests on it (plastic). */
TEST(hinge_limit_hit_at_speed) {
  world w;
  begin(&w, g);
  add_rod(&w, 2, vec(0.5, 0, 0));
  pabd_joint *j = add_joint(&w, PABD_HINGE, PABD_WORLD, 0, vec(0, 0, 0), vec(-M_PI / 2, 0, 0));
  j->has_limits = 1, j->lower = -0.4, j->upper = 0.9;
  w.scene.bodies[0].angular = vec(0, 12, 0);
  w.scene.bodies[0].linear = vec(0, 0, -6);
  REQUIRE(start(&w, direct_params(2)));
  double last = energy(&w), first = last, lowest = 1, highest = -1;
  for (int frame = 0; frame < 300; ++frame) {
    CHECK(step(&w));
    double now = energy(&w);
    CHECK_MSG(now < last + (is_float ? 1e-4 : 1e-9) * first, "frame %d gains %g of %g J", frame, now - last, first);
    last = now;
    if (angle_of(&w, 0) > 0.9 - 1e-4) CHECK_NEAR(kinetic(&w), 0, 1e-6); /* not even in the frame of the hit */
    lowest = fmin(lowest, angle_of(&w, 0)), highest = fmax(highest, angle_of(&w, 0));
  }
  CHECK(highest < 0.9 + (is_float ? 1e-5 : 1e-9));
  CHECK(lowest > -0.4 - 1e-5);
  CHECK_NEAR(angle_of(&w, 0), 0.9, 1e-5); /* hangs on its upper limit */
  CHECK_NEAR(kinetic(&w), 0, 1e-8);
  CHECK(last < first - 20);
  end(&w);
}

/* A rope (distance with limits) is slack, then taut: plastic, and never longer than its length. */
TEST(rope_becomes_taut) {
  world w;
  begin(&w, g);
  add_rod(&w, 2, vec(0, 0, -0.2));
  pabd_joint *j = add_joint(&w, PABD_DISTANCE, PABD_WORLD, 0, vec(0, 0, 0), vec(0, 0, 0));
  j->frame_b.p = vec(0, 0, 0), j->has_limits = 1, j->lower = 0, j->upper = 1, j->rest = 0;
  REQUIRE(start(&w, direct_params(2)));
  double taut = sqrt(2 * 0.8 / g);
  for (int frame = 1; frame <= 60; ++frame) {
    CHECK(step(&w));
    double t = frame / 60.0;
    if (t < taut) CHECK_NEAR(w.pose[0][2], -0.2 - 0.5 * g * t * t, 1e-5);
    CHECK(w.pose[0][2] > -1 - 1e-5);
  }
  CHECK_NEAR(w.pose[0][2], -1, 1e-5);
  CHECK_NEAR(kinetic(&w), 0, 1e-8);
  end(&w);
}

/* Two hinges on one axis with limit ranges that exclude each other: no solution exists. The rod must come to rest
 * between them, without gaining energy. */
TEST(conflicting_limits_stay_finite) {
  world w;
  begin(&w, g);
  add_rod(&w, 2, vec(0.5, 0, 0));
  for (int k = 0; k < 2; ++k) {
    pabd_joint *j = add_joint(&w, PABD_HINGE, PABD_WORLD, 0, vec(0, k ? 0.05 : -0.05, 0), vec(-M_PI / 2, 0, 0));
    j->has_limits = 1, j->lower = k ? 0.3 : -0.5, j->upper = k ? 0.6 : 0.2;
  }
  REQUIRE(start(&w, direct_params(2)));
  double first = energy(&w);
  for (int frame = 0; frame < 240; ++frame) {
    CHECK(step(&w));
    CHECK(energy(&w) < first + 10); /* what the turn out of the violated limits may cost: m g l sin(0.5) */
  }
  double angle = angle_of(&w, 0);
  CHECK_MSG(angle > 0.15 && angle < 0.35, "rests at %g rad", angle);
  CHECK_NEAR(kinetic(&w), 0, 1e-3);
  end(&w);
}

/* A heavy chain of limited hinges: many limits at once, at speed, in a stiff system. */
TEST(heavy_chain_of_limits_gains_nothing) {
  static const double limit[] = {0.1, 0.4};
  for (int k = 0; k < 2; ++k) {
    world w;
    make_chain(&w, PABD_HINGE, 10, 1000);
    for (int i = 0; i < 10; ++i) {
      pabd_joint *j = &w.scene.joints[i];
      j->has_limits = 1, j->lower = -limit[k], j->upper = limit[k];
    }
    REQUIRE(start(&w, direct_params(2)));
    double scale = 1000 * g * 9.5, first = energy(&w), gain = 0, gap = 0, beyond = 0;
    for (int frame = 0; frame < 600; ++frame) {
      CHECK(step(&w));
      gain = fmax(gain, (energy(&w) - first) / scale);
      for (int i = 0; i < 10; ++i)
        gap = fmax(gap, joint_error(&w, i)), beyond = fmax(beyond, fabs(angle_of(&w, i)) - limit[k]);
    }
    CHECK_NEAR(gain, 0, is_float ? 1e-4 : 1e-12);
    CHECK_NEAR(gap, 0, 1e-4);
    CHECK_NEAR(fmax(beyond, 0), 0, is_float ? 1e-3 : 1e-9);
    end(&w);
  }
}

/* ---- motors */

/* A rate motor with a bound: torque tau until the rate is reached, tau/I uniformly, then the rate; the work counted is
 * the energy gained. */
TEST(rate_motor_at_its_bound) {
  world w;
  begin(&w, 0);
  add_rod(&w, 2, vec(0, 0, 0));
  pabd_joint *j = add_joint(&w, PABD_HINGE, PABD_WORLD, 0, vec(0, 0, 0), vec(0, 0, 0));
  j->motor = PABD_MOTOR_RATE, j->motor_target = 3, j->motor_max = 0.5;
  REQUIRE(start(&w, direct_params(2)));
  double growth = 0.5 / w.inertia[0].z, reached = 3 / growth, before = 0;
  for (int frame = 1; frame <= 120; ++frame) {
    CHECK(step(&w));
    double t = frame / 60.0, expected = t < reached ? growth * t : 3;
    if (fabs(t - reached) > 0.02) CHECK_NEAR(w.velocity[0][5], expected, 6e-4);
    CHECK(w.velocity[0][5] < 3 + 1e-3);
    if (frame == 80) before = angle_of(&w, 0);
  }
  /* the angle keeps the rate exactly */
  CHECK_NEAR(remainder(angle_of(&w, 0) - before - 3 * 40 / 60.0, 2 * M_PI), 0, 1e-5);
  CHECK_NEAR(w.total.driver_work, 0.5 * w.inertia[0].z * 9, 2e-3);
  end(&w);
}

/* A position servo follows a sine. */
TEST(position_motor_follows_its_set_point) {
  world w;
  begin(&w, g);
  add_rod(&w, 2, vec(0.5, 0, 0));
  pabd_joint *j = add_joint(&w, PABD_HINGE, PABD_WORLD, 0, vec(0, 0, 0), vec(-M_PI / 2, 0, 0));
  j->motor = PABD_MOTOR_POSITION, j->motor_target = 0, j->motor_max = INFINITY;
  j->motor_amplitude = 0.5, j->motor_frequency = 4, j->motor_phase = 0;
  REQUIRE(start(&w, direct_params(4)));
  for (int frame = 1; frame <= 120; ++frame) {
    CHECK(step(&w));
    if (frame > 15) CHECK_NEAR(angle_of(&w, 0), 0.5 * sin(4 * frame / 60.0), 0.004);
  }
  end(&w);
}

/* A motor too weak for its load is dragged along by it: torque stays at the bound. */
TEST(weak_motor_is_dragged) {
  world w;
  begin(&w, g);
  add_rod(&w, 2, vec(0.5, 0, 0));
  pabd_joint *j = add_joint(&w, PABD_HINGE, PABD_WORLD, 0, vec(0, 0, 0), vec(-M_PI / 2, 0, 0));
  j->motor = PABD_MOTOR_RATE, j->motor_target = 0, j->motor_max = 3; /* the load is 9.81 N m */
  REQUIRE(start(&w, direct_params(4)));
  double pivot = w.inertia[0].y + 2 * 0.25;
  double start_energy = energy(&w);
  for (int frame = 0; frame < 15; ++frame) CHECK(step(&w));
  double angle = angle_of(&w, 0), rate = w.velocity[0][4];
  CHECK(rate > 1);
  CHECK_NEAR(energy(&w), start_energy - 3 * fabs(angle), 5e-3); /* the brake takes tau times the angle */
  CHECK_NEAR(0.5 * pivot * rate * rate, 2 * g * 0.5 * sin(fabs(angle)) - 3 * fabs(angle), 5e-3);
  end(&w);
}

/* ---- loops, redundancy, conflict */

/* A door on one, two and three hinges along one axis swings alike: five redundant rows a hinge. */
TEST(redundant_hinges_swing_as_one) {
  double pose[3][7];
  for (int count = 1; count <= 3; ++count) {
    world w;
    begin(&w, g);
    add_rod(&w, 2, vec(0.5, 0, 0));
    for (int k = 0; k < count; ++k) add_joint(&w, PABD_HINGE, PABD_WORLD, 0, vec(0, 0.1 * k, 0), vec(-M_PI / 2, 0, 0));
    REQUIRE(start(&w, direct_params(2)));
    double first = energy(&w), worst = 0, gap = 0;
    for (int frame = 0; frame < 120; ++frame) {
      CHECK(step(&w));
      worst = fmax(worst, fabs(energy(&w) - first));
      for (int k = 0; k < count; ++k) gap = fmax(gap, joint_error(&w, k));
    }
    CHECK_NEAR(worst / (2 * g * 0.5), 0, is_float ? 2e-4 : 1e-8);
    CHECK_NEAR(gap, 0, 1e-6);
    memcpy(pose[count - 1], w.pose[0], sizeof pose[0]);
    end(&w);
  }
  for (int k = 0; k < 7; ++k) {
    CHECK_NEAR(pose[1][k], pose[0][k], is_float ? 2e-4 : 1e-7);
    CHECK_NEAR(pose[2][k], pose[0][k], is_float ? 2e-4 : 1e-7);
  }
}

/* A body fixed to the world at two places 2 mm apart: the error is shared, nothing moves, nothing blows up. */
TEST(conflicting_joints_share_the_error) {
  world w;
  begin(&w, g);
  add_rod(&w, 2, vec(0, 0, 0));
  add_joint(&w, PABD_FIXED, PABD_WORLD, 0, vec(0, 0, 0), vec(0, 0, 0));
  pabd_joint *j = add_joint(&w, PABD_FIXED, PABD_WORLD, 0, vec(0, 0, 0), vec(0, 0, 0));
  j->frame_a.p.z = 0.002;
  REQUIRE(start(&w, direct_params(2)));
  for (int frame = 0; frame < 120; ++frame) {
    CHECK(step(&w));
    CHECK(w.pose[0][2] > -0.001 && w.pose[0][2] < 0.003);
    CHECK(kinetic(&w) < 0.5 * 2 * 0.3 * 0.3); /* closing 2 mm within a substep is 0.24 m/s */
  }
  end(&w);
}

/* A parallelogram of three bars on the ground passes its stretched position, where a freedom appears. */
TEST(four_bar_passes_its_singular_position) {
  world w;
  begin(&w, g);
  static const double x[] = {0, 1, 0.5}, z[] = {0.5, 0.5, 1};
  for (int i = 0; i < 3; ++i) {
    add_rod(&w, 1, vec(x[i], 0, z[i]));
    pabd_body *b = &w.scene.bodies[i];
    if (i < 2) b->pose.q = pabd_dquat_from_rotation_vector(vec(0, -M_PI / 2, 0)), b->angular = vec(0, 1, 0);
    b->linear = vec(i < 2 ? 0.5 : 1, 0, 0);
  }
  dvec3 axis = vec(-M_PI / 2, 0, 0);
  add_joint(&w, PABD_HINGE, PABD_WORLD, 0, vec(0, 0, 0), axis);
  add_joint(&w, PABD_HINGE, PABD_WORLD, 1, vec(1, 0, 0), axis);
  add_joint(&w, PABD_HINGE, 0, 2, vec(0, 0, 1), axis);
  add_joint(&w, PABD_HINGE, 1, 2, vec(1, 0, 1), axis);
  REQUIRE(start(&w, direct_params(2)));
  double first = energy(&w), worst = 0, gap = 0;
  for (int frame = 0; frame < 300; ++frame) {
    CHECK(step(&w));
    worst = fmax(worst, fabs(energy(&w) - first));
    for (int k = 0; k < 4; ++k) gap = fmax(gap, joint_error(&w, k));
    CHECK_NEAR(w.pose[2][4], 0, 1e-5); /* the top bar stays level: it did not change its branch */
  }
  CHECK_NEAR(worst / (4 * g), 0, 5e-4);
  CHECK_NEAR(gap, 0, 1e-6);
  end(&w);
}

/* ---- ladder */

/* The heavy chain whips its light links. At one step a frame the energy-momentum step fails there and is halved;
 * whatever happens, the energy must not rise, and the joints hold. */
TEST(ladder_halves_and_keeps_the_energy) {
  world w;
  make_chain(&w, PABD_SPHERICAL, 10, 10000);
  REQUIRE(start(&w, direct_params(1)));
  double scale = 10000 * g * 9.5, first = energy(&w), gap = 0, loss = 0, gain = 0;
  for (int frame = 0; frame < 600; ++frame) {
    CHECK(step(&w));
    for (int k = 0; k < 10; ++k) gap = fmax(gap, joint_error(&w, k));
    gain = fmax(gain, (energy(&w) - first) / scale), loss = fmax(loss, (first - energy(&w)) / scale);
  }
  CHECK(w.total.newton_failures > 0);
  CHECK(w.total.ladder_halvings > 0);
  CHECK(w.total.ladder_bdf2 < w.total.ladder_halvings / 10); /* halving comes first, and nearly always suffices */
  CHECK_INT(w.total.ladder_exhausted, 0);
  CHECK_MSG(gain < 1e-3 && loss < 0.01, "gain %g, loss %g", gain, loss);
  CHECK_NEAR(gap, 0, 2e-5);
  end(&w);
}

/* Euler loses energy, BDF2 less of it, the energy-momentum step next to none: they are what they are called. */
TEST(integrators_differ_as_they_should) {
  double loss[4];
  for (int k = 0; k < 4; ++k) {
    world w;
    make_chain(&w, PABD_SPHERICAL, 2, 1);
    pabd_params params = direct_params(2);
    params.integrator = k;
    REQUIRE(start(&w, params));
    double first = energy(&w);
    for (int frame = 0; frame < 120; ++frame) CHECK(step(&w));
    loss[k] = (first - energy(&w)) / (2 * g);
    end(&w);
  }
  CHECK_NEAR(loss[PABD_INTEGRATOR_AUTO], 0, 2e-4);
  CHECK_NEAR(loss[PABD_INTEGRATOR_ENERGY_MOMENTUM], 0, 2e-4);
  CHECK(loss[PABD_INTEGRATOR_EULER] > 0.05);
  CHECK(loss[PABD_INTEGRATOR_BDF2] > 1e-4 && loss[PABD_INTEGRATOR_BDF2] < 0.5 * loss[PABD_INTEGRATOR_EULER]);
}

/* ---- contacts */

static int32_t add_box(world *w, dvec3 half, double mass, dvec3 at, pabd_motion motion) {
  pabd_shape box = pabd_shape_default(PABD_BOX);
  box.half = half;
  pabd_body body = pabd_body_default();
  body.motion = motion;
  body.mass = mass;
  body.inertia = pabd_shape_inertia(&box, mass > 0 ? mass : 1);
  body.pose.p = at;
  box.body = pabd_scene_add_body(&w->scene, &body);
  pabd_scene_add_shape(&w->scene, &box);
  return box.body;
}

/* Coulomb's cone is round: a box stops after v^2/(2 mu g) along any direction. */
TEST(friction_cone_is_isotropic) {
  static const double way[] = {0, M_PI / 6, M_PI / 4};
  for (int k = 0; k < 3; ++k) {
    world w;
    begin(&w, g);
    add_box(&w, vec(20, 20, 0.5), 0, vec(0, 0, -0.5), PABD_STATIC);
    add_box(&w, vec(0.5, 0.5, 0.1), 1, vec(0, 0, 0.1), PABD_DYNAMIC);
    w.scene.bodies[1].linear = vec(3 * cos(way[k]), 3 * sin(way[k]), 0);
    REQUIRE(start(&w, direct_params(1)));
    for (int frame = 0; frame < 90; ++frame) CHECK(step(&w));
    CHECK_NEAR(hypot(w.pose[1][0], w.pose[1][1]), 9 / (2 * 0.5 * g), 0.03);
    CHECK_NEAR(atan2(w.pose[1][1], w.pose[1][0]), way[k], 0.01);
    CHECK_NEAR(norm(speed(&w, 1)), 0, 1e-5);
    end(&w);
  }
}

/* A stack of mass ratio 100 a box rests on its overlap-free pose. */
TEST(heavy_stack_rests) {
  world w;
  begin(&w, g);
  add_box(&w, vec(5, 5, 0.5), 0, vec(0, 0, -0.5), PABD_STATIC);
  for (int i = 0; i < 4; ++i) add_box(&w, vec(0.5, 0.5, 0.5), pow(100, i), vec(0, 0, 0.5 + i), PABD_DYNAMIC);
  REQUIRE(start(&w, direct_params(1)));
  for (int frame = 0; frame < 120; ++frame) CHECK(step(&w));
  for (int i = 0; i < 4; ++i) {
    CHECK_NEAR(w.pose[1 + i][2], 0.5 + i, 5e-5);
    CHECK_NEAR(norm(speed(&w, 1 + i)), 0, 1e-4);
  }
  end(&w);
}

/* ---- when it cannot be had */

/* An island over the cap on fill goes to the Jacobi step, and the statistics say so. */
TEST(fill_cap_hands_over_to_jacobi) {
  world w;
  begin(&w, g);
  for (int i = 0; i < 6; ++i) add_rod(&w, 1, vec(i + 0.5, 0, 0));
  for (int i = 0; i < 6; ++i) add_joint(&w, PABD_HINGE, i - 1, i, vec(i, 0, 0), vec(-M_PI / 2, 0, 0));
  pabd_params params = direct_params(2);
  params.fill_cap = 4;
  REQUIRE(start(&w, params));
  CHECK(step(&w));
  CHECK(w.total.overflow_fill > 0);
  CHECK(isfinite(energy(&w)));
  end(&w);
}
