/* The performance model's table and arithmetic; see perf_model.h. */
#include "perf_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "state.h"

/* ---------------------------------------------------------------- bytes, from the lists of fields and kernels */

static const struct {
  const char *name, *rows;
  double bytes; /* of one row, all planes */
} fields[] = {
#define FIELD(type, name, rows, planes, unit, writer) {#name, #rows, (double)(sizeof(type) * (planes))},
#include "fields.def"
#undef FIELD
};

/* Live rows of a kind. */
static double rows_of(const char *rows, const pabd_perf_load *l) {
  if (strncmp(rows, "bod", 3) == 0) return l->bodies;
  if (strcmp(rows, "contact") == 0 || strcmp(rows, "contacts") == 0) return l->contacts;
  if (strcmp(rows, "end") == 0) return l->ends;
  if (strcmp(rows, "bond") == 0 || strcmp(rows, "bonds") == 0) return l->bonds;
  if (strcmp(rows, "bond_end") == 0) return 2.0 * l->bonds;
  if (strncmp(rows, "shape", 5) == 0 || strcmp(rows, "node") == 0) return l->shapes;
  if (strncmp(rows, "pair", 4) == 0) return l->pairs;
  return 0.0;
}
/* "bodies" and "body", "contacts" and "contact", "contacts" and "end" ... : the kernel's own rows? */
static int is_own(const char *kernel_rows, const char *field_rows) {
  return strncmp(kernel_rows, field_rows, 3) == 0 && strcmp(field_rows, "bond_end") != 0;
}
/* Bytes of all fields in a list of names; those of other rows also into *gathered. */
static double list_bytes(const char *list, const char *kernel_rows, const pabd_perf_load *l, double *gathered) {
  double sum = 0.0;
  for (const char *at = list; *at;) {
    size_t length = strcspn(at, " ");
    for (size_t k = 0; k < sizeof fields / sizeof *fields; ++k) {
      if (strncmp(fields[k].name, at, length) != 0 || fields[k].name[length] != '\0') continue;
      double bytes = fields[k].bytes * rows_of(fields[k].rows, l);
      sum += bytes;
      if (!is_own(kernel_rows, fields[k].rows)) *gathered += bytes;
    }
    at += length;
    at += strspn(at, " ");
  }
  return sum;
}

