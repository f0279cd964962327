/* Rows of joints and contacts of one island: errors, both Jacobians, geometric stiffness, active sets.
 *
 * Notation of a joint: u = axis fixed in a, v = axis fixed in b, d = p_b + x_b - p_a - x_a between its anchors. J_e
 * (end of the step) linearizes C, J_f (arms mixed by gamma) carries the force; row C = 0 and force J_f^T lambda. All
 * rows are linear or bilinear in (p, R), so for gamma = 1/2 the force is a discrete gradient and does no work at C = 0
 * (energy and momenta are kept). */

typedef struct row_work {
  vec3 u, v;  /* axes at the start, in a and in b */
  real c0, c; /* error at the start; at the iterate (minus the target) */
  real lambda, lambda_start;
  real compliance; /* 1/k' of soft rows; proximal term of rows that may be redundant, scaled at evaluation */
  real reference;  /* limit: the value it is held at; below 0 where it was exceeded at the start */
  real offset;     /* constant part of a soft row's residual: ((1 - gamma) k C_n - c C_n/h)/k' */
  int8_t state;    /* ROW_* */
  int8_t was;      /* state at the step's start */
  int8_t released; /* motor: let off its bound once in this step */
} row_work;

/* Rate at which the excess of a limit is removed (1/s): to remove all of it at once would do work. */
#define LIMIT_RATE 6.0

enum { ROW_OFF, ROW_ON, ROW_BOUND }; /* no force; equation in force; constant force */

struct joint_work {
  int32_t a, b; /* local bodies */
  int32_t index;
  vec3 xa0, xb0, d0;   /* m: arms and anchor difference at the start */
  real dnorm0;         /* m: |d| at the start */
  real angle0;         /* rad: free angle at the start */
  vec3 ux, uy, uz, vx; /* a's axes, b's x axis at the start: free angle, limits */
  real angle_raw0;     /* rad: the same angle, wrapped */
  int32_t limit_side;
  row_work row[DIRECT_ROWS];
};

struct contact_work {
  int32_t a, b;
  vec3 n, t1, t2;
  vec3 xa0, xb0; /* m: core arms at the start */
  real offset_a, offset_b, gap0, reference, kappa, mu;
  vec3 lambda;     /* N: normal, tangents; carried */
  vec3 force;      /* N: of the iterate */
  real kn, kt;     /* N/m: stiffness of the iterate */
  real slip_scale; /* limit over trial friction; 1 = sticks */
  int32_t state;
};

enum { CONTACT_OPEN, CONTACT_STICK, CONTACT_SLIP };

/* ---- joints: start of a step
 * --------------------------------------------------------------------------------------------------- */

static void rows_attach(core *w) {
  const direct_island *island = w->island;
  for (int32_t k = 0; k < island->body_count; ++k) w->at[k]->local = k;
  int32_t world = -1;
  for (int32_t k = island->body_count; k < island->local_count; ++k) {
    if (island->body[k] >= 0)
      w->bodies[island->body[k]].local = k;
    else
      world = k;
  }
  for (int32_t k = 0; k < island->joint_count; ++k) {
    const direct_joint *j = &w->joints[island->joint[k]];
    joint_work *t = &w->joint[k];
    t->index = k;
    t->a = j->body_a < 0 ? world : w->bodies[j->body_a].local;
    t->b = w->bodies[j->body_b].local;
  }
  for (int32_t p = 0; p < island->order.node_count; ++p) {
    int32_t node = island->order.order[p];
    w->position[node] = p;
    w->size[p] = node < island->body_count ? 6 : w->joints[island->joint[node - island->body_count]].row_count;
  }
}

static double wrap_angle(double a) {
  const double turn = 6.283185307179586;
  while (a > 0.5 * turn) a -= turn;
  while (a < -0.5 * turn) a += turn;
  return a;
}

static dvec3 axis_of(dquat q, int axis) {
  return dq_rotate(q, d3(axis == 0, axis == 1, axis == 2));
}

/* Way of the motor's coordinate over the step after which its rate is the target rate. For a hinge it is a Cayley
 * parameter, 2 tan(angle/2), and so are the rates of the state: the target is turned into one, or the angle would fall
 * behind by (h rate)^2/12. */
