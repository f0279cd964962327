/* MuJoCo 4 through its C library: every dynamic body is a free joint, every joint of the scene a constraint.
 *
 * The model is built with mjSpec from the scene and compiled once. Constraints are regularized (solref, solimp):
 * contacts and joints are springs and dampers whose stiffness scales with the effective mass, softer or stiffer by
 * settings, never rigid. Hidden laws and traps, all met here: a mass given without `ipos` moves the center of mass;
 * angular velocities of free joints are in the body's frame; refsafe lengthens solref to two steps; a diverged state
 * would be reset to the start without a word (autoreset: off); warnings would be written to a file (counted instead).
 * There is no restitution, a pair's friction is the larger of two, a moved (mocap) body has no velocity: all "not
 * supported" here. Joints: ball (connect), fixed (weld), hinge (two connects on its axis), distance, rope and spring
 * (spatial tendons). Invariant: no sleep, no damping, no armature; masses and inertias are the scene's. */
#include <math.h>
#include <mujoco/mujoco.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/baseline.h"

enum {
  SUBSTEPS,
  SOLVER,
  ITERATIONS,
  TOLERANCE,
  CONE,
  INTEGRATOR,
  IMPRATIO,
  CONTACT_TIME,
  CONTACT_STEPS,
  CONTACT_DAMPING,
  CONTACT_DMIN,
  CONTACT_DMAX,
  CONTACT_WIDTH,
  JOINT_TIME,
  JOINT_STEPS,
  JOINT_DAMPING,
  JOINT_DMIN,
  JOINT_DMAX,
  JOINT_WIDTH,
  REFSAFE,
  DIAGEXACT,
  NOSLIP,
  INVWEIGHT,
  HINGE_SPAN,
  MEMORY,
  SETTING_COUNT
};

static const pabd_setting_info settings_table[SETTING_COUNT] = {
    {"substeps", "int", "1", "1 .. 10000", "1", "mj_step calls a frame, each of frame_time / substeps",
     "one a frame, as for every engine; MuJoCo's own default timestep is 2 ms (8 substeps)"},
    {"solver", "choice", "newton", "pgs | cg | newton", "1", "constraint solver", "MuJoCo's default: Newton"},
    {"iterations", "int", "100", "1 .. 100000", "1", "bound on solver iterations a step", "MuJoCo's default 100"},
    {"tolerance", "real", "1e-8", "0 .. 1", "1", "solver tolerance", "MuJoCo's default 1e-8"},
    {"cone", "choice", "pyramidal", "pyramidal | elliptic", "1", "friction cone", "MuJoCo's default: pyramidal"},
    {"integrator", "choice", "euler", "euler | rk4 | implicit | implicitfast | discrete", "1", "time integration",
     "MuJoCo's default: semi-implicit Euler"},
    {"impratio", "real", "1", "0.001 .. 1e6", "1", "ratio of frictional to normal impedance", "MuJoCo's default 1"},
    {"contact_time", "real", "0.02", "1e-6 .. 10", "s", "solref[0] of contacts: time constant",
     "MuJoCo's default 0.02"},
    {"contact_steps", "real", "0", "0 .. 1000", "1",
     "if above 0: solref[0] of contacts in substeps, instead of contact_time", "0: contact_time counts"},
    {"contact_damping", "real", "1", "0 .. 100", "1", "solref[1] of contacts: damping ratio", "MuJoCo's default 1"},
    {"contact_dmin", "real", "0.9", "0.0001 .. 0.9999", "1", "solimp[0] of contacts", "MuJoCo's default 0.9"},
    {"contact_dmax", "real", "0.95", "0.0001 .. 0.9999", "1", "solimp[1] of contacts", "MuJoCo's default 0.95"},
    {"contact_width", "real", "0.001", "1e-9 .. 10", "m", "solimp[2] of contacts", "MuJoCo's default 0.001"},
    {"joint_time", "real", "0.02", "1e-6 .. 10", "s", "solref[0] of joints: time constant", "MuJoCo's default 0.02"},
    {"joint_steps", "real", "0", "0 .. 1000", "1", "if above 0: solref[0] of joints in substeps, instead of joint_time",
     "0: joint_time counts"},
    {"joint_damping", "real", "1", "0 .. 100", "1", "solref[1] of joints: damping ratio", "MuJoCo's default 1"},
    {"joint_dmin", "real", "0.9", "0.0001 .. 0.9999", "1", "solimp[0] of joints", "MuJoCo's default 0.9"},
    {"joint_dmax", "real", "0.95", "0.0001 .. 0.9999", "1", "solimp[1] of joints", "MuJoCo's default 0.95"},
    {"joint_width", "real", "0.001", "1e-9 .. 10", "m", "solimp[2] of joints", "MuJoCo's default 0.001"},
    {"refsafe", "bool", "1", "0 | 1", "1", "time constants are at least two substeps", "MuJoCo's default: on"},
    {"diagexact", "bool", "0", "0 | 1", "1", "exact diagonal of the constraint inertia", "MuJoCo's default: off"},
    {"noslip", "int", "0", "0 .. 1000", "1", "noslip iterations after the solver", "MuJoCo's default 0"},
    {"invweight", "real", "1", "1e-12 .. 1e6", "1",
     "factor on the compiled body, dof and tendon weights (stiffens constraints): a modification of the model",
     "1: the model as compiled"},
    {"hinge_span", "real", "0.1", "1e-4 .. 100", "m", "distance from the anchor of the two connects that make a hinge",
     "no source: half a link's width in the suite's chains"},
    {"memory", "real", "0", "0 .. 1e6", "MB", "arena for contacts and constraints; 0: 64 and 0.5 a body",
     "MuJoCo's own estimate is too small for piles of 8000 bodies"},
};