double pabd_perf_kernel_bytes(const char *kernel, const pabd_perf_load *load, double *gathered) {
  double sum = 0.0, apart = 0.0;
#define KERNEL(name, rows, reads, writes) \
  if (strcmp(kernel, #name) == 0)         \
    sum = list_bytes(reads, #rows, load, &apart) + list_bytes(writes, #rows, load, &apart);
#define SIMD_KERNEL KERNEL
#include "kernels.def"
#undef SIMD_KERNEL
#undef KERNEL
  if (gathered) *gathered = apart;
  return sum;
}

/* ---------------------------------------------------------------- operations, by count */

/* Kind of code: one number at a time, vectors of rows, branches and pointers. */
enum { SCALAR, VECTOR, BRANCHY };

/* Operations of a row and of each of its ends (bodies only), counted in a pile of boxes at rest; `efficiency` is what a
 * CPU reaches of its peak for that kind of code, measured at 10^3 bodies with one thread of an Intel Xeon with AVX-512.
 */
static const struct {
  const char *name, *rows;
  double per_row, per_end;
  int kind;
  double efficiency;
} costs[] = {
    {"frame_begin", "bodies", 4.0, 0.0, SCALAR, 0.15}, /* copies */
    {"predict", "bodies", 143.0, 0.0, SCALAR, 0.70},
    {"contact_begin", "contacts", 224.0, 0.0, VECTOR, 0.070},
    {"block", "bodies", 104.0, 27.0, SCALAR, 0.58},
    {"contact_force", "contacts", 119.0, 0.0, VECTOR, 0.17},
    {"contact_dual", "contacts", 133.0, 0.0, VECTOR, 0.17},
    {"body_sweep", "bodies", 691.0, 21.0, SCALAR, 0.77},
    {"update", "bodies", 200.0, 0.0, SCALAR, 0.62},
    {"relax_begin", "contacts", 129.0, 0.0, VECTOR, 0.117},
    {"relax_contact", "contacts", 100.0, 0.0, VECTOR, 0.138},
    {"relax_block", "bodies", 100.0, 27.0, SCALAR, 0.53},
    {"relax_body", "bodies", 183.0, 15.0, SCALAR, 0.66},
    {"bond_begin", "bonds", 150.0, 0.0, SCALAR, 0.60},
    {"bond_force", "bonds", 90.0, 0.0, SCALAR, 0.60},
    {"bond_dual", "bonds", 96.0, 0.0, SCALAR, 0.60},
    /* collision; integer work counts as operations */
    {"bounds", "shapes", 142.0, 0.0, SCALAR, 0.40},
    {"sort", "shapes", 100.0, 0.0, BRANCHY, 0.50},
    {"build", "shapes", 120.0, 0.0, BRANCHY, 0.50},
    {"refit", "shapes", 38.0, 0.0, BRANCHY, 0.50},
    {"pairs", "pairs", 400.0, 0.0, BRANCHY, 0.50},
    {"narrow", "pairs", 260.0, 0.0, BRANCHY, 0.27},
    {"islands", "pairs", 85.0, 0.0, BRANCHY, 0.50},
    {"contact_fill", "contacts", 180.0, 0.0, BRANCHY, 0.22},
    {"contact_save", "contacts", 18.0, 0.0, SCALAR, 0.36},
};

static int32_t cost_of(const char *name) {
  for (int32_t k = 0; k < (int32_t)(sizeof costs / sizeof *costs); ++k)
    if (strcmp(costs[k].name, name) == 0) return k;
  return -1;
}
double pabd_perf_kernel_operations(const char *kernel, const pabd_perf_load *l) {
  int32_t k = cost_of(kernel);
  if (k < 0) return 0.0;
  return costs[k].per_row * rows_of(costs[k].rows, l) + costs[k].per_end * l->ends;
}

/* ---------------------------------------------------------------- machines */

/* A CPU's vectors are what separates its peak from code that takes one number at a time. */
#define HOST_LANES 16.0
#define HOST_CACHE 1048576 /* B: what a launch may touch and still find in the cache of its core */
/* Devices: what is assumed, for want of one to measure. */
#define DEVICE_BANDWIDTH 0.80 /* of the maker's figure, by kernels that stream */
#define DEVICE_ROWS 0.50      /* of the peak, by kernels that take a row a thread */
#define DEVICE_BRANCHY 0.10   /* of the peak, where neighbors in a warp part */
#define DEVICE_GATHER 2.0     /* half of each 32-byte sector of a gathered row is used */

const pabd_perf_machine *pabd_perf_device(int32_t index) {
  /* peak: half of the makers' FP32 figures, which count a fused multiply-add as two; ours are built without
   * contraction.
   */
  static const pabd_perf_machine devices[] = {
      {"T4", 320e9, 4.05e12, 2e-6, 0, 0},        {"RTX 3060", 360e9, 6.4e12, 2e-6, 0, 0},
      {"L4", 300e9, 15.1e12, 2e-6, 0, 0},        {"RTX 4090", 1008e9, 41.3e12, 2e-6, 0, 0},
      {"RTX 5090", 1792e9, 52.4e12, 2e-6, 0, 0}, {"A100 80 GB", 2039e9, 9.75e12, 2e-6, 0, 0},
      {"H100 SXM", 3350e9, 33.5e12, 2e-6, 0, 0}, {"H200", 4800e9, 33.5e12, 2e-6, 0, 0},
  };
  return index >= 0 && index < (int32_t)(sizeof devices / sizeof *devices) ? &devices[index] : NULL;
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#if defined(__AVX512F__)
#define HOST_VECTOR 64
#elif defined(__AVX__)
#define HOST_VECTOR 32
#else
#define HOST_VECTOR 16
#endif
typedef float host_vector __attribute__((vector_size(HOST_VECTOR)));

/* Independent chains of a multiply and an add, enough to hide their latency. */
static double measure_peak(float *sink) {
  enum { CHAINS = 12, ROUNDS = 400000 };
  host_vector x[CHAINS], zero = {0}, m = zero + 0.999f, a = zero + 0.001f;
  double best = 1e30;
  for (int k = 0; k < CHAINS; ++k) x[k] = zero + (1.0f + 0.01f * (float)k);
  for (int round = 0; round < 7; ++round) {
    double begin = now_s();
    for (int i = 0; i < ROUNDS; ++i)
      for (int k = 0; k < CHAINS; ++k) x[k] = x[k] * m + a;
    double took = now_s() - begin;
    if (took < best) best = took;
  }
  for (int k = 0; k < CHAINS; ++k) *sink += x[k][0];
  return 2.0 * CHAINS * ROUNDS * (HOST_VECTOR / 4.0) / best;
}

/* STREAM's triad over three arrays of n numbers, with the traffic that it counts (two reads, one write). */
static double measure_bandwidth(size_t n, int passes, float *sink) {
  float *a = malloc(3 * n * sizeof *a), *b = a + n, *c = b + n;
  if (!a) return 0.0;
  for (size_t i = 0; i < n; ++i) a[i] = 0.0f, b[i] = (float)i, c[i] = 1.0f;
  double best = 1e30;
  for (int round = 0; round < 8; ++round) {
    double begin = now_s();
    for (int pass = 0; pass < passes; ++pass) {
      for (size_t i = 0; i < n; ++i) a[i] = b[i] + 3.0f * c[i];
      *sink += a[(size_t)pass % n];
    }
    double took = (now_s() - begin) / passes;
    if (took < best) best = took;
  }
  free(a);
  return 12.0 * (double)n / best;
}

pabd_perf_machine pabd_perf_measure_host(void) {
  static volatile float kept;
  float sink = 0.0f;
  pabd_perf_machine m = {"this machine", measure_bandwidth((size_t)1 << 23, 1, &sink),  measure_peak(&sink), 0.0,
                         HOST_CACHE,     measure_bandwidth(HOST_CACHE / 24, 200, &sink)};
  kept = sink;
  (void)kept;
  return m;
}

/* ---------------------------------------------------------------- a frame */

pabd_perf_load pabd_perf_pile(int32_t bodies, const pabd_params *p) {
  pabd_perf_load l;
  memset(&l, 0, sizeof l);
  /* measured on this suite's pile: frame 120 of 10^3 and 20^3, frame 60 of 30^3; larger ones: assumed */
  static const struct {
    int32_t bodies;
    double pairs, contacts;
  } measured[] = {{1100, 4.0, 3.3}, {8800, 6.5, 4.6}, {30000, 8.9, 7.8}, {INT32_MAX, 9.5, 8.5}};
  int32_t k = 0;
  while (bodies > measured[k].bodies) ++k;
  l.bodies = l.shapes = bodies;
  l.pairs = (int32_t)(measured[k].pairs * bodies), l.contacts = (int32_t)(measured[k].contacts * bodies);
  l.ends = (int32_t)(1.95 * l.contacts);
  l.pair_capacity = bodies * p->pairs_per_body + 64;
  l.substeps = p->substeps, l.sweeps = p->sweeps, l.relax_sweeps = p->relax_sweeps, l.multipliers = p->multipliers;
  return l;
}

typedef struct builder {
  pabd_perf_stage *stages;
  int32_t count;
  const pabd_perf_load *load;
  const pabd_perf_machine *machine;
} builder;

static int is_device(const pabd_perf_machine *m) {
  return m->launch > 0.0;
}
static double longest(double a, double b) {
  return a > b ? a : b;
}

/* One stage of `calls` launches with these bytes, gathered bytes and operations a call; `launches` kernels each. */
static void add(builder *b, const char *name, int collide, double calls, double bytes, double gathered,
                double operations, int kind, double efficiency, double launches) {
  if (b->count == PABD_PERF_STAGES || calls <= 0.0) return;
  const pabd_perf_machine *m = b->machine;
  double rate, reach;
  if (is_device(m)) {
    efficiency = kind == BRANCHY ? DEVICE_BRANCHY : DEVICE_ROWS;
    rate = m->peak * efficiency;
    bytes += (DEVICE_GATHER - 1.0) * gathered;
    reach = m->bandwidth * DEVICE_BANDWIDTH;
  } else {
    rate = m->peak * efficiency / (kind == VECTOR ? 1.0 : HOST_LANES);
    reach = bytes < m->cache_bytes ? m->cache_bandwidth : m->bandwidth;
  }
  double seconds = longest(bytes / reach, operations / rate) + launches * m->launch;
  b->stages[b->count++] =
      (pabd_perf_stage){name, collide, calls, calls * bytes, calls * operations, efficiency, 1e3 * calls * seconds};
}

/* A kernel of kernels.def. */
static void add_kernel(builder *b, const char *name, double calls) {
  int32_t k = cost_of(name);
  double gathered = 0.0, bytes = pabd_perf_kernel_bytes(name, b->load, &gathered);
  if (rows_of(costs[k].rows, b->load) <= 0.0) return;
  add(b, name, 0, calls, bytes, gathered, pabd_perf_kernel_operations(name, b->load), costs[k].kind,
      costs[k].efficiency, 1.0);
}
/* A stage of collision: bytes of one row, and the launches that it is on a device. */
static void add_stage(builder *b, const char *name, int collide, double bytes, double launches) {
  int32_t k = cost_of(name);
  add(b, name, collide, 1.0, bytes, 0.0, pabd_perf_kernel_operations(name, b->load), costs[k].kind, costs[k].efficiency,
      launches);
}

static void collide_stages(builder *b) {
  const pabd_perf_load *l = b->load;
  double shapes = l->shapes, pairs = l->pairs, contacts = l->contacts;
  double frame = sizeof(pabd_shape_frame), box = 2 * sizeof(vec3), node = sizeof(pabd_node), key = 8.0;
  double manifold = 4.0 * (sizeof(vec3) + 2 * sizeof(real)) + sizeof(vec3) + 3 * sizeof(real);
  double row = 0.0, kept = 0.0;
  for (size_t k = 0; k < sizeof fields / sizeof *fields; ++k)
    if (strcmp(fields[k].rows, "contact") == 0)
      *(strncmp(fields[k].name, "old_", 4) == 0 ? &kept : &row) += fields[k].bytes;
  int device = is_device(b->machine);
  add_stage(b, "bounds", 1, shapes * (frame + box + 100.0), 1.0);
  /* a radix sort of 8-bit digits: each pass reads and writes the keys, one more read for all its histograms */
  add_stage(b, "sort", 1, shapes * (box + key * (1.0 + 2.0 * 8.0)), 16.0);
  add_stage(b, "build", 1, shapes * (2.0 * key + node), 1.0);
  add_stage(b, "refit", 1, shapes * (2.0 * node + box), 1.0);
  add_stage(b, "pairs", 1, shapes * (node + 2.0 * box) + 2.0 * key * pairs, 4.0);
  if (device) {
    double bits = 1.0;
    while ((double)((int64_t)1 << (int)bits) < shapes) bits += 1.0;
    double passes = 2.0 * ceil(bits / 8.0);
    add(b, "pair_sort", 1, 1.0, l->pair_capacity * key * (2.0 + 2.0 * passes + 1.0), 0.0, 0.0, SCALAR, 1.0,
        passes + 5.0);
    add(b, "pair_scan", 1, 1.0, l->pair_capacity * 4.0 * 6.0, 0.0, 0.0, SCALAR, 1.0, 5.0);
  }
  add_stage(b, "narrow", 1, pairs * (2.0 * frame + key + manifold), 1.0);
  if (device)
    add(b, "order", 1, 1.0, l->bodies * 40.0 + l->ends * 16.0 + pairs * 12.0, l->ends * 4.0, 0.0, SCALAR, 1.0, 10.0);
  else
    add_stage(b, "islands", 1, pairs * 24.0 + l->bodies * 24.0, 1.0);
  add_stage(b, "contact_fill", 1, pairs * manifold + contacts * (row + kept), 1.0);
  (void)contacts;
}

int32_t pabd_perf_predict(const pabd_perf_load *l, const pabd_perf_machine *machine,
                          pabd_perf_stage stages[PABD_PERF_STAGES], double *total_ms) {
  builder b = {stages, 0, l, machine};
  add_kernel(&b, "frame_begin", 1.0);
  collide_stages(&b);
  double n = l->substeps, duals = l->multipliers ? l->sweeps - 1 : 0, relax = l->multipliers ? l->relax_sweeps : 0;
  add_kernel(&b, "predict", n);
  add_kernel(&b, "contact_begin", n);
  add_kernel(&b, "bond_begin", n);
  add_kernel(&b, "block", n);
  add_kernel(&b, "contact_force", n * (l->sweeps - duals));
  add_kernel(&b, "contact_dual", n * (duals + (l->multipliers && relax == 0 ? 1 : 0)));
  add_kernel(&b, "bond_force", n * (l->sweeps - duals));
  add_kernel(&b, "bond_dual", n * (duals + (l->multipliers ? 1 : 0)));
  add_kernel(&b, "body_sweep", n * l->sweeps);
  add_kernel(&b, "update", n);
  if (relax > 0) {
    add_kernel(&b, "relax_begin", n);
    add_kernel(&b, "relax_block", n);
    add_kernel(&b, "relax_contact", n * (relax + 1));
    add_kernel(&b, "relax_body", n * relax);
  }
  add_stage(&b, "contact_save", 0, l->contacts * 92.0, 1.0);
  *total_ms = 0.0;
  for (int32_t k = 0; k < b.count; ++k) *total_ms += stages[k].ms;
  return b.count;
}