static double motor_target(const core *w, const direct_joint *j, double now, double rate_now, double rate_last,
                           int turns) {
  const step_work *s = &w->step;
  double rate = j->motor_target;
  if (j->motor == PABD_MOTOR_POSITION) {
    /* the rate of the set point, and a part of the error at each step */
    double end = w->island->time + w->time + s->h, start = end - s->h;
    double set_rate = j->motor_amplitude * j->motor_frequency * cos(j->motor_frequency * end + j->motor_phase);
    double set = j->motor_target + j->motor_amplitude * sin(j->motor_frequency * start + j->motor_phase);
    rate = set_rate + 0.25 * (set - now) / s->h;
  }
  if (turns) rate = 2.0 * tan(fmin(fmax(0.5 * s->h * rate, -1.2), 1.2)) / s->h;
  double history = s->kind == SCHEME_MOMENTUM ? -rate_now : s->kind == SCHEME_BDF2 ? -s->r * rate_last : 0.0;
  return s->h * (rate - history) / s->a0;
}

/* Row of the limit on side t->limit_side, for a coordinate of `value` at the start: C >= 0 is allowed. */
static void limit_begin(const direct_joint *j, const joint_work *t, row_work *row, int kind, double h, double value) {
  double sign = t->limit_side > 0 ? -1.0 : 1.0, bound = t->limit_side > 0 ? j->upper : j->lower;
  double away = value - bound, c = sign * away; /* value - lower or upper - value */
  row->u = row->v = v3_zero();
  if (kind == DIRECT_SWING) {
    /* C = sin(value - bound), and its negative above: the row's a-axis is turned by the bound */
    row->u = v3_scale((real)sign, v3_madd(v3_scale((real)-sin(bound), t->ux), (real)cos(bound), t->uy));
    row->v = t->vx;
    c = fabs(away) < 1.5 ? sign * sin(away) : away * sign > 0.0 ? 1.0 : -1.0;
  } else if (kind == DIRECT_LINE) {
    row->u = v3_scale((real)sign, t->uz);
  } else {
    row->v = v3((real)sign, R(0), R(0));
  }
  row->c0 = (real)c;
  /* one that is hit is held where it is: with the force of the hit the least push does work */
  row->reference = (real)(c < 0.0 ? (j->state.limit_active != 0 ? fmax(1.0 - LIMIT_RATE * h, 0.9) : 1.0) * c : 0.0);
}

