/* Trajectories: poses of all bodies at sampled frames, in a small binary file beside the record.
 *
 * Layout, in the machine's byte order (little endian on all that we know), without gaps:
 *   header   64 bytes: char magic[8] = "PABDTRJ1"; uint32 version = 1, value_size (4 float, 8 double), body_count,
 *            sample_count, stride, frame_count; double frame_time (s); 24 bytes of 0
 *   sample   sample_count times: uint32 frame; uint32 0; body_count x 7 values: p (m), q (w, x, y, z) of the centre of
 *            mass and principal frame, bodies in the scene's order
 * Samples are the frames 0, stride, 2 stride, ... and the last one reached; frame f is at time f * frame_time. */
#ifndef PABD_TRAJECTORY_H
#define PABD_TRAJECTORY_H

#include <stdint.h>
#include <stdio.h>

#include "pabd_status.h"

#define PABD_TRAJECTORY_MAGIC "PABDTRJ1"
#define PABD_TRAJECTORY_VERSION 1u

typedef struct pabd_trajectory_header {
  char magic[8];
  uint32_t version, value_size, body_count, sample_count, stride, frame_count;
  double frame_time;
  unsigned char reserved[24];
} pabd_trajectory_header;

typedef struct pabd_trajectory {
  pabd_trajectory_header header;
  uint32_t *frames; /* [sample_count] */
  double *poses;    /* [sample_count][body_count][7], widened to double; m, unit quaternions */
} pabd_trajectory;

/* Bytes of one sample in the file. */
size_t pabd_trajectory_sample_size(uint32_t body_count, uint32_t value_size);
/* Appends one sample to an open file at its current position. pose [body_count][7]. */
pabd_status pabd_trajectory_append(int descriptor, uint32_t frame, uint32_t body_count, uint32_t value_size,
                                   const double *pose, pabd_error *error);
/* Writes the header at the file's start, without moving the position. `header->magic` and version are set here. */
pabd_status pabd_trajectory_write_header(int descriptor, pabd_trajectory_header header, pabd_error *error);

/* Reads a whole file. PABD_ERR_IO, PABD_ERR_INPUT (not a trajectory, or cut short) or PABD_ERR_MEMORY. */
pabd_status pabd_trajectory_read(const char *path, pabd_trajectory *out, pabd_error *error);
void pabd_trajectory_free(pabd_trajectory *trajectory);
/* Columns frame, time, body, x, y, z, qw, qx, qy, qz; one row a body and sample. */
pabd_status pabd_trajectory_write_csv(const pabd_trajectory *trajectory, FILE *out, pabd_error *error);

#endif