static const uint64_t capabilities = PABD_CAN_SPHERE | PABD_CAN_CAPSULE | PABD_CAN_BOX | PABD_CAN_PLANE |
                                     PABD_CAN_CYLINDER | PABD_CAN_HULL | PABD_CAN_COMPOUND | PABD_CAN_SPHERICAL |
                                     PABD_CAN_HINGE | PABD_CAN_FIXED | PABD_CAN_DISTANCE | PABD_CAN_SPRING |
                                     PABD_CAN_LOADS | PABD_CAN_REPORT_CONTACTS | PABD_CAN_DETERMINISM | PABD_CAN_WORLDS;

typedef struct mujoco_world {
  double value[SETTING_COUNT];
  pabd_scene scene;
  pabd_filter filter;
  mjModel *model;
  mjData *data;
  int32_t *qpos, *qvel; /* [body_count]: addresses of a dynamic body's free joint, -1 for others */
  int32_t *id;          /* [body_count]: MuJoCo's body */
  int32_t *geom_body;   /* [ngeom]: scene body of a geom */
  double *force;        /* [body_count][6] */
  double time, collide_ms, solve_ms, other_ms;
  int64_t warnings, solver_iterations;
} mujoco_world;

static mujoco_world *stepping; /* whose step runs: MuJoCo's callbacks have no user pointer */

static void count_warning(const char *text) {
  (void)text;
  if (stepping) ++stepping->warnings;
}

static int discard_pair(const mjModel *model, mjData *data, int geom_a, int geom_b) {
  (void)model;
  (void)data;
  return stepping && pabd_filter_ignores(&stepping->filter, stepping->geom_body[geom_a], stepping->geom_body[geom_b]);
}

/* ---- Building the model ---- */

static void copy3(double *to, pabd_dvec3 v) {
  to[0] = v.x, to[1] = v.y, to[2] = v.z;
}
static void copy4(double *to, pabd_dquat q) {
  to[0] = q.w, to[1] = q.x, to[2] = q.y, to[3] = q.z;
}

/* solref and solimp from five settings that start at `first` (time, steps, damping, dmin, dmax, width). */
static void set_softness(const mujoco_world *w, int first, mjtNum *solref, mjtNum *solimp) {
  const double h = w->scene.frame_time / w->value[SUBSTEPS];
  solref[0] = w->value[first + 1] > 0 ? w->value[first + 1] * h : w->value[first];
  solref[1] = w->value[first + 2];
  for (int k = 0; k < 3; ++k) solimp[k] = w->value[first + 3 + k];
}