static void joint_begin(core *w, joint_work *t) {
  const step_work *s = &w->step;
  direct_joint *j = &w->joints[w->island->joint[t->index]];
  const direct_body *a = w->at[t->a], *b = w->at[t->b];
  dvec3 xa = dq_rotate(a->q, j->anchor_a), xb = dq_rotate(b->q, j->anchor_b);
  dvec3 d = d3_add(d3_sub(b->p, a->p), d3_sub(xb, xa));
  dquat qa = dq_mul(a->q, j->frame_a), qb = dq_mul(b->q, j->frame_b);
  t->xa0 = v3_from(xa), t->xb0 = v3_from(xb), t->d0 = v3_from(d);
  t->dnorm0 = (real)d3_norm(d);
  dvec3 ax = axis_of(qa, 0), ay = axis_of(qa, 1), az = axis_of(qa, 2), bx = axis_of(qb, 0);
  t->ux = v3_from(ax), t->uy = v3_from(ay), t->uz = v3_from(az), t->vx = v3_from(bx);
  double angle_raw = atan2(d3_dot(ay, bx), d3_dot(ax, bx));
  double angle = j->state.angle + wrap_angle(angle_raw - j->state.angle);
  t->angle_raw0 = (real)angle_raw, t->angle0 = (real)angle;
  int slides = 0;
  for (int r = 0; r < j->row_count; ++r) slides |= j->role[r] != DIRECT_HARD && j->kind[r] == DIRECT_LINE;
  double gamma = (double)s->gamma, position = d3_dot(az, d);
  for (int r = 0; r < j->row_count; ++r) {
    row_work *row = &t->row[r];
    row->state = ROW_ON, row->released = 0;
    row->compliance = row->offset = row->reference = R(0);
    row->lambda = row->lambda_start = (real)j->state.lambda[r];
    double c = 0.0;
    dvec3 u = axis_of(qa, j->i[r]), v = axis_of(qb, j->j[r]);
    if (j->role[r] == DIRECT_LIMIT) {
      double value = j->kind[r] == DIRECT_SWING ? angle : j->kind[r] == DIRECT_LINE ? position : d3_norm(d);
      t->limit_side =
          j->state.limit_active != 0 ? j->state.limit_active : (value - j->lower < j->upper - value ? -1 : 1);
      limit_begin(j, t, row, j->kind[r], s->h, value);
      row->state = j->state.limit_active != 0 ? ROW_ON : ROW_OFF;
      if (row->state == ROW_OFF) row->lambda = R(0);
      row->was = row->state;
      continue;
    }
    switch ((direct_row_kind)j->kind[r]) {
      case DIRECT_POINT:
        c = j->i[r] == 0 ? d.x : j->i[r] == 1 ? d.y : d.z;
        break;
      case DIRECT_DIRECTION:
        c = d3_dot(u, v);
        break;
      case DIRECT_LINE:
        c = d3_dot(u, d);
        break;
      case DIRECT_DISTANCE:
        c = d3_norm(d) - j->rest, v = d3(1, 0, 0);
        break;
      case DIRECT_ANGLE:
        c = angle - j->rest, u = az;
        break;
      case DIRECT_SWING:
        break;
    }
    if (j->role[r] == DIRECT_SPRING) {
      if (j->kind[r] == DIRECT_LINE) c -= j->rest;
      double k = gamma * j->stiffness + j->damping / s->h;
      if (k > 0.0) {
        row->compliance = (real)(1.0 / k);
        row->offset = (real)(((1.0 - gamma) * j->stiffness - j->damping / s->h) * c / k);
      } else {
        row->state = ROW_OFF, row->lambda = R(0);
      }
    } else if (j->role[r] == DIRECT_MOTOR) {
      dvec3 wa = omega_of(a), wb = omega_of(b), dw = d3_sub(wb, wa);
      double rate, rate_last = 0.0;
      if (slides) {
        dvec3 va = d3_add(velocity_of(a), d3_cross(wa, d3_add(xa, d))), vb = d3_add(velocity_of(b), d3_cross(wb, xb));
        rate = d3_dot(az, d3_sub(vb, va));
      } else {
        rate = d3_dot(az, dw);
      }
      if (b->step_h > 0.0 &&
          a->motion != PABD_DYNAMIC) /* mean rate of the last step; relative to a moving parent: the present rate */
        rate_last = slides ? d3_dot(az, b->step) / b->step_h : d3_dot(az, dq_rotate(b->q, b->turn)) / b->step_h;
      else
        rate_last = rate;
      if (slides) {
        double move = motor_target(w, j, position, rate, rate_last, 0);
        c = -move; /* C = position - target */
        u = az;
      } else {
        double half = motor_target(w, j, angle, rate, rate_last, 1) * 0.5, move = 2.0 * atan(half),
               target = angle + move;
        u = d3_add(d3_scale(-sin(target), ax), d3_scale(cos(target), ay));
        v = bx;
        c = sin(-move);
      }
      row->state = j->state.motor_force_step != 0.0 ? ROW_BOUND : ROW_ON;
      if (row->state == ROW_BOUND) row->lambda = (real)(j->state.motor_force_step * j->motor_max);
    }
    row->was = row->state;
    row->u = v3_from(u), row->v = v3_from(v);
    row->c0 = (real)c;
  }
}

static void contact_begin(core *w, const direct_contact *c, contact_work *t) {
  const direct_body *a = w->at[c->a], *b = w->at[c->b];
  double h = w->step.h;
  t->a = c->a, t->b = c->b;
  t->n = v3_from(c->normal), t->t1 = v3_from(c->tangent), t->t2 = v3_cross(t->n, t->t1);
  dvec3 xa = dq_rotate(a->q, c->core_a), xb = dq_rotate(b->q, c->core_b);
  double gap = c->gap + (d3_dot(c->normal, d3_add(d3_sub(a->p, b->p), d3_sub(xa, xb))) - c->bias);
  t->xa0 = v3_from(xa), t->xb0 = v3_from(xb);
  t->offset_a = (real)c->offset_a, t->offset_b = (real)c->offset_b;
  t->gap0 = (real)gap;
  t->reference = (real)(gap < 0.0 ? 0.95 * gap : 0.0);
  t->kappa = (real)(10.0 * c->support / (h * h));
  t->mu = (real)c->mu;
  t->lambda = v3((real)c->lambda[0], (real)c->lambda[1], (real)c->lambda[2]);
  t->state = -1;
  t->slip_scale = R(1);
}

static void rows_begin(core *w) {
  const direct_island *island = w->island;
  for (int32_t k = 0; k < island->joint_count; ++k) joint_begin(w, &w->joint[k]);
  for (int32_t k = 0; k < island->contact_count; ++k) contact_begin(w, &island->contact[k], &w->contact[k]);
}

/* ---- joints: one iterate
 * ------------------------------------------------------------------------------------------------------------ */

