/* Trajectories: writer, reader and CSV export. The layout stands in trajectory.h. */
#include "trajectory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"

_Static_assert(sizeof(pabd_trajectory_header) == 64, "the file's header is 64 bytes");

size_t pabd_trajectory_sample_size(uint32_t body_count, uint32_t value_size) {
  return 2 * sizeof(uint32_t) + (size_t)body_count * 7 * value_size;
}

pabd_status pabd_trajectory_append(int descriptor, uint32_t frame, uint32_t body_count, uint32_t value_size,
                                   const double *pose, pabd_error *error) {
  assert(value_size == 4 || value_size == 8);
  size_t size = pabd_trajectory_sample_size(body_count, value_size);
  char *sample = malloc(size);
  if (!sample) return pabd_fail(error, PABD_ERR_MEMORY, "trajectory: out of memory for a sample");
  uint32_t head[2] = {frame, 0};
  memcpy(sample, head, sizeof head);
  if (value_size == 8) {
    memcpy(sample + sizeof head, pose, size - sizeof head);
  } else {
    for (size_t k = 0; k < (size_t)body_count * 7; ++k) {
      float value = (float)pose[k];
      memcpy(sample + sizeof head + 4 * k, &value, sizeof value);
    }
  }
  pabd_status status = pabd_write_all(descriptor, sample, size, error);
  free(sample);
  return status;
}

pabd_status pabd_trajectory_write_header(int descriptor, pabd_trajectory_header header, pabd_error *error) {
  memcpy(header.magic, PABD_TRAJECTORY_MAGIC, sizeof header.magic);
  header.version = PABD_TRAJECTORY_VERSION;
  memset(header.reserved, 0, sizeof header.reserved);
  if (pwrite(descriptor, &header, sizeof header, 0) != (ssize_t)sizeof header)
    return pabd_fail(error, PABD_ERR_IO, "trajectory: cannot write the header: %s", strerror(errno));
  return PABD_OK;
}

/* Checks the header against the file's size before anything is allocated from it. */
static pabd_status check_header(const char *path, const pabd_trajectory_header *header, size_t size,
                                pabd_error *error) {
  if (size < sizeof *header || memcmp(header->magic, PABD_TRAJECTORY_MAGIC, sizeof header->magic) != 0)
    return pabd_fail(error, PABD_ERR_INPUT, "%s: not a trajectory file", path);
  if (header->version != PABD_TRAJECTORY_VERSION)
    return pabd_fail(error, PABD_ERR_INPUT, "%s: trajectory version %u, this program reads %u", path, header->version,
                     PABD_TRAJECTORY_VERSION);
  if (header->value_size != 4 && header->value_size != 8)
    return pabd_fail(error, PABD_ERR_INPUT, "%s: value_size = %u must be 4 or 8", path, header->value_size);
  /* Divide instead of multiplying: a damaged header must not overflow the product. */
  size_t sample_size = pabd_trajectory_sample_size(header->body_count, header->value_size);
  if ((size - sizeof *header) / sample_size < header->sample_count)
    return pabd_fail(error, PABD_ERR_INPUT, "%s: cut short: %u samples of %zu bytes do not fit in %zu bytes", path,
                     header->sample_count, sample_size, size);
  return PABD_OK;
}

pabd_status pabd_trajectory_read(const char *path, pabd_trajectory *out, pabd_error *error) {
  char *data;
  size_t size;
  memset(out, 0, sizeof *out);
  PABD_TRY(pabd_file_read(path, &data, &size, error));
  if (size >= sizeof out->header) memcpy(&out->header, data, sizeof out->header);
  pabd_status status = check_header(path, &out->header, size, error);
  if (status != PABD_OK) {
    free(data);
    memset(out, 0, sizeof *out);
    return status;
  }
  uint32_t samples = out->header.sample_count, value_size = out->header.value_size;
  size_t values = (size_t)out->header.body_count * 7,
         sample_size = pabd_trajectory_sample_size(out->header.body_count, value_size);
  out->frames = malloc(samples * sizeof *out->frames + 1);
  out->poses = malloc(samples * values * sizeof *out->poses + 1);
  if (!out->frames || !out->poses) {
    free(data);
    pabd_trajectory_free(out);
    return pabd_fail(error, PABD_ERR_MEMORY, "%s: out of memory", path);
  }
  for (uint32_t k = 0; k < samples; ++k) {
    const char *sample = data + sizeof out->header + k * sample_size;
    double *pose = out->poses + k * values;
    memcpy(&out->frames[k], sample, sizeof out->frames[k]);
    sample += 2 * sizeof(uint32_t);
    for (size_t j = 0; j < values; ++j) {
      float narrow;
      if (value_size == 8) {
        memcpy(&pose[j], sample + 8 * j, 8);
      } else {
        memcpy(&narrow, sample + 4 * j, 4);
        pose[j] = (double)narrow;
      }
    }
  }
  free(data);
  return PABD_OK;
}

void pabd_trajectory_free(pabd_trajectory *trajectory) {
  if (!trajectory) return;
  free(trajectory->frames);
  free(trajectory->poses);
  memset(trajectory, 0, sizeof *trajectory);
}

pabd_status pabd_trajectory_write_csv(const pabd_trajectory *trajectory, FILE *out, pabd_error *error) {
  const pabd_trajectory_header *header = &trajectory->header;
  int digits = header->value_size == 8 ? 17 : 9; /* enough to read the same value back */
  fprintf(out, "frame,time,body,x,y,z,qw,qx,qy,qz\n");
  for (uint32_t k = 0; k < header->sample_count; ++k) {
    for (uint32_t i = 0; i < header->body_count; ++i) {
      const double *pose = trajectory->poses + ((size_t)k * header->body_count + i) * 7;
      fprintf(out, "%u,%.9g,%u", trajectory->frames[k], trajectory->frames[k] * header->frame_time, i);
      for (int j = 0; j < 7; ++j) fprintf(out, ",%.*g", digits, pose[j]);
      fputc('\n', out);
    }
  }
  if (fflush(out) != 0 || ferror(out))
    return pabd_fail(error, PABD_ERR_IO, "cannot write the table: %s", strerror(errno));
  return PABD_OK;
}
