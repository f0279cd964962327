/* Every kernel of kernels.def, generically: CPU launcher with 1, 2 and 7 threads, serial forward, reversed and permuted
 * order must agree bit for bit, and only the fields listed as written may change. A kernel that reads a neighbor's row
 * of a field it writes, or writes what it does not declare, fails here; two planted faults show that the check can
 * fail. */
#include "state.h"
#include "test.h"

static uint32_t random_state = 12345;
static double uniform(double low, double high) {
  random_state = random_state * 1664525u + 1013904223u;
  return low + (high - low) * (double)(random_state >> 8) / 16777216.0;
}

/* Boxes, spheres and capsules falling into each other, a kinematic box, and a chain with every kind of bond. */
static pabd_sim *busy_simulation(int32_t threads) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  pabd_body ground = pabd_body_default();
  ground.motion = PABD_STATIC;
  ground.pose.p.z = -1;
  pabd_shape slab = pabd_shape_default(PABD_BOX);
  slab.half = (pabd_dvec3){20, 20, 1};
  slab.body = pabd_scene_add_body(&scene, &ground);
  pabd_scene_add_shape(&scene, &slab);
  for (int i = 0; i < 150; ++i) {
    pabd_body body = pabd_body_default();
    body.mass = uniform(0.5, 5);
    body.pose.p = (pabd_dvec3){uniform(-2, 2), uniform(-2, 2), 0.3 + 0.02 * i};
    body.pose.q = pabd_dquat_from_rotation_vector((pabd_dvec3){uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)});
    body.linear = (pabd_dvec3){uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)};
    body.angular = (pabd_dvec3){uniform(-2, 2), uniform(-2, 2), uniform(-2, 2)};
    if (i == 7) body.motion = PABD_KINEMATIC;
    pabd_shape shape = pabd_shape_default(i % 3 == 0 ? PABD_SPHERE : i % 3 == 1 ? PABD_BOX : PABD_CAPSULE);
    shape.half = (pabd_dvec3){0.3, 0.2, 0.25}, shape.radius = 0.2, shape.half_length = 0.2;
    body.inertia = pabd_shape_inertia(&shape, body.mass);
    shape.body = pabd_scene_add_body(&scene, &body);
    pabd_scene_add_shape(&scene, &shape);
  }
  const pabd_joint_kind kinds[] = {PABD_SPHERICAL, PABD_HINGE, PABD_SLIDER, PABD_FIXED, PABD_DISTANCE, PABD_SPRING};
  for (int i = 0; i < 60; ++i) {
    pabd_joint joint = pabd_joint_default(kinds[i % 6]);
    joint.body_a = i % 10 == 0 ? PABD_WORLD : 10 + i, joint.body_b = 11 + i;
    joint.rest = 0.3;
    if (joint.kind == PABD_SPRING) joint.stiffness = 200, joint.damping = 5;
    pabd_dpose frame = {scene.bodies[joint.body_b].pose.p,
                        pabd_dquat_from_rotation_vector((pabd_dvec3){0.3, 0.2, 0.1})};
    pabd_joint_place(&scene, &joint, frame);
    pabd_scene_add_joint(&scene, &joint);
  }
  pabd_params params = pabd_params_default();
  params.threads = threads, params.contacts_per_body = 60;
  pabd_sim *sim = NULL;
  pabd_error error = {""};
  if (pabd_sim_create(&scene, &params, &sim, &error) != PABD_OK) printf("%s\n", error.text);
  pabd_scene_free(&scene);
  for (int frame = 0; sim && frame < 12; ++frame) pabd_sim_step(sim);
  return sim;
}

typedef struct field_info {
  const char *name;
  size_t offset, bytes;
} field_info;
static field_info fields[256];
static int field_count;

