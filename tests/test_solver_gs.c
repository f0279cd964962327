/* Contact-wise Gauss-Seidel: stacks, piles, friction, restitution, momentum, joints, and the same bits for any thread
 * count. Expected values are closed forms, or the discrete solution of the step where it has one. */
#include "state.h"
#include "test.h"

static pabd_sim *create(const pabd_scene *scene, const char *const *settings) {
  pabd_params params = pabd_params_default();
  pabd_error error = {""};
  pabd_sim *sim = NULL;
  CHECK(pabd_params_set(&params, "global_step", "contact-gs", &error) == PABD_OK);
  for (; settings && settings[0]; settings += 2)
    CHECK_MSG(pabd_params_set(&params, settings[0], settings[1], &error) == PABD_OK, "%s", error.text);
  CHECK_MSG(pabd_sim_create(scene, &params, &sim, &error) == PABD_OK, "%s", error.text);
  return sim;
}

static int32_t add_box(pabd_scene *scene, pabd_motion motion, double mass, pabd_dvec3 half, double x, double y,
                       double z) {
  pabd_body body = pabd_body_default();
  pabd_shape shape = pabd_shape_default(PABD_BOX);
  shape.half = half;
  body.motion = motion;
  body.mass = mass;
  body.inertia = pabd_shape_inertia(&shape, mass);
  body.pose.p = (pabd_dvec3){x, y, z};
  shape.body = pabd_scene_add_body(scene, &body);
  pabd_scene_add_shape(scene, &shape);
  return shape.body;
}

static int32_t add_ball(pabd_scene *scene, double mass, double radius, double x, double y, double z) {
  pabd_body body = pabd_body_default();
  pabd_shape shape = pabd_shape_default(PABD_SPHERE);
  shape.radius = radius;
  body.mass = mass;
  body.inertia = pabd_shape_inertia(&shape, mass);
  body.pose.p = (pabd_dvec3){x, y, z};
  shape.body = pabd_scene_add_body(scene, &body);
  pabd_scene_add_shape(scene, &shape);
  return shape.body;
}

static const pabd_dvec3 unit_half = {0.5, 0.5, 0.5}, ground_half = {100, 100, 1};

static void add_ground(pabd_scene *scene) {
  add_box(scene, PABD_STATIC, 1, ground_half, 0, 0, -1);
}

static void run(pabd_sim *sim, int frames) {
  for (int f = 0; f < frames; ++f)
    if (!CHECK(pabd_sim_step(sim) == PABD_OK)) return;
}

/* Kinetic energy of dynamic bodies, J; momentum along x. */
static double kinetic_energy(const pabd_sim *sim) {
  const pabd_view *v = &sim->view;
  double sum = 0;
  for (int32_t i = 0; i < v->body_count; ++i) {
    if (v->motion[i] != PABD_DYNAMIC) continue;
    vec3 w = quat_unrotate(v->rot[i], v->omega[i]), inertia = v->inertia[i];
    sum += 0.5 * (double)v->mass[i] * (double)v3_norm2(v->vel[i]);
    sum += 0.5 * (double)(inertia.x * w.x * w.x + inertia.y * w.y * w.y + inertia.z * w.z * w.z);
  }
  return sum;
}
static double height_energy(const pabd_sim *sim) {
  double sum = 0;
  for (int32_t i = 0; i < sim->view.body_count; ++i)
    if (sim->view.motion[i] == PABD_DYNAMIC) sum += (double)sim->view.mass[i] * 9.81 * (double)sim->view.pos[i].z;
  return sum;
}
static void momentum(const pabd_sim *sim, double linear[3], double angular[3]) {
  const pabd_view *v = &sim->view;
  for (int d = 0; d < 3; ++d) linear[d] = angular[d] = 0;
  for (int32_t i = 0; i < v->body_count; ++i) {
    if (v->motion[i] != PABD_DYNAMIC) continue;
    double m = (double)v->mass[i], p[3] = {m * (double)v->vel[i].x, m * (double)v->vel[i].y, m * (double)v->vel[i].z};
    double x[3] = {(double)v->pos[i].x, (double)v->pos[i].y, (double)v->pos[i].z};
    double spin[3] = {(double)v->spin[i].x, (double)v->spin[i].y, (double)v->spin[i].z};
    for (int d = 0; d < 3; ++d) {
      linear[d] += p[d];
      angular[d] += spin[d] + x[(d + 1) % 3] * p[(d + 2) % 3] - x[(d + 2) % 3] * p[(d + 1) % 3];
    }
  }
}