static void add_geom(mujoco_world *w, mjSpec *spec, mjsBody *body, const pabd_shape *shape, double friction) {
  mjsGeom *geom = mjs_addGeom(body, NULL);
  copy3(geom->pos, shape->local.p);
  copy4(geom->quat, shape->local.q);
  geom->friction[0] = friction; /* MuJoCo takes the larger of two: the same on all */
  geom->condim = 3;
  set_softness(w, CONTACT_TIME, geom->solref, geom->solimp);
  switch (shape->kind) {
    case PABD_SPHERE:
      geom->type = mjGEOM_SPHERE;
      geom->size[0] = shape->radius;
      break;
    case PABD_CAPSULE:
    case PABD_CYLINDER:
      geom->type = shape->kind == PABD_CAPSULE ? mjGEOM_CAPSULE : mjGEOM_CYLINDER;
      geom->size[0] = shape->radius;
      geom->size[1] = shape->half_length;
      break;
    case PABD_BOX:
      geom->type = mjGEOM_BOX;
      copy3(geom->size, shape->half);
      break;
    case PABD_PLANE:
      geom->type = mjGEOM_PLANE;
      geom->size[2] = 1; /* of the drawn grid; sizes 0 are infinite */
      break;
    default: {
      char name[32];
      snprintf(name, sizeof name, "m%d", (int)(shape - w->scene.shapes));
      mjsMesh *mesh = mjs_addMesh(spec, NULL);
      mjs_setName(mesh->element, name);
      float *vertices = malloc((size_t)shape->vertex_count * 3 * sizeof *vertices);
      if (vertices == NULL) return;
      for (int32_t k = 0; k < shape->vertex_count; ++k) {
        const pabd_dvec3 v = w->scene.vertices[shape->first_vertex + k];
        vertices[3 * k] = (float)v.x, vertices[3 * k + 1] = (float)v.y, vertices[3 * k + 2] = (float)v.z;
      }
      mjs_setFloat(mesh->uservert, vertices, 3 * shape->vertex_count);
      free(vertices);
      geom->type = mjGEOM_MESH;
      mjs_setString(geom->meshname, name);
      break;
    }
  }
}

static void add_bodies(mujoco_world *w, mjSpec *spec) {
  mjsBody *root = mjs_findBody(spec, "world");
  int32_t shape = 0;
  for (int32_t b = 0; b < w->scene.body_count; ++b) {
    const pabd_body *body = &w->scene.bodies[b];
    char name[32];
    snprintf(name, sizeof name, "b%d", b);
    mjsBody *made = mjs_addBody(root, NULL);
    mjs_setName(made->element, name);
    copy3(made->pos, body->pose.p);
    copy4(made->quat, body->pose.q);
    if (body->motion == PABD_DYNAMIC) {
      mjs_addFreeJoint(made);
      made->explicitinertial = 1;
      made->mass = body->mass;
      copy3(made->inertia, body->inertia);
      copy3(made->ipos, (pabd_dvec3){0, 0, 0}); /* its default means "from the shapes" */
      copy4(made->iquat, (pabd_dquat){1, 0, 0, 0});
    }
    for (; shape < w->scene.shape_count && w->scene.shapes[shape].body == b; ++shape)
      add_geom(w, spec, made, &w->scene.shapes[shape], w->scene.friction[0]);
  }
}

/* A named site at `offset` in the joint's frame of one side. */
static void add_site(mjSpec *spec, int32_t body, pabd_dpose frame, pabd_dvec3 offset, const char *name) {
  char owner[32];
  snprintf(owner, sizeof owner, "b%d", body);
  mjsBody *on = mjs_findBody(spec, body == PABD_WORLD ? "world" : owner);
  mjsSite *site = mjs_addSite(on, NULL);
  mjs_setName(site->element, name);
  copy3(site->pos, pabd_dpose_apply(frame, offset));
  copy4(site->quat, frame.q);
}

