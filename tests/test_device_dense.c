/* The two sweeps that the compiler's figures compare (solver/dense_sweep.h) are the same sweep: on the state of a pile,
 * the dense 12x12 factorization and the 13-number block move every body alike, as does the solver's own kernel. */
#include "dense_sweep.h"
#include "pabd_case.h"
#include "test.h"

static void moved(const pabd_view *v, int32_t i, vec3 before, double *d, double *turn) {
  vec3 delta = v3_sub(v->inc_pos[i], before);
  d[0] = (double)delta.x, d[1] = (double)delta.y, d[2] = (double)delta.z;
  turn[0] = (double)v->inc_rot[i].x, turn[1] = (double)v->inc_rot[i].y, turn[2] = (double)v->inc_rot[i].z;
}

TEST(dense_and_block_sweeps_agree) {
  pabd_case c;
  pabd_error error = {""};
  const char *size = "n=4";
  REQUIRE(pabd_case_load("cases/pile.json", &size, 1, &c, &error) == PABD_OK);
  pabd_params params = pabd_params_default();
  CHECK(pabd_params_set(&params, "local_step", "mass", &error) == PABD_OK);
  pabd_sim *sim = NULL;
  REQUIRE(pabd_sim_create(&c.scene, &params, &sim, &error) == PABD_OK);
  for (int frame = 0; frame < 60; ++frame) pabd_sim_step(sim);
  pabd_view *v = &sim->view;
  /* rows, block and forces of a substep */
  substep_begin(v, 0, params.substeps);
  for (int32_t i = 0; i < v->body_count; ++i) predict_at(i, v);
  for (int32_t k = 0; k < v->contact_count; ++k) contact_begin_at(k, v), contact_force_at(k, v);
  int32_t tested = 0;
  double largest = 0.0;
  for (int32_t i = 0; i < v->body_count; ++i) {
    if (v->motion[i] != PABD_DYNAMIC || v->end_first[i + 1] == v->end_first[i]) continue;
    block_at(i, v);
    vec3 start = v->inc_pos[i];
    quat start_turn = v->inc_rot[i];
    pabd_motion8 start_total = v->total[i];
    double d[3][3], turn[3][3];
    real hessian[PABD_DENSE_COUNT];
    dense_block_at(i, v, hessian, 1);
    for (int which = 0; which < 3; ++which) {
      v->inc_pos[i] = start, v->inc_rot[i] = start_turn, v->total[i] = start_total;
      if (which == 0) dense_sweep_at(i, v, hessian, 1);
      if (which == 1) block_sweep_at(i, v);
      if (which == 2) body_sweep_at(i, v);
      moved(v, i, start, d[which], turn[which]);
    }
    v->inc_pos[i] = start, v->inc_rot[i] = start_turn, v->total[i] = start_total;
    double size_d = fabs(d[1][0]) + fabs(d[1][1]) + fabs(d[1][2]) + 1e-7;
    double size_turn = fabs(turn[1][0]) + fabs(turn[1][1]) + fabs(turn[1][2]) + 1e-6;
    for (int k = 0; k < 3; ++k) {
      CHECK_NEAR(d[0][k], d[1][k], 2e-3 * size_d);
      CHECK_NEAR(turn[0][k], turn[1][k], 2e-3 * size_turn);
      CHECK_NEAR(d[2][k], d[1][k], 1e-3 * size_d);
      CHECK_NEAR(turn[2][k], turn[1][k], 1e-3 * size_turn);
    }
    largest = fmax(largest, size_d);
    ++tested;
  }
  CHECK(tested > 30 && largest > 1e-6);
  pabd_sim_destroy(sim);
  pabd_case_free(&c);
}