static void list_fields(const pabd_sim *sim) {
  field_count = 0;
#define FIELD(type, name, rows, planes, unit, writer)                                                             \
  fields[field_count++] = (field_info){#name, (size_t)((const char *)sim->view.name - (const char *)sim->memory), \
                                       sizeof(type) * (size_t)sim->capacity_##rows * (planes)};
#include "fields.def"
#undef FIELD
}

/* Is `word` one of the blank-separated words of `list`? */
static int has_word(const char *list, const char *word) {
  size_t length = strlen(word);
  for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
    if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return 1;
  return 0;
}

typedef struct kernel_info {
  const char *name, *rows, *writes;
} kernel_info;
static const kernel_info kernels[] = {
#define KERNEL(name, rows, reads, writes) {#name, #rows, writes},
#define SIMD_KERNEL KERNEL
#include "kernels.def"
#undef SIMD_KERNEL
#undef KERNEL
};

static int32_t row_of(const pabd_sim *sim, const char *rows, int32_t k) {
  if (strcmp(rows, "bodies") == 0) return sim->view.body_order[k];
  if (strcmp(rows, "bonds") == 0) return sim->view.bond_order[k];
  return k;
}
static int32_t row_count(const pabd_sim *sim, const char *rows) {
  if (strcmp(rows, "bodies") == 0) return sim->view.body_count;
  if (strcmp(rows, "bonds") == 0) return sim->view.bond_count;
  if (strcmp(rows, "contacts") == 0) return sim->view.contact_count;
  if (strcmp(rows, "pairs") == 0) return sim->view.pair_count;
  if (strcmp(rows, "shapes") == 0) return sim->view.shape_count;
  return -1;
}

typedef void (*row_function)(int32_t i, const pabd_view *view);

/* Runs all rows in forward (0), reversed (1) or permuted (2) order. */
static void run_order(const pabd_sim *sim, row_function row, const char *rows, int order) {
  int32_t n = row_count(sim, rows), step = 1;
  for (int32_t p = 7; order == 2 && p < 1000; p += 2) /* a stride coprime to n visits each row once */
    if (n % p != 0 && n > p) {
      int32_t a = n, b = p;
      while (b) {
        int32_t t = a % b;
        a = b, b = t;
      }
      if (a == 1) {
        step = p;
        break;
      }
    }
  for (int32_t k = 0; k < n; ++k) {
    int32_t at = order == 0 ? k : order == 1 ? n - 1 - k : (int32_t)((int64_t)k * step % n);
    row(row_of(sim, rows, at), &sim->view);
  }
}

/* Number of differing or undeclared fields; prints each unless quiet. */
static int compare_kernel(pabd_sim *sim, const kernel_info *kernel, row_function row, char *before, char *after,
                          int quiet) {
  int bad = 0;
  memcpy(before, sim->memory, sim->memory_bytes);
  run_order(sim, row, kernel->rows, 0);
  memcpy(after, sim->memory, sim->memory_bytes);
  for (int f = 0; f < field_count; ++f) {
    if (memcmp(before + fields[f].offset, after + fields[f].offset, fields[f].bytes) == 0) continue;
    if (has_word(kernel->writes, fields[f].name)) continue;
    ++bad;
    if (!quiet) test_fail(__FILE__, __LINE__, "%s writes %s, which it does not declare", kernel->name, fields[f].name);
  }
  for (int order = 1; order <= 2; ++order) {
    memcpy(sim->memory, before, sim->memory_bytes);
    run_order(sim, row, kernel->rows, order);
    for (int f = 0; f < field_count; ++f) {
      if (memcmp((char *)sim->memory + fields[f].offset, after + fields[f].offset, fields[f].bytes) == 0) continue;
      ++bad;
      if (!quiet)
        test_fail(__FILE__, __LINE__, "%s: field %s depends on the order (%s)", kernel->name, fields[f].name,
                  order == 1 ? "reversed" : "permuted");
    }
  }
  return bad;
}

static pabd_kernel current;
static void current_row(int32_t i, const pabd_view *view) {
  pabd_kernel_row(current, i, view);
}

TEST(order_and_declared_writes) {
  pabd_sim *sim = busy_simulation(1);
  REQUIRE(sim != NULL);
  list_fields(sim);
  CHECK(sim->view.contact_count > 100);
  char *before = malloc(sim->memory_bytes), *after = malloc(sim->memory_bytes);
  /* the order of kernels.def is the order of a substep, so each kernel sees the state that it would */
  for (int k = 0; k < PABD_KERNEL_COUNT; ++k) {
    current = (pabd_kernel)k;
    if (row_count(sim, kernels[k].rows) < 0) continue;
    compare_kernel(sim, &kernels[k], current_row, before, after, 0);
  }
  free(before), free(after);
  pabd_sim_destroy(sim);
}

TEST(launchers_equal_serial_rows) {
  pabd_sim *sim = busy_simulation(1);
  REQUIRE(sim != NULL);
  list_fields(sim);
  char *before = malloc(sim->memory_bytes), *after = malloc(sim->memory_bytes);
  const int32_t threads[] = {1, 2, 7};
  for (int k = 0; k < PABD_KERNEL_COUNT; ++k) {
    int32_t n = row_count(sim, kernels[k].rows);
    if (n < 0) continue;
    current = (pabd_kernel)k;
    memcpy(before, sim->memory, sim->memory_bytes);
    run_order(sim, current_row, kernels[k].rows, 0);
    memcpy(after, sim->memory, sim->memory_bytes);
    for (int t = 0; t < 3; ++t) {
      memcpy(sim->memory, before, sim->memory_bytes);
      sim->params.threads = threads[t];
      pabd_launch(sim, current, 0, n);
      for (int f = 0; f < field_count; ++f)
        if (memcmp((char *)sim->memory + fields[f].offset, after + fields[f].offset, fields[f].bytes) != 0)
          test_fail(__FILE__, __LINE__, "%s with %d threads: field %s differs from serial rows", kernels[k].name,
                    threads[t], fields[f].name);
    }
  }
  free(before), free(after);
  pabd_sim_destroy(sim);
}

/* Planted faults: the check must see both. */
static void undeclared_at(int32_t i, const pabd_view *s) {
  s->vel[i].x += R(1);
}
static void neighbor_at(int32_t i, const pabd_view *s) {
  s->pos[i].x += s->pos[(i + 1) % s->body_count].x;
}

TEST(planted_faults_are_seen) {
  pabd_sim *sim = busy_simulation(1);
  REQUIRE(sim != NULL);
  list_fields(sim);
  char *before = malloc(sim->memory_bytes), *after = malloc(sim->memory_bytes);
  const kernel_info undeclared = {"undeclared", "bodies", "pos"}, neighbor = {"neighbor", "bodies", "pos"};
  CHECK(compare_kernel(sim, &undeclared, undeclared_at, before, after, 1) > 0);
  memcpy(sim->memory, before, sim->memory_bytes);
  CHECK(compare_kernel(sim, &neighbor, neighbor_at, before, after, 1) > 0);
  free(before), free(after);
  pabd_sim_destroy(sim);
}

TEST(same_bits_for_any_thread_count) {
  double pose[3][151 * 7];
  const int32_t threads[] = {1, 2, 5};
  for (int t = 0; t < 3; ++t) {
    random_state = 777;
    pabd_sim *sim = busy_simulation(threads[t]);
    REQUIRE(sim != NULL);
    for (int frame = 0; frame < 20; ++frame) pabd_sim_step(sim);
    pabd_sim_read(sim, pose[t], NULL);
    pabd_sim_destroy(sim);
  }
  CHECK(memcmp(pose[0], pose[1], sizeof pose[0]) == 0);
  CHECK(memcmp(pose[0], pose[2], sizeof pose[0]) == 0);
}