static void add_joints(mujoco_world *w, mjSpec *spec) {
  const double span = w->value[HINGE_SPAN];
  for (int32_t j = 0; j < w->scene.joint_count; ++j) {
    const pabd_joint *joint = &w->scene.joints[j];
    const int points = joint->kind == PABD_HINGE ? 2 : 1;
    for (int k = 0; k < points; ++k) {
      const pabd_dvec3 offset = {0, 0, points == 2 ? (k ? span : -span) : 0};
      char a[32], b[32], name[32];
      snprintf(a, sizeof a, "ja%d_%d", j, k);
      snprintf(b, sizeof b, "jb%d_%d", j, k);
      snprintf(name, sizeof name, "t%d", j);
      add_site(spec, joint->body_a, joint->frame_a, offset, a);
      add_site(spec, joint->body_b, joint->frame_b, offset, b);
      if (joint->kind == PABD_SPHERICAL || joint->kind == PABD_HINGE || joint->kind == PABD_FIXED) {
        mjsEquality *row = mjs_addEquality(spec, NULL);
        row->type = joint->kind == PABD_FIXED ? mjEQ_WELD : mjEQ_CONNECT;
        row->objtype = mjOBJ_SITE; /* by sites: both anchors are given, none is taken from the start poses */
        mjs_setString(row->name1, a);
        mjs_setString(row->name2, b);
        set_softness(w, JOINT_TIME, row->solref, row->solimp);
        continue;
      }
      mjsTendon *tendon = mjs_addTendon(spec, NULL);
      mjs_setName(tendon->element, name);
      mjs_wrapSite(tendon, a);
      mjs_wrapSite(tendon, b);
      if (joint->kind == PABD_SPRING) {
        tendon->stiffness[0] = joint->stiffness;
        tendon->damping[0] = joint->damping;
        tendon->springlength[0] = tendon->springlength[1] = joint->rest;
      } else if (joint->has_limits) {
        tendon->limited = mjLIMITED_TRUE;
        tendon->range[0] = joint->lower;
        tendon->range[1] = joint->upper;
        set_softness(w, JOINT_TIME, tendon->solref_limit, tendon->solimp_limit);
      } else {
        /* Length minus the start's length is kept at data[0]. */
        const pabd_dpose unit = {{0, 0, 0}, {1, 0, 0, 0}};
        const pabd_dpose pose_a = joint->body_a == PABD_WORLD ? unit : w->scene.bodies[joint->body_a].pose;
        const pabd_dvec3 p = pabd_dpose_apply(pose_a, joint->frame_a.p);
        const pabd_dvec3 q = pabd_dpose_apply(w->scene.bodies[joint->body_b].pose, joint->frame_b.p);
        mjsEquality *row = mjs_addEquality(spec, NULL);
        row->type = mjEQ_TENDON;
        row->objtype = mjOBJ_TENDON;
        mjs_setString(row->name1, name);
        memset(row->data, 0, sizeof row->data);
        row->data[0] =
            joint->rest - sqrt((p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y) + (p.z - q.z) * (p.z - q.z));
        set_softness(w, JOINT_TIME, row->solref, row->solimp);
      }
    }
  }
}