/* Mean and largest overlap of all pairs deeper than 0.1 mm at the present poses, m. */
static double mean_depth(pabd_sim *sim, double *largest) {
  pabd_collide(sim);
  const pabd_view *v = &sim->view;
  double sum = 0, most = 0;
  int count = 0;
  for (int32_t p = 0; p < v->pair_count; ++p) {
    double depth = 0;
    for (int32_t k = 0; k < v->manifold_count[p]; ++k) depth = fmax(depth, -(double)v->manifold_gap[4 * p + k]);
    if (depth > 1e-4) sum += depth, ++count;
    most = fmax(most, depth);
  }
  if (largest) *largest = most;
  return count > 0 ? sum / count : 0;
}

/* The pile of the contract: n^3 unit cubes, and a ball that flies into them. */
static pabd_scene pile_scene(int n, int with_ball) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  add_ground(&scene);
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i)
        add_box(&scene, PABD_DYNAMIC, 1, unit_half, (i - (n - 1) / 2.0) * 1.01, (j - (n - 1) / 2.0) * 1.01,
                0.51 + 1.01 * k);
  if (with_ball) {
    double r = 0.15 * n;
    int32_t ball = add_ball(&scene, 0.5 * n * n * n, r, -(0.505 * n + r + 0.5), 0, fmax(r + 0.01, 0.505 * n));
    scene.bodies[ball].linear.x = 20;
  }
  return scene;
}

TEST(stack_of_six_comes_to_rest) {
  const double gaps[] = {-1e-3, 0, 1e-3};
  for (int k = 0; k < 3; ++k) {
    pabd_scene scene;
    pabd_scene_init(&scene);
    add_ground(&scene);
    for (int i = 0; i < 6; ++i) add_box(&scene, PABD_DYNAMIC, 1, unit_half, 0, 0, 0.5 + i + gaps[k] * (i + 1));
    pabd_sim *sim = create(&scene, NULL);
    if (!sim) return;
    run(sim, 300);
    double deepest;
    mean_depth(sim, &deepest);
    CHECK_MSG(deepest < 1e-3, "overlap %g m", deepest);
    CHECK_MSG(kinetic_energy(sim) < 1e-4, "kinetic energy %g J", kinetic_energy(sim));
    CHECK_NEAR(sim->view.pos[6].x, 0, 2e-3);
    CHECK_NEAR(sim->view.pos[6].z, 5.5, 5e-3);
    pabd_sim_destroy(sim);
    pabd_scene_free(&scene);
  }
}

/* The impulses of a resting box are its weight, and friction holds it on a slope. */
TEST(contact_forces_carry_the_weight) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  double angle = 0.3;
  int32_t ground = add_box(&scene, PABD_STATIC, 1, ground_half, -sin(angle), 0, -cos(angle));
  scene.bodies[ground].pose.q = pabd_dquat_from_rotation_vector((pabd_dvec3){0, angle, 0});
  int32_t box = add_box(&scene, PABD_DYNAMIC, 3, unit_half, 0.5 * sin(angle), 0, 0.5 * cos(angle));
  scene.bodies[box].pose.q = scene.bodies[ground].pose.q;
  pabd_sim *sim = create(&scene, NULL);
  if (!sim) return;
  run(sim, 120);
  const pabd_view *v = &sim->view;
  int32_t stride = v->stride_contact;
  double force[3] = {0}; /* on the box, which is body b */
  for (int32_t c = 0; c < v->contact_count; ++c) {
    vec3 n = v3(v->contact_normal[c], v->contact_normal[stride + c], v->contact_normal[2 * stride + c]);
    vec3 t = v3(v->contact_tangent[c], v->contact_tangent[stride + c], v->contact_tangent[2 * stride + c]),
         u = v3_cross(n, t);
    vec3 f = v3_madd(v3_madd(v3_scale(v->contact_lambda[c], n), v->contact_lambda[stride + c], t),
                     v->contact_lambda[2 * stride + c], u);
    force[0] -= (double)f.x, force[1] -= (double)f.y, force[2] -= (double)f.z;
    CHECK(v->contact_lambda[c] >= R(0));
  }
  CHECK_INT(v->contact_count, 4);
  CHECK_NEAR(force[0], 0, 0.03);
  CHECK_NEAR(force[1], 0, 0.03);
  CHECK_NEAR(force[2], 3 * 9.81, 0.03);
  CHECK_NEAR(v->pos[box].x, 0.5 * sin(angle), 1e-3); /* atan(0.5) = 0.46 > 0.3: it stays */
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

