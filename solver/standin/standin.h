/* Steering the stand-in (standin.cpp) from tests. */
#ifndef PABD_STANDIN_H
#define PABD_STANDIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The machine that the runtime claims to see: devices, driver version (1000 major + 10 minor), device memory in bytes.
 */
void standin_set_device(int count, int driver, size_t memory);
/* The nth call of that name from now (1 = the next) returns this error; 0 in its place ends it. */
void standin_plant(const char *call, int nth, int error);
/* Seed of the order of blocks and threads; 0 = ascending. */
void standin_set_order(uint32_t seed);
/* 1: device memory cannot be touched by the host except through the runtime. Costs two system calls a launch. */
void standin_protect(int on);

typedef struct standin_counts {
  int64_t allocations, live_allocations, live_streams, live_graphs, live_events; /* live ones must end at 0 */
  int64_t launches, graph_launches, copies_to_host, copies_to_device, waits;
  int64_t bytes;
} standin_counts;
standin_counts standin_count(void);

#ifdef __cplusplus
}
#endif
#endif