static void set_options(const mujoco_world *w, mjSpec *spec) {
  static const int solvers[] = {mjSOL_PGS, mjSOL_CG, mjSOL_NEWTON};
  static const int integrators[] = {mjINT_EULER, mjINT_RK4, mjINT_IMPLICIT, mjINT_IMPLICITFAST, mjINT_DISCRETE};
  mjOption *option = &spec->option;
  option->timestep = w->scene.frame_time / w->value[SUBSTEPS];
  copy3(option->gravity, w->scene.gravity);
  option->solver = solvers[(int)w->value[SOLVER]];
  option->iterations = (int)w->value[ITERATIONS];
  option->tolerance = w->value[TOLERANCE];
  option->cone = w->value[CONE] > 0 ? mjCONE_ELLIPTIC : mjCONE_PYRAMIDAL;
  option->integrator = integrators[(int)w->value[INTEGRATOR]];
  option->impratio = w->value[IMPRATIO];
  option->noslip_iterations = (int)w->value[NOSLIP];
  option->disableflags |= mjDSBL_AUTORESET;
  if (w->value[REFSAFE] == 0) option->disableflags |= mjDSBL_REFSAFE;
  if (w->value[DIAGEXACT] > 0) option->enableflags |= mjENBL_DIAGEXACT;
  spec->compiler.boundmass = spec->compiler.boundinertia = 0;
  spec->compiler.balanceinertia = 0;
  spec->compiler.alignfree = 0;
  spec->compiler.degree = 0;
  spec->compiler.usethread = 0;
  spec->compiler.inertiafromgeom = mjINERTIAFROMGEOM_AUTO;
  const double megabytes = w->value[MEMORY] > 0 ? w->value[MEMORY] : 64 + 0.5 * w->scene.body_count;
  spec->memory = (mjtSize)(megabytes * 1024 * 1024);
}

static void set_state(mujoco_world *w) {
  for (int32_t b = 0; b < w->scene.body_count; ++b) {
    const pabd_body *body = &w->scene.bodies[b];
    if (w->qpos[b] < 0) continue;
    mjtNum *q = w->data->qpos + w->qpos[b], *v = w->data->qvel + w->qvel[b];
    copy3(q, body->pose.p);
    copy4(q + 3, body->pose.q);
    copy3(v, body->linear);
    copy3(v + 3, pabd_dquat_rotate(pabd_dquat_conj(body->pose.q), body->angular)); /* in the body's frame */
  }
}

static void destroy(void *world) {
  mujoco_world *w = world;
  if (w == NULL) return;
  if (w->data) mj_deleteData(w->data);
  if (w->model) mj_deleteModel(w->model);
  pabd_filter_free(&w->filter);
  pabd_scene_free(&w->scene);
  free(w->qpos);
  free(w->qvel);
  free(w->id);
  free(w->geom_body);
  free(w->force);
  free(w);
}

static pabd_status build(mujoco_world *w, const pabd_scene *scene, pabd_error *error) {
  const size_t bodies = (size_t)scene->body_count + 1;
  PABD_TRY(pabd_scene_copy(scene, &w->scene));
  PABD_TRY(pabd_filter_init(&w->filter, scene));
  w->qpos = malloc(bodies * sizeof *w->qpos);
  w->qvel = malloc(bodies * sizeof *w->qvel);
  w->id = malloc(bodies * sizeof *w->id);
  w->force = calloc(bodies * 6, sizeof *w->force);
  if (!w->qpos || !w->qvel || !w->id || !w->force) return PABD_ERR_MEMORY;
  mjSpec *spec = mj_makeSpec();
  set_options(w, spec);
  add_bodies(w, spec);
  add_joints(w, spec);
  w->model = mj_compile(spec, NULL);
  if (w->model == NULL) {
    pabd_status status =
        pabd_fail(error, PABD_ERR_INTERNAL, "mujoco: the model does not compile: %s", mjs_getError(spec));
    mj_deleteSpec(spec);
    return status;
  }
  w->geom_body = malloc(((size_t)w->model->ngeom + 1) * sizeof *w->geom_body);
  w->data = mj_makeData(w->model);
  if (w->geom_body == NULL || w->data == NULL) {
    mj_deleteSpec(spec);
    return PABD_ERR_MEMORY;
  }
  for (int32_t b = 0; b < scene->body_count; ++b) {
    char name[32];
    snprintf(name, sizeof name, "b%d", b);
    w->id[b] = mj_name2id(w->model, mjOBJ_BODY, name);
    const int joint = w->model->body_jntadr[w->id[b]];
    w->qpos[b] = joint >= 0 ? w->model->jnt_qposadr[joint] : -1;
    w->qvel[b] = joint >= 0 ? w->model->jnt_dofadr[joint] : -1;
    for (int g = 0; g < w->model->body_geomnum[w->id[b]]; ++g) w->geom_body[w->model->body_geomadr[w->id[b]] + g] = b;
  }
  mj_deleteSpec(spec);
  const double factor = w->value[INVWEIGHT];
  if (factor != 1) {
    for (int k = 0; k < 2 * w->model->nbody; ++k) w->model->body_invweight0[k] *= factor;
    for (int k = 0; k < w->model->nv; ++k) w->model->dof_invweight0[k] *= factor;
    for (int k = 0; k < w->model->ntendon; ++k) w->model->tendon_invweight0[k] *= factor;
  }
  set_state(w);
  return PABD_OK;
}