/* Contract `slide`: friction stops a box launched at 5 m/s after the sum of v_k h with v_k = v_(k-1) - mu g h. */
TEST(sliding_distance_is_that_of_the_discrete_law) {
  for (int diagonal = 0; diagonal < 2; ++diagonal) {
    pabd_scene scene;
    pabd_scene_init(&scene);
    add_ground(&scene);
    int32_t box = add_box(&scene, PABD_DYNAMIC, 10, (pabd_dvec3){0.5, 0.5, 0.25}, 0, 0, 0.25);
    double c = diagonal ? sqrt(0.5) : 1, s = diagonal ? sqrt(0.5) : 0;
    scene.bodies[box].linear = (pabd_dvec3){5 * c, 5 * s, 0};
    pabd_sim *sim = create(&scene, NULL);
    if (!sim) return;
    run(sim, 180);
    double x = (double)sim->view.pos[box].x, y = (double)sim->view.pos[box].y;
    CHECK_NEAR(c * x + s * y, 2.54321, 0.005); /* 8 substeps; the box also digs in by its softness */
    CHECK_NEAR(s * x - c * y, 0, 0.01);
    pabd_sim_destroy(sim);
    pabd_scene_free(&scene);
  }
}

TEST(pile_keeps_momentum_and_gains_no_energy) {
  pabd_scene scene = pile_scene(6, 1);
  pabd_sim *sim = create(&scene, NULL);
  if (!sim) return;
  double linear[3], angular[3], start, reference, least = INFINITY, rise = 0;
  momentum(sim, linear, angular);
  start = linear[0];
  reference = kinetic_energy(sim) + height_energy(sim);
  for (int f = 0; f < 120; ++f) {
    run(sim, 1);
    if (f == 11) { /* 0.2 s; converged solvers keep 0.87 to 0.93 at this size */
      momentum(sim, linear, angular);
      CHECK_MSG(linear[0] / start > 0.84 && linear[0] / start < 0.97, "momentum kept %g", linear[0] / start);
    }
    double energy = kinetic_energy(sim) + height_energy(sim);
    rise = fmax(rise, energy - least);
    least = fmin(least, energy);
  }
  /* push-out of overlap lifts bodies; what it may give is bounded by a small part of the energy of the scene */
  CHECK_MSG(rise < 0.02 * reference, "energy rose by %g of %g J", rise, reference);
  double deepest, mean = mean_depth(sim, &deepest);
  CHECK_MSG(mean < 1.5e-3, "mean depth %g m", mean);
  CHECK_INT(sim->stats.overflow_pairs, 0);
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

TEST(settled_pile_is_at_rest) {
  pabd_scene scene = pile_scene(5, 0);
  pabd_sim *sim = create(&scene, NULL);
  if (!sim) return;
  run(sim, 200);
  double deepest, mean = mean_depth(sim, &deepest);
  CHECK_MSG(mean < 0.6e-3, "mean depth %g m", mean);
  CHECK_MSG(deepest < 1.2e-3, "largest depth %g m", deepest);
  CHECK_MSG(kinetic_energy(sim) < 1e-3, "kinetic energy %g J", kinetic_energy(sim));
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

/* Two boxes meet off centre in free space. Impulses come in opposite pairs at one point: linear momentum is exact,
 * angular momentum up to the way the two surfaces slide and turn between detection and impact. */
TEST(collision_in_free_space_keeps_momentum) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity = (pabd_dvec3){0, 0, 0};
  int32_t a = add_box(&scene, PABD_DYNAMIC, 2, (pabd_dvec3){0.5, 0.3, 0.2}, -1, 0.1, 0);
  int32_t b = add_box(&scene, PABD_DYNAMIC, 5, (pabd_dvec3){0.4, 0.5, 0.6}, 1, -0.2, 0.1);
  scene.bodies[a].linear = (pabd_dvec3){4, 0, 0};
  scene.bodies[a].angular = (pabd_dvec3){0.5, 1, -2};
  scene.bodies[b].linear = (pabd_dvec3){-1, 0.2, 0};
  scene.bodies[b].angular = (pabd_dvec3){-1, 0.3, 0.7};
  pabd_sim *sim = create(&scene, NULL);
  if (!sim) return;
  double before[3], spin_before[3], after[3], spin_after[3], energy = kinetic_energy(sim);
  momentum(sim, before, spin_before);
  run(sim, 60);
  momentum(sim, after, spin_after);
  for (int d = 0; d < 3; ++d) {
    CHECK_NEAR(after[d], before[d], 2e-5); /* some hundred roundings of 10 kg m/s in float */
    CHECK_NEAR(spin_after[d], spin_before[d],
               0.06); /* 8 N s at surfaces some mm apart, and arms that turn in a substep */
  }
  CHECK(kinetic_energy(sim) < energy);
  CHECK((double)sim->view.vel[a].x < 3.5);
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

TEST(balls_bounce_by_their_restitution) {
  const double e[] = {0, 0.5, 0.9};
  for (int k = 0; k < 3; ++k) {
    pabd_scene scene;
    pabd_scene_init(&scene);
    pabd_scene_set_materials(&scene, 1, 0.5, e[k]);
    add_ground(&scene);
    int32_t ball = add_ball(&scene, 2, 0.2, 0, 0, 1.2);
    pabd_sim *sim = create(&scene, NULL);
    if (!sim) return;
    double top = 0;
    int has_bounced = 0;
    for (int f = 0; f < 100; ++f) {
      run(sim, 1);
      double speed = (double)sim->view.vel[ball].z, z = (double)sim->view.pos[ball].z;
      if (speed >= 0 && f > 20) has_bounced = 1;
      if (has_bounced) top = fmax(top, z - 0.2);
      CHECK(z > 0.2 - 0.01);
    }
    CHECK(has_bounced);
    CHECK_NEAR(top, e[k] * e[k], 0.04); /* of 1 m; a substep of fall at 4.4 m/s is 9 mm, and e carries it on */
    pabd_sim_destroy(sim);
    pabd_scene_free(&scene);
  }
  /* head on in free space: v' = -e v relative, momentum kept */
  pabd_scene scene;
  pabd_scene_init(&scene);
  pabd_scene_set_materials(&scene, 1, 0, 0.7);
  scene.gravity = (pabd_dvec3){0, 0, 0};
  int32_t a = add_ball(&scene, 1, 0.2, -1, 0, 0), b = add_ball(&scene, 3, 0.2, 0, 0, 0);
  scene.bodies[a].linear.x = 4;
  pabd_sim *sim = create(&scene, NULL);
  if (!sim) return;
  run(sim, 60);
  CHECK_NEAR(sim->view.vel[b].x - sim->view.vel[a].x, 0.7 * 4, 1e-4);
  CHECK_NEAR(sim->view.vel[a].x + R(3) * sim->view.vel[b].x, 4, 1e-5);
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

TEST(bits_do_not_depend_on_threads) {
  pabd_scene scene = pile_scene(9, 1);
  const char *counts[] = {"1", "2", "3", "5"};
  pabd_sim *first = NULL;
  for (int k = 0; k < 4; ++k) {
    const char *settings[] = {"threads", counts[k], NULL};
    pabd_sim *sim = create(&scene, settings);
    if (!sim) return;
    run(sim, 12); /* more bodies than one thread takes alone */
    if (!first) {
      first = sim;
      continue;
    }
    size_t n = (size_t)sim->view.body_count;
    CHECK(memcmp(sim->view.pos, first->view.pos, n * sizeof(vec3)) == 0);
    CHECK(memcmp(sim->view.rot, first->view.rot, n * sizeof(quat)) == 0);
    CHECK(memcmp(sim->view.vel, first->view.vel, n * sizeof(vec3)) == 0);
    CHECK(memcmp(sim->view.spin, first->view.spin, n * sizeof(vec3)) == 0);
    pabd_sim_destroy(sim);
  }
  pabd_sim_destroy(first);
  pabd_scene_free(&scene);
}

/* A plate on 36 boxes has 36 manifolds. 24 colors cannot hold them (23, as the last one is the boxes' with the ground):
 * the rest are solved one by one, and it rests all the same. */
TEST(more_neighbours_than_colors) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  add_ground(&scene);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) add_box(&scene, PABD_DYNAMIC, 1, unit_half, 1.2 * (i - 2.5), 1.2 * (j - 2.5), 0.5);
  int32_t plate = add_box(&scene, PABD_DYNAMIC, 10, (pabd_dvec3){4, 4, 0.1}, 0, 0, 1.1);
  pabd_sim *sim = create(&scene, NULL);
  if (!sim) return;
  run(sim, 120);
  CHECK_INT(sim->stats.color_overflow, 13);
  CHECK_NEAR(sim->view.pos[plate].z, 1.1, 1e-3);
  CHECK(v3_norm(sim->view.vel[plate]) < R(1e-3));
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

TEST(kinematic_bodies_carry_others) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t lift = add_box(&scene, PABD_KINEMATIC, 1, (pabd_dvec3){2, 2, 0.1}, 0, 0, -0.1);
  scene.bodies[lift].linear = (pabd_dvec3){0.5, 0, 1};
  int32_t box = add_box(&scene, PABD_DYNAMIC, 1, unit_half, 0, 0, 0.5);
  scene.bodies[box].linear = scene.bodies[lift].linear;
  pabd_sim *sim = create(&scene, NULL);
  if (!sim) return;
  run(sim, 60);
  CHECK_NEAR(sim->view.pos[lift].z, 0.9, 1e-5);
  CHECK_NEAR(sim->view.pos[box].z, 1.5, 2e-3);
  CHECK_NEAR(sim->view.pos[box].x, 0.5, 2e-3);
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

/* -- joints
 * ---------------------------------------------------------------------------------------------------------------------
 */

static int32_t add_joint(pabd_scene *scene, pabd_joint_kind kind, int32_t a, int32_t b, pabd_dvec3 anchor,
                         pabd_dvec3 turn) {
  pabd_joint joint = pabd_joint_default(kind);
  joint.body_a = a, joint.body_b = b;
  pabd_joint_place(scene, &joint, (pabd_dpose){anchor, pabd_dquat_from_rotation_vector(turn)});
  return pabd_scene_add_joint(scene, &joint);
}

/* Horizontal chain of ten links, falling: joints stay closed, energy does not rise. */
TEST(chain_swings_with_closed_joints) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t before = PABD_WORLD;
  for (int k = 0; k < 10; ++k) {
    int32_t body = add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.5, 0.1, 0.1}, k + 0.5, 0, 0);
    add_joint(&scene, PABD_SPHERICAL, before, body, (pabd_dvec3){k, 0, 0}, (pabd_dvec3){0, 0, 0});
    before = body;
  }
  for (int k = 1; k < 10; ++k) pabd_scene_ignore_pair(&scene, k - 1, k);
  for (int i = 0; i < 10; ++i)
    for (int j = i + 2; j < 10; ++j) pabd_scene_ignore_pair(&scene, i, j);
  pabd_sim *sim = create(&scene, NULL);
  if (!sim) return;
  double worst = 0, rise = 0, least = INFINITY;
  for (int f = 0; f < 300; ++f) {
    run(sim, 1);
    worst = fmax(worst, sim->stats.bond_error);
    double energy = kinetic_energy(sim) + height_energy(sim);
    rise = fmax(rise, energy - least);
    least = fmin(least, energy);
  }
  CHECK_MSG(worst > 1e-6 && worst < 0.05, "largest joint error %g m", worst);
  CHECK_MSG(rise < 10, "energy rose by %g of 491 J", rise);
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

