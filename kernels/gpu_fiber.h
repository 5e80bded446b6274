/*
 * gpu_fiber - plays a GPU on the CPU: blocks one after the other, one fiber per thread of
 * a block.  gpu_cpu.h gives kernels their names over this.
 *
 * For correctness, never for time.  A fiber runs until it meets the others (a barrier, a
 * shuffle, a matrix product) and goes on when all of them are there.  What would hang or
 * be undefined on a GPU ends the launch with ERR_DEVICE, its message naming kernel, block,
 * threads and lines: threads that meet at different places, or not at all; lanes of a
 * shuffle that do not exist; addresses outside of buffers and of shared memory; traps of
 * the compiler's checks (alignment).  Shared memory begins as NaNs, lanes run upwards and
 * downwards by turns, and asynchronous copies happen when they are waited for, so that
 * forgotten barriers and waits show.
 *
 * One launch at a time in the process (signal handlers are borrowed while it runs).
 */
#ifndef KERNELS_GPU_FIBER_H
#define KERNELS_GPU_FIBER_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "kernels/gpu_args.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GPU_FIBER_SLOT 8 /* words that a lane shows to the others of its wave */

struct gpu_dim { uint32_t x, y, z; };

/* Where the running fiber is: threadIdx and its like. */
struct gpu_fiber_now {
	struct gpu_dim thread, block, block_dim, grid_dim;
	uint32_t lane;         /* in the wave */
	uint8_t *shared;       /* dynamic shared memory, 16-byte aligned */
};
extern struct gpu_fiber_now gpu_fiber_now;

enum gpu_meet { GPU_MEET_BLOCK, GPU_MEET_WAVE, GPU_MEET_SHUFFLE, GPU_MEET_MATRIX };

/* For kernels.  line: of the caller's source; all that meet must name the same. */
void gpu_fiber_meet(enum gpu_meet kind, int line);
uint32_t *gpu_fiber_mine(void);               /* own slot for the next meeting */
const uint32_t *gpu_fiber_seen(uint32_t lane, int line); /* slots of the last one */
void gpu_fiber_copy(void *to, const void *from, int line); /* 16 bytes, later */
void gpu_fiber_commit(void);
void gpu_fiber_wait(unsigned open);           /* all but so many groups */
void gpu_fiber_fault(int line, const char *what) __attribute__((noreturn));

typedef void (*gpu_fiber_entry)(struct gpu_args a);

struct gpu_fiber_launch {
	const char *name;
	gpu_fiber_entry entry;
	uint32_t wave;         /* lanes: 32 or 64 */
	uint32_t grid[3], block, shared;
};
CHECKED int gpu_fiber_run(const struct gpu_fiber_launch *l, const struct gpu_args *a,
	struct err *e);

#ifdef __cplusplus
}
#endif

#endif
