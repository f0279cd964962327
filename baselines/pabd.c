/* Adapter: our own solver behind the same engine table as the baselines (built twice: pabd.so in float,
 * pabd-double.so), and with PABD_DEVICE on a GPU (pabd-cuda.so).
 *
 * Nothing here knows a case; settings are the solver's parameters (solver/params.def), presets are JSON files that the
 * harness reads. */
#include "pabd.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pabd_engine.h"

#define VERSION "1.0.0"

typedef struct world {
  pabd_sim *sim;
  pabd_params params;
  pabd_trace_fn trace;
  void *trace_user;
  double *pose, *momentum; /* [body_count][7], [body_count][3]: of traces, allocated when a trace is set */
  int32_t body_count, joint_count;
} world;

#define CAPABILITIES                                                                                              \
  (PABD_CAN_SPHERE | PABD_CAN_CAPSULE | PABD_CAN_BOX | PABD_CAN_PLANE | PABD_CAN_COMPOUND | PABD_CAN_SPHERICAL |  \
   PABD_CAN_HINGE | PABD_CAN_SLIDER | PABD_CAN_FIXED | PABD_CAN_DISTANCE | PABD_CAN_SPRING | PABD_CAN_KINEMATIC | \
   PABD_CAN_LOADS | PABD_CAN_FRICTION_CONE | PABD_CAN_PAIR_MATERIALS | PABD_CAN_REPORT_CONTACTS |                 \
   PABD_CAN_DETERMINISM | PABD_CAN_WORLDS)
/* What only the CPU's global steps have. */
#define CPU_CAPABILITIES                                                                               \
  (PABD_CAN_UNIVERSAL | PABD_CAN_LIMITS | PABD_CAN_MOTORS | PABD_CAN_SET_CONTACTS | PABD_CAN_THREADS | \
   PABD_CAN_TRACE | PABD_CAN_RESTITUTION)

static pabd_status probe(pabd_engine_info *info, pabd_error *error) {
  (void)error;
  int is_double = strcmp(pabd_precision(), "double") == 0;
  info->name = is_double ? "pabd-double" : "pabd";
  info->version = VERSION;
  info->precision = pabd_precision();
  info->device = "cpu";
  info->license = "MIT";
#ifdef PABD_BUILD_FLAGS
  info->build = "source: " PABD_BUILD_FLAGS;
#else
  info->build = "source";
#endif
  info->capabilities = CAPABILITIES | CPU_CAPABILITIES;
#ifdef PABD_DEVICE
  static char device[256];
  info->name = PABD_DEVICE;
  info->capabilities = CAPABILITIES;
  pabd_status status = pabd_device_probe(device, (int32_t)sizeof device, error);
  info->device = device;
  return status;
#else
  return PABD_OK;
#endif
}

static const pabd_setting_info *settings(int32_t *count) {
  static pabd_setting_info table[128];
  int32_t n = pabd_params_count();
  if (n > 128) n = 128;
  for (int32_t i = 0; i < n; ++i) {
    const pabd_param_info *p = pabd_params_info(i);
    table[i] = (pabd_setting_info){p->name, p->type, p->initial, p->range, p->unit, p->meaning, p->source};
  }
  *count = n;
  return table;
}

static void destroy(void *handle) {
  world *w = handle;
  if (!w) return;
  pabd_sim_destroy(w->sim);
  free(w->pose);
  free(w->momentum);
  free(w);
}

static pabd_status create(const pabd_scene *scene, const pabd_setting *list, int32_t count, void **out,
                          pabd_error *error) {
  world *w = calloc(1, sizeof *w);
  if (!w) return pabd_fail(error, PABD_ERR_MEMORY, "no memory for a world");
  w->params = pabd_params_default();
  w->body_count = scene->body_count, w->joint_count = scene->joint_count;
  pabd_status status = PABD_OK;
  for (int32_t i = 0; i < count && status == PABD_OK; ++i)
    status = pabd_params_set(&w->params, list[i].key, list[i].value, error);
  if (status == PABD_OK) status = pabd_sim_create(scene, &w->params, &w->sim, error);
#ifdef PABD_DEVICE
  if (status == PABD_OK) status = pabd_device_attach(w->sim, error);
#endif
  if (status != PABD_OK) {
    destroy(w);
    return status;
  }
  *out = w;
  return PABD_OK;
}

static pabd_status step(void *handle, pabd_error *error) {
  world *w = handle;
  pabd_status status = pabd_sim_step(w->sim);
  if (status == PABD_DIVERGED) {
    pabd_stats stats;
    pabd_sim_stats(w->sim, &stats);
    return pabd_fail(error, status, "state of body %d is not finite or beyond all bounds", stats.diverged_body);
  }
#ifdef PABD_DEVICE
  if (status != PABD_OK) return pabd_fail(error, status, "%s", pabd_device_error(w->sim));
#endif
  return status;
}

static void read_state(void *handle, double *pose, double *velocity) {
  pabd_sim_read(((world *)handle)->sim, pose, velocity);
}

static void add_counter(pabd_engine_stats *out, const char *name, const char *unit, double value) {
  if (out->counter_count < PABD_COUNTER_MAX) out->counters[out->counter_count++] = (pabd_counter){name, unit, value};
}