/* Each kind of joint keeps what it should and leaves free what it should: a box hangs from the world with its joint at
 * its corner, pulled by gravity and pushed to turn about all axes. */
TEST(joints_hold_their_rows_and_free_the_rest) {
  const pabd_joint_kind kinds[] = {PABD_SPHERICAL, PABD_HINGE, PABD_SLIDER, PABD_FIXED};
  for (int k = 0; k < 4; ++k) {
    pabd_scene scene;
    pabd_scene_init(&scene);
    int32_t body = add_box(&scene, PABD_DYNAMIC, 2, (pabd_dvec3){0.5, 0.3, 0.2}, 0, 0, 0);
    scene.bodies[body].angular = (pabd_dvec3){1, 2, 3};
    pabd_dvec3 anchor = {0.5, 0.3, 0.2}, turn = {0, 0.9, 0}; /* axis tilted in x-z */
    add_joint(&scene, kinds[k], PABD_WORLD, body, anchor, turn);
    pabd_load load = {body, {5, 5, 0}, {0.5, 0.5, 0.5}, 0, 0.5};
    pabd_scene_add_load(&scene, &load);
    pabd_sim *sim = create(&scene, NULL);
    if (!sim) return;
    double off = 0, along = 0, tilt = 0, spin = 0;
    pabd_dvec3 z = pabd_dquat_rotate(pabd_dquat_from_rotation_vector(turn), (pabd_dvec3){0, 0, 1});
    for (int f = 0; f < 120; ++f) {
      run(sim, 1);
      quat q = sim->view.rot[body];
      vec3 arm = quat_rotate(q, v3((real)anchor.x, (real)anchor.y, (real)anchor.z)), p = sim->view.pos[body];
      double d[3] = {(double)(p.x + arm.x) - anchor.x, (double)(p.y + arm.y) - anchor.y,
                     (double)(p.z + arm.z) - anchor.z};
      double s = d[0] * z.x + d[1] * z.y + d[2] * z.z;
      vec3 axis = quat_rotate(q, v3((real)z.x, (real)z.y, (real)z.z));
      double cosine = (double)axis.x * z.x + (double)axis.y * z.y + (double)axis.z * z.z;
      off = fmax(off, sqrt(fmax(0, d[0] * d[0] + d[1] * d[1] + d[2] * d[2] - s * s)));
      along = fmax(along, fabs(s));
      tilt = fmax(tilt, sqrt(fmax(0, 1 - cosine * cosine)));
      spin = fmax(spin, (double)(q.x * q.x + q.y * q.y + q.z * q.z));
    }
    CHECK_MSG(off < 5e-3, "joint %d: %g m off", k, off);
    if (kinds[k] == PABD_SLIDER)
      CHECK_MSG(along > 1, "slider moved only %g m", along);
    else
      CHECK_MSG(along < 5e-3, "joint %d: %g m off along its axis", k, along);
    if (kinds[k] == PABD_SPHERICAL)
      CHECK(tilt > 0.3);
    else
      CHECK_MSG(tilt < 5e-3, "joint %d: axis %g rad off", k, tilt);
    if (kinds[k] == PABD_SPHERICAL || kinds[k] == PABD_HINGE)
      CHECK(spin > 0.1);
    else
      CHECK_MSG(spin < 1e-4, "joint %d turned, sin^2 of half the angle %g", k, spin);
    pabd_sim_destroy(sim);
    pabd_scene_free(&scene);
  }
}

