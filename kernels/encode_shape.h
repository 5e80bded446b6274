/*
 * encode_shape - the grids of the encoders: what the plan on the host and the device code
 * must agree on.
 */
#ifndef KERNELS_ENCODE_SHAPE_H
#define KERNELS_ENCODE_SHAPE_H

#define ENCODE_BLOCK 128   /* threads of a block, every encoder */
#define ENCODE_TILE 32     /* keys of a block: four threads for each */
#define ENCODE_TCQ_KEYS 4  /* keys of a block of the trellis: 32 threads for each */

#endif