/* Jacobians of one joint at the iterate and its geometric stiffness: rows in order; [0] of a, [1] of b. */
typedef struct joint_stamp {
  vec3 e1[DIRECT_ROWS][2], e2[DIRECT_ROWS][2]; /* J_e: translation, rotation */
  vec3 f1[DIRECT_ROWS][2], f2[DIRECT_ROWS][2]; /* J_f */
  mat3 k[2][2][2][2];                          /* [body][part][body][part]: d(-J_f^T lambda) */
} joint_stamp;

static real free_angle(const joint_work *t, quat qa, quat qb) {
  vec3 ux = v3_add(t->ux, quat_turn(qa, t->ux)), uy = v3_add(t->uy, quat_turn(qa, t->uy)),
       v = v3_add(t->vx, quat_turn(qb, t->vx));
  return t->angle0 + (real)wrap_angle((double)(real_atan2(v3_dot(uy, v), v3_dot(ux, v)) - t->angle_raw0));
}

/* Errors of all rows at the iterate, and with `stamp` their Jacobians and stiffness. */
static void joint_evaluate(const core *w, joint_work *t, joint_stamp *stamp) {
  const direct_joint *j = &w->joints[w->island->joint[t->index]];
  const body_work *a = &w->body[t->a], *b = &w->body[t->b];
  real gamma = w->step.gamma;
  vec3 zero = v3_zero();
  vec3 turn_a = quat_turn(a->dq, t->xa0), turn_b = quat_turn(b->dq, t->xb0);
  vec3 xa = v3_add(t->xa0, turn_a), xb = v3_add(t->xb0, turn_b);
  vec3 xaf = v3_madd(t->xa0, gamma, turn_a), xbf = v3_madd(t->xb0, gamma, turn_b);
  vec3 dd = v3_add(v3_sub(b->dp, a->dp), v3_sub(turn_b, turn_a)); /* change of d */
  vec3 d = v3_add(t->d0, dd), df = v3_madd(t->d0, gamma, dd);
  vec3 D = v3_add(d, xa), Df = v3_add(df, xaf); /* from a's center to b's anchor */
  if (stamp) memset(stamp, 0, sizeof *stamp);
  vec3 point_force = zero;
  for (int r = 0; r < j->row_count; ++r) {
    row_work *row = &t->row[r];
    real s = gamma * row->lambda;
    int on = row->state != ROW_OFF;
    switch ((direct_row_kind)j->kind[r]) {
      case DIRECT_POINT: {
        vec3 e = v3(j->i[r] == 0, j->i[r] == 1, j->i[r] == 2);
        row->c = v3_dot(e, d);
        if (!stamp) break;
        stamp->e1[r][0] = stamp->f1[r][0] = v3_neg(e), stamp->e1[r][1] = stamp->f1[r][1] = e;
        stamp->e2[r][0] = v3_neg(v3_cross(xa, e)), stamp->e2[r][1] = v3_cross(xb, e);
        stamp->f2[r][0] = v3_neg(v3_cross(xaf, e)), stamp->f2[r][1] = v3_cross(xbf, e);
        point_force = v3_madd(point_force, s, e);
        break;
      }
      case DIRECT_DIRECTION:
      case DIRECT_SWING: {
        vec3 du = quat_turn(a->dq, row->u), dv = quat_turn(b->dq, row->v);
        vec3 u = v3_add(row->u, du), v = v3_add(row->v, dv), uf = v3_madd(row->u, gamma, du),
             vf = v3_madd(row->v, gamma, dv);
        row->c = row->c0 + v3_dot(du, v) + v3_dot(row->u, dv);
        if (!stamp) break;
        vec3 m = v3_cross(v, u), mf = v3_cross(vf, uf);
        stamp->e2[r][0] = v3_neg(m), stamp->e2[r][1] = m;
        stamp->f2[r][0] = v3_neg(mf), stamp->f2[r][1] = mf;
        if (!on) break;
        stamp->k[1][1][1][1] = mat3_add(stamp->k[1][1][1][1], mat3_geometric(s, uf, v));
        stamp->k[0][1][1][1] = mat3_sub(stamp->k[0][1][1][1], mat3_geometric(s, uf, v));
        stamp->k[1][1][0][1] = mat3_sub(stamp->k[1][1][0][1], mat3_geometric(s, vf, u));
        stamp->k[0][1][0][1] = mat3_add(stamp->k[0][1][0][1], mat3_geometric(s, vf, u));
        break;
      }
      case DIRECT_LINE: {
        vec3 du = quat_turn(a->dq, row->u), u = v3_add(row->u, du), uf = v3_madd(row->u, gamma, du);
        row->c = row->c0 + v3_dot(du, d) + v3_dot(row->u, dd);
        if (!stamp) break;
        stamp->e1[r][0] = v3_neg(u), stamp->e1[r][1] = u;
        stamp->f1[r][0] = v3_neg(uf), stamp->f1[r][1] = uf;
        stamp->e2[r][0] = v3_neg(v3_cross(D, u)), stamp->e2[r][1] = v3_cross(xb, u);
        stamp->f2[r][0] = v3_neg(v3_cross(Df, uf)), stamp->f2[r][1] = v3_cross(xbf, uf);
        if (!on) break;
        mat3 su = mat3_scale(s, mat3_skew(u)), suf = mat3_scale(s, mat3_skew(uf)), g = mat3_geometric(s, uf, xb);
        stamp->k[1][0][0][1] = mat3_add(stamp->k[1][0][0][1], su);
        stamp->k[0][0][0][1] = mat3_sub(stamp->k[0][0][0][1], su);
        stamp->k[0][1][1][0] = mat3_sub(stamp->k[0][1][1][0], suf);
        stamp->k[0][1][0][0] = mat3_add(stamp->k[0][1][0][0], suf);
        stamp->k[1][1][1][1] = mat3_add(stamp->k[1][1][1][1], g);
        stamp->k[0][1][1][1] = mat3_sub(stamp->k[0][1][1][1], g);
        stamp->k[1][1][0][1] = mat3_sub(stamp->k[1][1][0][1], mat3_geometric(s, xbf, u));
        stamp->k[0][1][0][1] = mat3_add(stamp->k[0][1][0][1], mat3_geometric(s, Df, u));
        break;
      }
      case DIRECT_DISTANCE: {
        real sign = row->v.x, norm = v3_norm(d), mean = (R(1) - gamma) * t->dnorm0 + gamma * norm;
        real tiny = R(1e-12);
        vec3 e = v3_scale(sign / real_max(norm, tiny), d), ef = v3_scale(sign / real_max(mean, tiny), df);
        row->c = row->c0 + sign * v3_dot(dd, v3_add(d, t->d0)) / real_max(norm + t->dnorm0, tiny);
        if (!stamp) break;
        stamp->e1[r][0] = v3_neg(e), stamp->e1[r][1] = e;
        stamp->f1[r][0] = v3_neg(ef), stamp->f1[r][1] = ef;
        stamp->e2[r][0] = v3_neg(v3_cross(xa, e)), stamp->e2[r][1] = v3_cross(xb, e);
        stamp->f2[r][0] = v3_neg(v3_cross(xaf, ef)), stamp->f2[r][1] = v3_cross(xbf, ef);
        if (!on) break;
        /* d(ef) = gamma P (change of d), P = sign (1 - (sign ef)(sign e)^T)/mean */
        mat3 P = mat3_diagonal(s * sign / real_max(mean, tiny));
        P = mat3_outer(P, v3_scale(-s * sign / real_max(mean, tiny), ef), e);
        mat3 Pa = mat3_times_skew(P, xa),
             Pb = mat3_times_skew(P, xb); /* change of d: dp_b - [xb] phi_b - dp_a + [xa] phi_a */
        for (int q = 0; q < 2; ++q) {     /* force -lambda ef in g of b, + in g of a */
          real f = q ? R(-1) : R(1);
          vec3 arm = q ? xbf : xaf, x = q ? xb : xa;
          mat3 T = skew_times(arm, P), Ta = skew_times(arm, Pa), Tb = skew_times(arm, Pb);
          stamp->k[q][0][1][0] = mat3_add(stamp->k[q][0][1][0], mat3_scale(f, P));
          stamp->k[q][0][1][1] = mat3_sub(stamp->k[q][0][1][1], mat3_scale(f, Pb));
          stamp->k[q][0][0][0] = mat3_sub(stamp->k[q][0][0][0], mat3_scale(f, P));
          stamp->k[q][0][0][1] = mat3_add(stamp->k[q][0][0][1], mat3_scale(f, Pa));
          stamp->k[q][1][1][0] = mat3_add(stamp->k[q][1][1][0], mat3_scale(f, T));
          stamp->k[q][1][1][1] = mat3_sub(stamp->k[q][1][1][1], mat3_scale(f, Tb));
          stamp->k[q][1][0][0] = mat3_sub(stamp->k[q][1][0][0], mat3_scale(f, T));
          stamp->k[q][1][0][1] = mat3_add(stamp->k[q][1][0][1], mat3_scale(f, Ta));
          stamp->k[q][1][q][1] = mat3_add(stamp->k[q][1][q][1], mat3_geometric(-f * s, ef, x));
        }
        break;
      }
      case DIRECT_ANGLE: {
        vec3 du = quat_turn(a->dq, row->u), u = v3_add(row->u, du), uf = v3_madd(row->u, gamma, du);
        row->c = row->c0 + (free_angle(t, a->dq, b->dq) - t->angle0);
        if (!stamp) break;
        stamp->e2[r][0] = v3_neg(u), stamp->e2[r][1] = u;
        stamp->f2[r][0] = v3_neg(uf), stamp->f2[r][1] = uf;
        if (!on) break;
        mat3 su = mat3_scale(s, mat3_skew(u));
        stamp->k[1][1][0][1] = mat3_add(stamp->k[1][1][0][1], su);
        stamp->k[0][1][0][1] = mat3_sub(stamp->k[0][1][0][1], su);
        break;
      }
    }
  }
  if (stamp && j->is_point) {
    stamp->k[1][1][1][1] = mat3_add(stamp->k[1][1][1][1], mat3_geometric(R(1), point_force, xb));
    stamp->k[0][1][0][1] = mat3_sub(stamp->k[0][1][0][1], mat3_geometric(R(1), point_force, xa));
  }
}