/* ---- The table ---- */

static pabd_status probe(pabd_engine_info *info, pabd_error *error) {
  (void)error;
  *info = (pabd_engine_info){.name = "mujoco",
                             .version = mj_versionString(),
                             .precision = sizeof(mjtNum) == 8 ? "double" : "float",
                             .device = "cpu",
                             .license = "Apache-2.0",
                             .build = "prebuilt: PyPI wheel mujoco-core 4.0.0",
                             .capabilities = capabilities};
  return PABD_OK;
}

static const pabd_setting_info *settings(int32_t *count) {
  *count = SETTING_COUNT;
  return settings_table;
}

static mjtNum clock_ms(void) {
  return pabd_now_ms();
}

static pabd_status create(const pabd_scene *scene, const pabd_setting *given, int32_t given_count, void **world,
                          pabd_error *error) {
  double value[SETTING_COUNT];
  *world = NULL;
  PABD_TRY(pabd_settings_parse("mujoco", settings_table, SETTING_COUNT, given, given_count, value, error));
  PABD_TRY(pabd_scene_supported("mujoco", scene, capabilities, error));
  for (int32_t j = 0; j < scene->joint_count; ++j)
    if (scene->joints[j].kind == PABD_HINGE && (scene->joints[j].has_limits || scene->joints[j].stiffness > 0))
      return pabd_fail(error, PABD_ERR_UNSUPPORTED,
                       "mujoco: hinge %d between free bodies has no limits or springs here", j);
  /* In the discrete integrator the tendons' stiffness is implicit. */
  if (value[INTEGRATOR] < 4)
    PABD_TRY(pabd_scene_springs_stable("mujoco", scene, scene->frame_time / value[SUBSTEPS], error));
  mju_user_warning = count_warning;
  mjcb_contactfilter = discard_pair;
  mjcb_time = clock_ms;
  mujoco_world *w = calloc(1, sizeof *w);
  if (w == NULL) return PABD_ERR_MEMORY;
  memcpy(w->value, value, sizeof value);
  pabd_status status = build(w, scene, error);
  if (status != PABD_OK) {
    destroy(w);
    return status;
  }
  *world = w;
  return PABD_OK;
}

static pabd_status step(void *world, pabd_error *error) {
  mujoco_world *w = world;
  const double h = w->scene.frame_time / w->value[SUBSTEPS], start = w->time, clock = pabd_now_ms();
  for (int k = 0; k < mjNTIMER; ++k) w->data->timer[k].duration = 0;
  w->solver_iterations = 0;
  stepping = w;
  for (int s = 0; s < (int)w->value[SUBSTEPS]; ++s) {
    w->time = start + s * h;
    if (w->scene.load_count > 0) {
      const int acts = pabd_scene_loads(&w->scene, w->time, w->time + h, w->force);
      for (int32_t b = 0; b < w->scene.body_count; ++b)
        for (int k = 0; k < 6; ++k) w->data->xfrc_applied[6 * w->id[b] + k] = acts ? w->force[(size_t)b * 6 + k] : 0;
    }
    mj_step(w->model, w->data);
    for (int k = 0; k < (w->data->nisland < mjNISLAND ? w->data->nisland : mjNISLAND); ++k)
      w->solver_iterations += w->data->solver_niter[k];
    w->time = start + (s + 1) * h;
  }
  stepping = NULL;
  w->collide_ms = w->data->timer[mjTIMER_POS_COLLISION].duration;
  w->solve_ms = w->data->timer[mjTIMER_CONSTRAINT].duration;
  w->other_ms = pabd_now_ms() - clock - w->collide_ms - w->solve_ms;
  const mjWarningStat *warning = w->data->warning;
  if (warning[mjWARN_BADQPOS].number || warning[mjWARN_BADQVEL].number || warning[mjWARN_BADQACC].number)
    return pabd_fail(error, PABD_DIVERGED, "mujoco: bad numbers in its state at %.4g s", w->time);
  return PABD_OK;
}