TEST(springs_and_ropes) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  /* a spring of 200 N/m with 2 kg: static stretch m g/k, damped critically it is there after 3 s */
  int32_t body = add_ball(&scene, 2, 0.1, 0, 0, -1);
  pabd_joint joint = pabd_joint_default(PABD_SPRING);
  joint.body_a = PABD_WORLD, joint.body_b = body;
  joint.rest = 1, joint.stiffness = 200, joint.damping = 2 * sqrt(200 * 2.0);
  pabd_scene_add_joint(&scene, &joint);
  /* a rope of 1 m, thrown up: slack, then taut */
  int32_t thrown = add_ball(&scene, 1, 0.1, 5, 0, -0.5);
  scene.bodies[thrown].linear = (pabd_dvec3){1, 0, 2};
  joint = pabd_joint_default(PABD_DISTANCE);
  joint.body_a = PABD_WORLD, joint.body_b = thrown;
  joint.frame_a.p = (pabd_dvec3){5, 0, 0};
  joint.has_limits = 1, joint.lower = 0, joint.upper = 1;
  pabd_scene_add_joint(&scene, &joint);
  pabd_sim *sim = create(&scene, NULL);
  if (!sim) return;
  double longest = 0, shortest = INFINITY;
  for (int f = 0; f < 180; ++f) {
    run(sim, 1);
    double length = (double)v3_norm(v3_sub(sim->view.pos[thrown], v3(R(5), R(0), R(0))));
    longest = fmax(longest, length), shortest = fmin(shortest, length);
  }
  CHECK_NEAR(sim->view.pos[body].z, -1 - 2 * 9.81 / 200, 1e-3);
  CHECK_NEAR(-(double)sim->view.bond_lambda[0].x, -2 * 9.81, 0.1);
  CHECK_MSG(longest < 1.005 && longest > 0.99, "rope %g m", longest);
  CHECK_MSG(shortest < 0.4, "rope never slack: %g m", shortest);
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