/* ---- contacts: one iterate
 * ------------------------------------------------------------------------------------------------------- */

#define OPEN_STAMP 0.005 /* share of kappa that an open candidate stamps */
#define MAJORIZE_AFTER 8 /* iterations after which it stamps all of it */
/* relative change of the slip factor that counts as settled: on a slope half a degree too steep 0.5 % of friction would
 * be 20 % of the acceleration */
#define SLIP_TOLERANCE 0.0005

/* Forces and states at the iterate. `done` iterations lie behind. Returns 1 when no row changed its state and the
 * friction bounds have settled, i.e. when the last linear solve was one with the right stiffness. */
static int contacts_evaluate(core *w, int done) {
  const direct_island *island = w->island;
  int settled = 1;
  for (int32_t k = 0; k < island->contact_count; ++k) {
    contact_work *t = &w->contact[k];
    const body_work *a = &w->body[t->a], *b = &w->body[t->b];
    vec3 da = v3_add(a->dp, quat_turn(a->dq, t->xa0)), db = v3_add(b->dp, quat_turn(b->dq, t->xb0));
    real gap = t->gap0 + v3_dot(t->n, v3_sub(da, db));
    if (t->offset_a != R(0)) da = v3_madd(da, -t->offset_a, quat_turn(a->dq, t->n));
    if (t->offset_b != R(0)) db = v3_madd(db, t->offset_b, quat_turn(b->dq, t->n));
    vec3 slip = v3_sub(da, db);
    real fn = t->lambda.x - t->kappa * (gap - t->reference);
    int32_t state = CONTACT_OPEN;
    real scale = R(1);
    vec3 f = v3_zero();
    if (fn > R(0)) {
      real f1 = t->lambda.y - t->kappa * v3_dot(t->t1, slip), f2 = t->lambda.z - t->kappa * v3_dot(t->t2, slip);
      real trial = real_sqrt(f1 * f1 + f2 * f2), limit = t->mu * fn;
      state = CONTACT_STICK;
      if (trial > limit) state = CONTACT_SLIP, scale = limit / trial;
      f = v3(fn, scale * f1, scale * f2);
    }
    if (state != t->state) settled = 0;
    if (state == CONTACT_SLIP && real_abs(scale - t->slip_scale) > R(SLIP_TOLERANCE) * t->slip_scale) settled = 0;
    t->state = state, t->slip_scale = scale;
    t->force = f;
    if (state == CONTACT_OPEN)
      t->kn = t->kt = done >= MAJORIZE_AFTER ? t->kappa : R(OPEN_STAMP) * t->kappa;
    else
      t->kn = t->kappa, t->kt = scale * t->kappa;
  }
  return settled;
}