static void read_state(void *world, double *pose, double *velocity) {
  const mujoco_world *w = world;
  for (int32_t b = 0; b < w->scene.body_count; ++b) {
    double *p = pose + (size_t)b * 7, *v = velocity + (size_t)b * 6;
    if (w->qpos[b] < 0) {
      copy3(p, w->scene.bodies[b].pose.p);
      copy4(p + 3, w->scene.bodies[b].pose.q);
      memset(v, 0, 6 * sizeof *v);
      continue;
    }
    const mjtNum *q = w->data->qpos + w->qpos[b], *rate = w->data->qvel + w->qvel[b];
    const pabd_dquat turn = pabd_dquat_normalize((pabd_dquat){q[3], q[4], q[5], q[6]});
    for (int k = 0; k < 3; ++k) p[k] = q[k], v[k] = rate[k];
    copy4(p + 3, turn);
    copy3(v + 3, pabd_dquat_rotate(turn, (pabd_dvec3){rate[3], rate[4], rate[5]}));
  }
}

static void stats(void *world, pabd_engine_stats *out) {
  const mujoco_world *w = world;
  memset(out, 0, sizeof *out);
  pabd_stats_stage(out, "collide", 1, w->collide_ms);
  pabd_stats_stage(out, "constraint", 0, w->solve_ms);
  pabd_stats_stage(out, "other", 0, w->other_ms);
  pabd_stats_counter(out, "contacts", "1", w->data->ncon);
  pabd_stats_counter(out, "sweeps", "1", (double)w->solver_iterations);
  pabd_stats_counter(out, "overflow", "1",
                     w->data->warning[mjWARN_CONTACTFULL].number + w->data->warning[mjWARN_CNSTRFULL].number);
  pabd_stats_counter(out, "messages", "1", (double)w->warnings);
}

static void setting_value(void *world, int32_t index, char *buffer, int32_t size) {
  pabd_setting_print(&settings_table[index], ((mujoco_world *)world)->value[index], buffer, size);
}

/* MuJoCo's normal points from its first geom to its second: a is the second. */
static int32_t contacts(void *world, pabd_contact *out, int32_t capacity) {
  const mujoco_world *w = world;
  for (int32_t k = 0; k < w->data->ncon && k < capacity; ++k) {
    const mjContact *c = &w->data->contact[k];
    mjtNum f[6], world_force[3];
    mj_contactForce(w->model, w->data, k, f); /* on the second geom, in the contact's frame (rows: normal, tangents) */
    for (int i = 0; i < 3; ++i) world_force[i] = c->frame[i] * f[0] + c->frame[3 + i] * f[1] + c->frame[6 + i] * f[2];
    out[k] = (pabd_contact){.body_a = w->geom_body[c->geom[1]],
                            .body_b = w->geom_body[c->geom[0]],
                            .point = {c->pos[0], c->pos[1], c->pos[2]},
                            .normal = {c->frame[0], c->frame[1], c->frame[2]},
                            .gap = c->dist,
                            .friction = c->friction[0],
                            .force = {world_force[0], world_force[1], world_force[2]}};
  }
  return w->data->ncon;
}

static const pabd_engine table = {PABD_ENGINE_ABI, sizeof(pabd_engine), probe,    settings, create, step,   read_state,
                                  stats,           setting_value,       contacts, NULL,     NULL,   destroy};

PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void);
const pabd_engine *pabd_engine_entry(void) {
  return &table;
}