static void stats(void *handle, pabd_engine_stats *out) {
  static pabd_stats s; /* timer names outlive the call; one thread per world */
  pabd_sim_stats(((world *)handle)->sim, &s);
  memset(out, 0, sizeof *out);
  for (int32_t i = 0; i < s.timer_count && i < PABD_STAGE_MAX; ++i)
    out->stages[out->stage_count++] = (pabd_stage_time){s.timers[i].name, s.timers[i].is_collide, s.timers[i].ms};
  add_counter(out, "contacts", "1", s.contact_count);
  add_counter(out, "contacts_closed", "1", s.contact_closed_count);
  add_counter(out, "pairs", "1", s.pair_count);
  add_counter(out, "contact_evaluations", "1", (double)s.contact_evaluations);
  add_counter(out, "sweeps", "1", s.sweeps);
  add_counter(out, "residual", "N", s.residual);
  add_counter(out, "rigidity_defect", "1", s.rigidity_defect);
  add_counter(out, "joint_error", "m", s.bond_error);
  add_counter(out, "overflow", "1", (double)s.overflow_pairs + s.overflow_contacts + s.overflow_fill);
  add_counter(out, "overflow_pairs", "1", s.overflow_pairs);
  add_counter(out, "overflow_contacts", "1", s.overflow_contacts);
  add_counter(out, "overflow_fill", "1", s.overflow_fill);
  add_counter(out, "driver_work", "J", s.driver_work);
  add_counter(out, "bytes", "B", (double)s.bytes);
  add_counter(out, "bytes_per_body", "B", s.bytes_per_body);
  add_counter(out, "bytes_per_contact", "B", s.bytes_per_contact);
  if (s.model_bytes > 0.0) {
    add_counter(out, "model_bytes", "B", s.model_bytes);
    add_counter(out, "model_operations", "1", s.model_operations);
  }
  add_counter(out, "islands", "1", s.island_count);
  add_counter(out, "islands_jacobi", "1", s.island_jacobi);
  add_counter(out, "islands_contact_gs", "1", s.island_gs);
  add_counter(out, "islands_direct", "1", s.island_direct);
  add_counter(out, "bodies_free", "1", s.bodies_free);
  add_counter(out, "bodies_jacobi", "1", s.bodies_jacobi);
  add_counter(out, "bodies_contact_gs", "1", s.bodies_gs);
  add_counter(out, "bodies_direct", "1", s.bodies_direct);
  add_counter(out, "newton_iterations", "1", s.newton_iterations);
  add_counter(out, "newton_failures", "1", s.newton_failures);
  add_counter(out, "ladder_halvings", "1", s.ladder_halvings);
  add_counter(out, "ladder_bdf2", "1", s.ladder_bdf2);
  add_counter(out, "ladder_euler", "1", s.ladder_euler);
  add_counter(out, "ladder_exhausted", "1", s.ladder_exhausted);
  add_counter(out, "ladder_limited", "1", s.ladder_limited);
  add_counter(out, "colors", "1", s.colors);
  add_counter(out, "color_overflow", "1", s.color_overflow);
}

static void setting_value(void *handle, int32_t index, char *buffer, int32_t size) {
  pabd_params_get(&((world *)handle)->params, index, buffer, size);
}

static int32_t contacts(void *handle, pabd_contact *out, int32_t capacity) {
  world *w = handle;
  pabd_stats s;
  pabd_sim_stats(w->sim, &s);
  pabd_contact_point *list = malloc(sizeof *list * ((size_t)s.contact_count + 1));
  if (!list) return 0;
  int32_t count = pabd_sim_contacts(w->sim, list, s.contact_count);
  for (int32_t i = 0; i < count && i < capacity; ++i) {
    const pabd_contact_point *c = &list[i];
    out[i] = (pabd_contact){c->body_a, c->body_b,   c->feature,     c->point, c->normal,
                            c->gap,    c->friction, c->restitution, c->force};
  }
  free(list);
  return count;
}

static pabd_status set_contacts(void *handle, const pabd_contact *in, int32_t count, pabd_error *error) {
  world *w = handle;
  if (count < 0) return pabd_sim_set_contacts(w->sim, NULL, -1, error);
  pabd_contact_point *list = malloc(sizeof *list * ((size_t)count + 1));
  if (!list) return pabd_fail(error, PABD_ERR_MEMORY, "no memory for %d contacts", count);
  for (int32_t i = 0; i < count; ++i) {
    const pabd_contact *c = &in[i];
    list[i] = (pabd_contact_point){c->body_a, c->body_b,   c->feature,     c->point, c->normal,
                                   c->gap,    c->friction, c->restitution, {0, 0, 0}};
  }
  pabd_status status = pabd_sim_set_contacts(w->sim, list, count, error);
  free(list);
  return status;
}

static void on_sweep(const pabd_sweep_trace *t, const pabd_sim *sim, void *user) {
  world *w = user;
  pabd_sim_read_iterate(sim, w->pose, w->momentum);
  pabd_trace out = {t->frame,    t->substep,  t->sweep,       t->phase,   w->body_count, w->joint_count, w->pose,
                    w->momentum, t->residual, t->joint_error, t->gap_min, t->lambda_max, t->objective};
  w->trace(&out, w->trace_user);
}

static void set_trace(void *handle, pabd_trace_fn trace, void *user) {
  world *w = handle;
  w->trace = trace, w->trace_user = user;
  if (trace && !w->pose) {
    w->pose = malloc(sizeof(double) * 7 * ((size_t)w->body_count + 1));
    w->momentum = malloc(sizeof(double) * 3 * ((size_t)w->body_count + 1));
    if (!w->pose || !w->momentum) trace = NULL;
  }
  pabd_sim_set_trace(w->sim, trace ? on_sweep : NULL, w);
}

PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void);
const pabd_engine *pabd_engine_entry(void) {
  static const pabd_engine table = {
      PABD_ENGINE_ABI, sizeof(pabd_engine), probe,    settings,     create,    step,   read_state,
      stats,           setting_value,       contacts, set_contacts, set_trace, destroy};
  return &table;
}