/* ---- active sets, end of a step
 * ------------------------------------------------------------------------------------------------ */

/* Does the row's state contradict the converged iterate? Returns the state it should have. */
static int row_state_due(const direct_joint *j, const row_work *row, int r) {
#ifdef PABD_REAL_DOUBLE
  const real slack = 1e-11;
#else
  const real slack = 1e-6f;
#endif
  if (j->role[r] == DIRECT_LIMIT) {
    if (row->state == ROW_OFF && row->c < row->reference - slack) return ROW_ON;
    if (row->state == ROW_ON && row->lambda < R(0)) return ROW_OFF;
  } else if (j->role[r] == DIRECT_MOTOR) {
    if (row->state == ROW_ON && real_abs(row->lambda) > (real)j->motor_max) return ROW_BOUND;
    if (row->state == ROW_BOUND && row->c * row->lambda > R(0) && !row->released) return ROW_ON;
  }
  return row->state;
}

/* A limit's coordinate may have gone past its other bound, on whose side the row does not look: it is turned to it. */
static void watch_other_side(const core *w, joint_work *t, const direct_joint *j, int r) {
  row_work *row = &t->row[r];
  real sign = t->limit_side > 0 ? R(-1) : R(1), bound = (real)(t->limit_side > 0 ? j->upper : j->lower);
  double start, now;
  if (j->kind[r] == DIRECT_SWING) {
    start = (double)t->angle0, now = (double)free_angle(t, w->body[t->a].dq, w->body[t->b].dq);
  } else {
    start = (double)(bound + sign * row->c0), now = (double)(bound + sign * row->c);
  }
  if (t->limit_side > 0 ? now >= j->lower : now <= j->upper) return;
  t->limit_side = -t->limit_side;
  limit_begin(j, t, row, j->kind[r], w->step.h, start);
  joint_evaluate(w, t, NULL);
}