/* Period of a spring without damping against 2 pi sqrt(m/k): backward Euler is the scheme, so it decays but keeps time.
 */
TEST(spring_keeps_its_period) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity = (pabd_dvec3){0, 0, 0};
  int32_t body = add_ball(&scene, 2, 0.1, 0, 0, -1.2);
  pabd_joint joint = pabd_joint_default(PABD_SPRING);
  joint.body_a = PABD_WORLD, joint.body_b = body;
  joint.rest = 1, joint.stiffness = 200;
  pabd_scene_add_joint(&scene, &joint);
  pabd_sim *sim = create(&scene, NULL);
  if (!sim) return;
  double last = 0, crossing[3] = {0};
  int crossings = 0;
  for (int f = 0; f < 120 && crossings < 3; ++f) {
    double x = (double)sim->view.pos[body].z + 1;
    if (f > 0 && last < 0 && x >= 0) crossing[crossings++] = (f - x / (x - last)) / 60;
    last = x;
    run(sim, 1);
  }
  REQUIRE(crossings >= 2);
  CHECK_NEAR(crossing[1] - crossing[0], 2 * 3.14159265358979 * sqrt(2 / 200.0), 0.01);
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

TEST(passes_are_settings) {
  pabd_scene scene = pile_scene(3, 0);
  const char *const settings[][9] = {
      {"gs_rest_bodies", "0", "gs_relax_passes", "0", NULL},
      {"gs_rest_bodies", "0", "gs_passes", "3", "gs_relax_passes", "2", NULL},
      {"gs_rest_bodies", "0", "gs_substeps", "4", NULL},
      {"gs_rest_substeps", "6", "gs_rest_passes", "3", "gs_rest_relax_passes", "2", NULL}};
  for (int k = 0; k < 4; ++k) {
    pabd_sim *sim = create(&scene, settings[k]);
    if (!sim) return;
    run(sim, 120);
    CHECK_NEAR(sim->view.pos[27].z, 2.5, 0.03);
    const int32_t passes[] = {8 * 1, 8 * 5, 4 * 2, 6 * 5};
    CHECK_INT(sim->stats.contact_evaluations, (int64_t)sim->view.contact_count * passes[k]);
    pabd_sim_destroy(sim);
  }
  pabd_scene_free(&scene);
}