/* Limits and motor bounds against the converged iterate; 1 when one changed. All that are due change at once, which
 * nearly always settles in a round or two; `one` changes the first only, which cannot cycle. */
static int rows_change_active(core *w, int one) {
  const direct_island *island = w->island;
  int changed = 0;
  for (int32_t k = 0; k < island->joint_count && !(one && changed); ++k) {
    joint_work *t = &w->joint[k];
    const direct_joint *j = &w->joints[island->joint[k]];
    int special = 0;
    for (int r = 0; r < j->row_count; ++r) special |= j->role[r] == DIRECT_LIMIT || j->role[r] == DIRECT_MOTOR;
    if (!special) continue;
    joint_evaluate(w, t, NULL);
    for (int r = 0; r < j->row_count && !(one && changed); ++r) {
      row_work *row = &t->row[r];
      if (j->role[r] == DIRECT_LIMIT && row->state == ROW_OFF) watch_other_side(w, t, j, r);
      int due = row_state_due(j, row, r);
      if (due == row->state) continue;
      changed = 1;
      if (due == ROW_OFF) row->lambda = R(0);
      if (due == ROW_BOUND) row->lambda = (real)(row->lambda > R(0) ? j->motor_max : -j->motor_max);
      if (row->state == ROW_BOUND) row->released = 1; /* a motor is let go once in a step */
      row->state = (int8_t)due;
    }
  }
  return changed;
}

/* Work that joints to bodies of prescribed motion do on the rest: minus the force on them times their motion. */
static double kinematic_work(const core *w, const joint_work *t, const direct_joint *j, const joint_stamp *stamp) {
  double work = 0.0;
  for (int side = 0; side < 2; ++side) {
    int32_t local = side ? t->b : t->a;
    if (w->at[local]->motion != PABD_KINEMATIC) continue;
    const body_work *b = &w->body[local];
    vec3 theta = v3_scale(R(2) / b->dq.w, quat_vec(b->dq));
    for (int r = 0; r < j->row_count; ++r)
      work -= (double)(t->row[r].lambda * (v3_dot(stamp->f1[r][side], b->dp) + v3_dot(stamp->f2[r][side], theta)));
  }
  return work;
}

/* Work on the bodies over the step by springs, motors, joints to bodies of prescribed motion, and limits that are
 * slowly pushed back to their bound: for the energy-momentum step exactly multiplier times change of C. */
static double rows_work(core *w) {
  const direct_island *island = w->island;
  double work = 0.0;
  joint_stamp stamp;
  for (int32_t k = 0; k < island->joint_count; ++k) {
    joint_work *t = &w->joint[k];
    const direct_joint *j = &w->joints[island->joint[k]];
    int moved = w->at[t->a]->motion == PABD_KINEMATIC || w->at[t->b]->motion == PABD_KINEMATIC;
    joint_evaluate(w, t, moved ? &stamp : NULL);
    if (moved) work += kinematic_work(w, t, j, &stamp);
    for (int r = 0; r < j->row_count; ++r) {
      const row_work *row = &t->row[r];
      double done = (double)row->lambda * (double)(row->c - row->c0);
      int pushed_out = j->role[r] == DIRECT_LIMIT && row->was == ROW_ON && row->reference < R(0);
      if (j->role[r] == DIRECT_SPRING || j->role[r] == DIRECT_MOTOR || (pushed_out && done > 0.0)) work += done;
    }
  }
  return work;
}

/* Velocity projection: limits whose impulse pulls are let go; 1 when there was one. Multipliers go back to where they
 * were. */
static int rows_release_pulling(core *w) {
  const direct_island *island = w->island;
  int changed = 0;
  for (int32_t k = 0; k < island->joint_count; ++k) {
    const direct_joint *j = &w->joints[island->joint[k]];
    for (int r = 0; r < j->row_count; ++r) {
      row_work *row = &w->joint[k].row[r];
      if (j->role[r] == DIRECT_LIMIT && row->state == ROW_ON && row->lambda < row->lambda_start)
        row->state = ROW_OFF, changed = 1;
      row->lambda = row->lambda_start;
    }
  }
  return changed;
}

/* Was a limit reached in this step? */
static int rows_hit(const core *w) {
  const direct_island *island = w->island;
  for (int32_t k = 0; k < island->joint_count; ++k) {
    const direct_joint *j = &w->joints[island->joint[k]];
    for (int r = 0; r < j->row_count; ++r) {
      const row_work *row = &w->joint[k].row[r];
      if (j->role[r] == DIRECT_LIMIT && row->state == ROW_ON && row->was == ROW_OFF) return 1;
    }
  }
  return 0;
}

#define IMPACT_SPEED 0.05 /* m/s: slower contacts are at rest */

/* Share of a contact's force that lasts: what stopped the bodies was an impulse, and carried to the next step it would
 * throw them apart (a tenth of the closing speed, for the multiplier step is one of eleven parts). */
static real lasting_share(const core *w, const contact_work *t) {
  const direct_body *a = w->at[t->a], *b = w->at[t->b];
  if (t->force.x <= R(0)) return R(0);
  dvec3 va = d3_add(velocity_of(a), d3_cross(omega_of(a), d3_from(t->xa0))),
        vb = d3_add(velocity_of(b), d3_cross(omega_of(b), d3_from(t->xb0)));
  double speed = -d3_dot(d3_from(t->n), d3_sub(va, vb));
  if (speed < IMPACT_SPEED) return R(1);
  double inverse =
      (a->motion == PABD_DYNAMIC ? 1.0 / a->mass : 0.0) + (b->motion == PABD_DYNAMIC ? 1.0 / b->mass : 0.0);
  double impulse = speed / (inverse * w->step.h);
  /* never zero: a contact that carried a force is known by it (restitution.c) */
  return (real)fmax(1e-6, 1.0 - impulse / (double)t->force.x);
}

static void rows_commit(core *w, int converged) {
  const direct_island *island = w->island;
  joint_stamp stamp;
  for (int32_t k = 0; k < island->joint_count; ++k) {
    joint_work *t = &w->joint[k];
    direct_joint *j = &w->joints[island->joint[k]];
    int moved = w->at[t->a]->motion == PABD_KINEMATIC || w->at[t->b]->motion == PABD_KINEMATIC;
    joint_evaluate(w, t, moved ? &stamp : NULL);
    if (moved) w->result->driver_work += kinematic_work(w, t, j, &stamp);
    j->state.limit_active = 0, j->state.motor_force_step = 0.0;
    for (int r = 0; r < j->row_count; ++r) {
      const row_work *row = &t->row[r];
      j->state.lambda[r] = (double)row->lambda;
      if (j->role[r] == DIRECT_LIMIT && row->state == ROW_ON) j->state.limit_active = t->limit_side;
      if (j->role[r] == DIRECT_MOTOR) {
        w->result->driver_work += (double)row->lambda * (double)(row->c - row->c0);
        if (row->state == ROW_BOUND) j->state.motor_force_step = row->lambda > R(0) ? 1.0 : -1.0;
      }
    }
    j->state.angle = (double)free_angle(t, w->body[t->a].dq, w->body[t->b].dq);
  }
  if (!converged) return; /* multipliers of an unconverged step fell stacks */
  for (int32_t k = 0; k < island->contact_count; ++k) {
    vec3 f = v3_scale(lasting_share(w, &w->contact[k]), w->contact[k].force);
    double *lambda = island->contact[k].lambda;
    lambda[0] = (double)f.x, lambda[1] = (double)f.y, lambda[2] = (double)f.z;
  }
}
